# SPDX-License-Identifier: MIT
"""Figure 11 of target allocation: what it costs to know only classes."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from penstock.papers.p2.robustness import fig11
from penstock.papers.p2.study import BEST_BANDWIDTH, GC, GNC, IO_NODES, T_CPU
from support.claim_flips import assert_all_claims, assert_flips
from support.placement_tables import (
    Change,
    Problem,
    idle,
    problem,
    slow,
    small_tables,
    tables_of,
)

CLASS = "class"
#: Claim, problems for which it holds, problems for which it does not.
FLIPS: list[tuple[str, list[Problem], list[Problem]]] = [
    (
        "negligible",
        [problem(0.5, {(BEST_BANDWIDTH, GC, CLASS): slow(3)})],
        [problem(0.5, {(T_CPU, GNC, CLASS): slow(2.03)})],
    ),
    (
        "ta-differs-most",
        [problem(0.5, {(T_CPU, GNC, CLASS): slow(1.9)})],
        [
            problem(
                0.5,
                {
                    (T_CPU, GNC, CLASS): slow(2.1),
                    (BEST_BANDWIDTH, GC, CLASS): slow(1.5),
                },
            )
        ],
    ),
    (
        "gc-like-gnc-but-at-low-load",
        [problem(0.1, {(BEST_BANDWIDTH, GC, CLASS): slow(2.1)}), problem(0.5)],
        [problem(0.1), problem(0.5, {(BEST_BANDWIDTH, GC, CLASS): slow(2.1)})],
    ),
    (
        "ta-best-even-so",
        [problem(0.5), problem(0.9, {(T_CPU, GNC, CLASS): idle(0.1)})],
        [problem(0.5, {(T_CPU, GNC, CLASS): idle(0.21)}), problem(0.9)],
    ),
    (
        "choices-stay",
        [
            problem(0.2),
            problem(0.9, {(T_CPU, GNC, CLASS): idle(0.1)}),
        ],
        [
            problem(
                0.9,
                {
                    (T_CPU, GNC, CLASS): idle(0.1),
                    (BEST_BANDWIDTH, GNC, CLASS): slow(2.2),
                },
            )
        ],
    ),
    (
        "robust",
        [problem(0.5, {(T_CPU, GNC, CLASS): slow(2.05)})],
        [problem(0.5, {(BEST_BANDWIDTH, GC, CLASS): slow(2.2)})],
    ),
]


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig11], [flip[0] for flip in FLIPS])


@pytest.mark.parametrize(("name", "good", "bad"), FLIPS, ids=[f[0] for f in FLIPS])
def test_a_claim_on_inaccurate_input_holds_and_fails(
    name: str, good: list[Problem], bad: list[Problem]
) -> None:
    assert_flips(fig11, name, tables_of(fig11, *good), tables_of(fig11, *bad))


def test_the_drawing_has_cost_and_outcome_for_every_number() -> None:
    drawn = fig11.draw(small_tables(fig11, IO_NODES))
    assert isinstance(drawn, Figure)
    assert [axis.get_title()[: len("K = 12, a")] for axis in drawn.axes] == [
        "K = 8, a:",
        "K = 8, b:",
        "K = 12, a",
        "K = 12, b",
    ]


def test_the_table_compares_classes_with_exact_profiles() -> None:
    changed: Change = {(T_CPU, GNC, CLASS): slow(3.0) | idle(0.4)}
    table = fig11.summary(tables_of(fig11, problem(0.5, changed)))
    rows = table.filter(contender=f"{T_CPU} + {GNC} + {CLASS}")
    assert dict(rows.select("metric", "mean").iter_rows()) == {
        "mean_io_slowdown over exact information": pytest.approx(0.5),
        "machine_idletime": 0.4,
    }
    assert table["contender"].n_unique() == 3
