# SPDX-License-Identifier: MIT
"""Figures 8, 9, 17 and 18 of target allocation: claims on the allocation."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from penstock.papers.p2.allocation import idletime, slowdown
from penstock.papers.p2.pairs import FigurePair
from penstock.papers.p2.study import (
    BEST_BANDWIDTH,
    GNC,
    IO_NODES,
    MCKP,
    N_SYS,
    OSTS,
    RANDOM,
    STATIC,
    T_CPU,
)
from support.claim_flips import assert_all_claims, assert_flips, holds
from support.placement_tables import (
    Change,
    Problem,
    congestion,
    idle,
    problem,
    rho_io,
    slow,
    small_tables,
    tables_of,
)

_FAST: Change = {
    (BEST_BANDWIDTH, GNC): slow(1.0) | idle(0.1),
    (T_CPU, GNC): slow(1.0) | idle(0.1),
}
#: Claim, problems for which it holds, problems for which it does not.
SLOWDOWN: list[tuple[str, list[Problem], list[Problem]]] = [
    (
        "bba-least-rho-io",
        [problem(0.5)],
        [problem(0.5, {(BEST_BANDWIDTH, GNC): rho_io(1.1)})],
    ),
    (
        "bba-much-more-congestion",
        [problem(0.5, {(BEST_BANDWIDTH, GNC): congestion(1.6)})],
        [
            problem(
                0.5,
                {
                    (BEST_BANDWIDTH, GNC): congestion(1.6),
                    (STATIC, GNC): congestion(1.2),
                },
            )
        ],
    ),
    (
        "bba-congestion-linear",
        [
            problem(w, {(BEST_BANDWIDTH, GNC): congestion(5 * w)})
            for w in (0.1, 0.4, 0.8, 1.2)
        ],
        [
            problem(w, {(BEST_BANDWIDTH, GNC): congestion(5 * w**8)})
            for w in (0.1, 0.4, 0.8, 1.2)
        ],
    ),
    (
        "bba-a-problem-at-very-high-load",
        [
            problem(1.1, {(BEST_BANDWIDTH, GNC): slow(2.1)}),
            problem(0.9, {(BEST_BANDWIDTH, GNC): slow(1.0)}),
        ],
        [
            problem(1.1, {(BEST_BANDWIDTH, GNC): slow(1.9)}),
            problem(0.9, {(BEST_BANDWIDTH, GNC): slow(9.0)}),
        ],
    ),
    (
        "aware-vary-less",
        [
            problem(0.1),
            problem(
                0.9, {(BEST_BANDWIDTH, GNC): congestion(5), (T_CPU, GNC): congestion(2)}
            ),
        ],
        [
            problem(0.1),
            problem(
                0.9, {(BEST_BANDWIDTH, GNC): congestion(5), (T_CPU, GNC): congestion(6)}
            ),
        ],
    ),
    (
        "aware-pay-in-rho-io",
        [
            problem(0.1),
            problem(0.9, {(N_SYS, GNC): rho_io(2), (T_CPU, GNC): rho_io(2)}),
        ],
        [problem(0.1), problem(0.9, {(N_SYS, GNC): rho_io(2)})],
    ),
    (
        "mckp-worst",
        [problem(w, {(MCKP, "exclusive"): slow(9)}) for w in (0.2, 0.8)],
        [problem(0.2, {(MCKP, "exclusive"): slow(9)}), problem(0.8)],
    ),
    (
        "bba-best-at-low-load",
        [problem(0.2), problem(0.5, {(N_SYS, GNC): slow(1.0)})],
        [problem(0.2, {(N_SYS, GNC): slow(1.9)})],
    ),
    (
        "allocation-matters-more",
        [problem(0.5, {(BEST_BANDWIDTH, None): slow(4.0)})],
        [problem(0.5, {(T_CPU, RANDOM): slow(4.0)})],
    ),
]
IDLETIME: list[tuple[str, list[Problem], list[Problem]]] = [
    (
        "same-order-at-low-load",
        [problem(0.2, _FAST), problem(0.5)],
        [problem(0.2, {**_FAST, (N_SYS, GNC): idle(0.05)})],
    ),
    (
        "ta-ahead-at-larger-load",
        [problem(0.8, {(T_CPU, GNC): idle(0.18)})],
        [problem(0.8), problem(0.5, {(T_CPU, GNC): idle(0.1)})],
    ),
    (
        "ta-performs-like-bba",
        [problem(0.8), problem(0.5, {(T_CPU, GNC): slow(1.0)})],
        [problem(0.8, {(T_CPU, GNC): slow(1.7)})],
    ),
    (
        "static-good-at-high-load",
        [problem(0.9, {(STATIC, GNC): idle(0.1)})],
        [
            problem(0.9, {(STATIC, GNC): idle(0.3)}),
            problem(0.5, {(STATIC, GNC): idle(0)}),
        ],
    ),
    (
        "fine-tuned-pays",
        [problem(0.5, {(T_CPU, GNC): idle(0.1) | slow(1.5)})],
        [problem(0.5, {(T_CPU, GNC): idle(0.3) | slow(1.5)})],
    ),
]


def test_every_claim_is_tested() -> None:
    assert_all_claims([slowdown.io_nodes], [flip[0] for flip in SLOWDOWN])
    assert_all_claims([idletime.io_nodes], [flip[0] for flip in IDLETIME])


@pytest.mark.parametrize(
    ("name", "good", "bad"), SLOWDOWN, ids=[f[0] for f in SLOWDOWN]
)
def test_a_claim_on_slowdowns_holds_and_fails(
    name: str, good: list[Problem], bad: list[Problem]
) -> None:
    assert_flips(slowdown.io_nodes, name, tables_of(*good), tables_of(*bad))


@pytest.mark.parametrize(
    ("name", "good", "bad"), IDLETIME, ids=[f[0] for f in IDLETIME]
)
def test_a_claim_on_idle_time_holds_and_fails(
    name: str, good: list[Problem], bad: list[Problem]
) -> None:
    assert_flips(idletime.osts, name, tables_of(*good), tables_of(*bad))


@pytest.mark.parametrize("pair", [slowdown, idletime], ids=["slowdown", "idletime"])
def test_both_figures_of_a_pair_draw_what_was_computed(pair: FigurePair) -> None:
    for figure, case in ((pair.io_nodes, IO_NODES), (pair.osts, OSTS)):
        tables = small_tables(case)
        assert isinstance(figure.draw(tables), Figure)
        assert figure.summary(tables).height > 0


def test_the_table_of_slowdowns_has_its_two_parts() -> None:
    table = slowdown.io_nodes.summary(tables_of(problem(0.5)))
    means = dict(table.filter(allocation=T_CPU).select("metric", "mean").iter_rows())
    assert means == {"mean_io_slowdown": 2.0, "rho_io": 1.0, "rho_con": 1.0}
    assert MCKP in table["allocation"]


def test_the_table_of_idle_times_compares_with_t_cpu() -> None:
    table = idletime.io_nodes.summary(
        tables_of(problem(0.5, {(STATIC, GNC): idle(0.3)}))
    )
    ratios = table.filter(metric="ratio")
    means = dict(ratios.select("allocation", "mean").iter_rows())
    assert means[T_CPU] == 0.0
    assert means[STATIC] == pytest.approx(0.5)


@pytest.mark.parametrize(
    "name", ["bba-a-problem-at-very-high-load", "ta-ahead-at-larger-load"]
)
def test_a_claim_fails_if_no_set_has_its_load(name: str) -> None:
    figures = {c.name: f for f in (slowdown.osts, idletime.osts) for c in f.claims}
    assert not holds(figures[name], name, tables_of(problem(0.2)))


def test_random_allocation_does_not_count_as_an_informed_one() -> None:
    tables = tables_of(problem(0.5, {(RANDOM, GNC): slow(9.0)}))
    assert not holds(slowdown.io_nodes, "allocation-matters-more", tables)
