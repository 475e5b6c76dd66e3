# SPDX-License-Identifier: MIT
"""Figures 5 to 7 and 14 to 16 of target allocation: claims on the placement."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from penstock.experiments.reproduction import Reproduction
from penstock.papers.p2.placement import fig5, fig6, fig7, fig14, fig15, fig16
from penstock.papers.p2.study import (
    BEST_BANDWIDTH,
    GC,
    GNC,
    IO_NODES,
    N_SYS,
    OSTS,
    RANDOM,
    T_CPU,
    label,
)
from support.claim_flips import assert_all_claims, assert_flips, holds
from support.placement_tables import (
    Change,
    Problem,
    problem,
    slow,
    small_tables,
    spread,
    tables_of,
)

FIGURES = [
    *((figure, IO_NODES) for figure in (fig5, fig6, fig7)),
    *((figure, OSTS) for figure in (fig14, fig15, fig16)),
]
_SPREADS: Change = {
    (BEST_BANDWIDTH, RANDOM): spread(0.9),
    (BEST_BANDWIDTH, GNC): spread(0.6),
    (BEST_BANDWIDTH, GC): spread(0.3),
}
#: Claim, problems for which it holds, problems for which it does not.
SLOWDOWN: list[tuple[str, list[Problem], list[Problem]]] = [
    ("gnc-like-gc", [problem(0.5)], [problem(0.5, {(N_SYS, GNC): slow(2.2)})]),
    (
        "random-allocation-excepted",
        [problem(0.5, {(RANDOM, GNC): slow(2.2)})],
        [problem(0.5, {(T_CPU, GNC): slow(2.2)})],
    ),
    (
        "random-placement-matters",
        [problem(0.5, {(None, RANDOM): slow(2.2)})],
        [problem(0.5, {(None, RANDOM): slow(2.2), (T_CPU, RANDOM): slow(2.05)})],
    ),
    (
        "naive-placement-will-do",
        [problem(0.5, {(None, GNC): slow(1.5)})],
        [problem(0.5, {(None, GNC): slow(2.2)})],
    ),
]
BALANCE: list[tuple[str, list[Problem], list[Problem]]] = [
    (
        "gc-balances-best",
        [problem(0.5, {(None, GC): spread(0.3)}), problem(0.7)],
        [problem(0.5, {(None, GC): spread(0.3), (T_CPU, GC): spread(0.6)})],
    ),
    (
        "gnc-balances-better-than-random",
        [problem(0.5, {(None, RANDOM): spread(0.6)})],
        [problem(0.5, {(None, RANDOM): spread(0.6), (T_CPU, RANDOM): spread(0.4)})],
    ),
    (
        "occupancy-follows-users",
        [problem(0.5)],
        [problem(0.5, {(None, RANDOM): {"users_correlation": 0.2}})],
    ),
    (
        "balance-does-not-matter",
        [problem(0.5, {(None, GNC): spread(0.6)})],
        [problem(0.5, {(None, GNC): spread(0.6) | slow(2.2)})],
    ),
]
BY_LOAD: list[tuple[str, list[Problem], list[Problem]]] = [
    (
        "order-at-every-load",
        [problem(0.5, _SPREADS), problem(0.9, _SPREADS)],
        [
            problem(0.5, _SPREADS),
            problem(0.9, {**_SPREADS, (BEST_BANDWIDTH, GC): spread(0.7)}),
        ],
    ),
]


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig5], [flip[0] for flip in SLOWDOWN])
    assert_all_claims([fig6], [flip[0] for flip in BALANCE])
    assert_all_claims([fig7], [flip[0] for flip in BY_LOAD])


@pytest.mark.parametrize(
    ("name", "good", "bad"), SLOWDOWN, ids=[f[0] for f in SLOWDOWN]
)
def test_a_claim_on_slowdowns_holds_and_fails(
    name: str, good: list[Problem], bad: list[Problem]
) -> None:
    assert_flips(fig5, name, tables_of(fig5, *good), tables_of(fig5, *bad))


@pytest.mark.parametrize(("name", "good", "bad"), BALANCE, ids=[f[0] for f in BALANCE])
def test_a_claim_on_balance_holds_and_fails(
    name: str, good: list[Problem], bad: list[Problem]
) -> None:
    assert_flips(fig6, name, tables_of(fig6, *good), tables_of(fig6, *bad))


@pytest.mark.parametrize(("name", "good", "bad"), BY_LOAD, ids=[f[0] for f in BY_LOAD])
def test_a_claim_on_balance_by_load_holds_and_fails(
    name: str, good: list[Problem], bad: list[Problem]
) -> None:
    assert_flips(fig7, name, tables_of(fig7, *good), tables_of(fig7, *bad))


@pytest.mark.parametrize(
    ("figure", "case"), FIGURES, ids=[figure.name for figure, _ in FIGURES]
)
def test_a_figure_draws_what_was_computed(figure: Reproduction, case: str) -> None:
    tables = small_tables(figure, case)
    assert isinstance(figure.draw(tables), Figure)
    assert set(figure.summary(tables)["K"]) <= {8, 12}


def test_the_table_of_slowdowns_has_both_placements_at_every_load() -> None:
    table = fig5.summary(tables_of(fig5, problem(0.2), problem(0.9)))
    assert label(T_CPU, GNC) in table["contender"]
    assert label(T_CPU, RANDOM) in table["contender"]
    assert table["bin"].unique().sort().to_list() == [0.2, 0.9]
    assert table["mean"].abs().max() == 0.0


def test_only_sets_of_load_one_half_count_for_the_balance() -> None:
    wide: Change = {(None, GC): spread(0.9)}
    table = fig6.summary(tables_of(fig6, problem(0.5), problem(0.7, wide)))
    assert table["sets"].unique().to_list() == [1]
    assert table["mean"].unique().to_list() == [0.5]
    lone = tables_of(fig6, problem(0.7))
    assert not holds(fig6, "gc-balances-best", lone)
    assert not holds(fig6, "balance-does-not-matter", lone)


def test_the_note_on_generated_profiles_is_printed_below_the_boxes() -> None:
    drawn = fig15.draw(tables_of(fig15, problem(0.5)))
    assert "OST profiles generated" in drawn.get_supxlabel()
    assert drawn.axes[0].get_title() == "K = 60"
