# SPDX-License-Identifier: MIT
"""Random streams of workloads: equal for equal seeds, and checked."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.errors import InputError
from penstock.workloads import WORKLOADS, get_workload
from penstock.workloads.random_streams import seed_sequence


def test_a_stream_depends_on_seed_and_index_only() -> None:
    states = {
        (seed, index): seed_sequence(seed, index).generate_state(4).tobytes()
        for seed in range(3)
        for index in range(3)
    }
    assert len(set(states.values())) == len(states)
    assert states[1, 2] == seed_sequence(1, 2).generate_state(4).tobytes()


@pytest.mark.parametrize(
    ("seed", "index", "place"),
    [(-1, 0, "seed"), (0, -1, "index"), (1.5, 0, "seed"), (None, 0, "seed")],
)
def test_a_bad_seed_is_named(seed: Any, index: Any, place: str) -> None:
    with pytest.raises(InputError, match=f"{place}: .* is not a whole number"):
        seed_sequence(seed, index)


@pytest.mark.parametrize("name", sorted(set(WORKLOADS) - {"microbenchmark"}))
def test_every_random_workload_refuses_a_negative_seed(name: str) -> None:
    with pytest.raises(ps.InputError, match="seed: -1 is not a whole number"):
        get_workload(name).instance(-1, 0)
