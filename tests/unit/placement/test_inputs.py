# SPDX-License-Identifier: MIT
"""Inputs of the algorithms (Table 2 of target allocation), and errors without them."""

from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.model.problem import Problem
from penstock.placement import ALLOCATIONS, PLACEMENTS, Input
from penstock.placement.inputs import in_words, require
from unit.placement.problems import application, problem

#: Table 2 of target allocation, by column; the last of each is not in the table.
TABLE_2 = {
    "random": "",
    "static": "Q_j",
    "best-bandwidth": "n_perf",
    "n-sys": "V_io T_cpu b_j",
    "t-cpu": "Q_j V_io T_cpu b_j",
    "mckp": "b_j",
}
TABLE_2_PLACEMENT = {
    "random": "",
    "greedy-non-clairvoyant": "",
    "greedy-clairvoyant": "V_io T_cpu b_j",
    "exclusive": "b_j",
}


def test_needs_are_those_of_table_2() -> None:
    assert {n: set(row.needs) for n, row in ALLOCATIONS.items()} == {
        name: set(needs.split()) for name, needs in TABLE_2.items()
    }
    assert {n: set(row.needs) for n, row in PLACEMENTS.items()} == {
        name: set(needs.split()) for name, needs in TABLE_2_PLACEMENT.items()
    }


def test_inputs_in_words_easy_ones_first() -> None:
    assert in_words([Input.BANDWIDTH, Input.NODES]) == "Q_j, b_j"
    assert ALLOCATIONS["t-cpu"].inputs == "Q_j, V_io, T_cpu, b_j"
    assert ALLOCATIONS["random"].inputs == "nothing"


def partly_known() -> Problem:
    """Return all of a known, n_perf and the phases of b, the bandwidth of c."""
    return problem(
        3,
        application("a", [1.0, 2.0]),
        application("b"),
        application("c", [1.0], work=0.0, volume=0.0),
        best_targets=(0, 2, 0),
    )


@pytest.mark.parametrize(
    ("needed", "message"),
    [
        (Input.VOLUME, "applications[2]: it needs V_io, which is not known of 'c'"),
        (Input.COMPUTE, "applications[2]: it needs T_cpu, which is not known of 'c'"),
        (Input.BANDWIDTH, "applications[1]: it needs b_j, which is not known of 'b'"),
    ],
)
def test_a_missing_input_is_named_with_its_application(
    needed: Input, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        require({needed}, partly_known(), "it")
    assert str(caught.value).startswith(message)
    assert "give its " in str(caught.value)


def test_n_perf_follows_from_the_bandwidth() -> None:
    require({Input.BEST, Input.NODES}, partly_known(), "it")
    with pytest.raises(
        InputError, match=r'needs n_perf.*"bandwidth" or "best_targets"'
    ):
        require({Input.BEST}, problem(2, application("a")), "it")
