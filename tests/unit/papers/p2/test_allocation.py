# SPDX-License-Identifier: MIT
"""Figures 8, 9, 17 and 18 of target allocation: claims on the allocation."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from penstock.experiments.reproduction import Reproduction
from penstock.papers.p2.allocation import fig8, fig9, fig17, fig18
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
    label,
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
        "ta-is-bba-unsaturated",
        [
            problem(0.3, {(BEST_BANDWIDTH, None): {"io_load": 0.9}}),
            problem(0.5, {(T_CPU, GNC): slow(1.9)}),
        ],
        [problem(0.3, {(BEST_BANDWIDTH, GNC): {"io_load": 0.9} | slow(1.9)})],
    ),
    (
        "limited-information-pays",
        [problem(0.5, {(RANDOM, RANDOM): slow(2.2)})],
        [problem(0.5, {(RANDOM, RANDOM): slow(2.05)})],
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
        "slowdown-disadvantages-static",
        [problem(0.5, {(STATIC, GNC): slow(3.0) | idle(0.21)})],
        [problem(0.5, {(STATIC, GNC): slow(2.1) | idle(0.3)})],
    ),
    (
        "fine-tuned-pays",
        [problem(0.5, {(T_CPU, GNC): idle(0.1) | slow(1.5)})],
        [problem(0.5, {(T_CPU, GNC): idle(0.3) | slow(1.5)})],
    ),
]


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig8], [flip[0] for flip in SLOWDOWN])
    assert_all_claims([fig9], [flip[0] for flip in IDLETIME])


@pytest.mark.parametrize(
    ("name", "good", "bad"), SLOWDOWN, ids=[f[0] for f in SLOWDOWN]
)
def test_a_claim_on_slowdowns_holds_and_fails(
    name: str, good: list[Problem], bad: list[Problem]
) -> None:
    assert_flips(fig8, name, tables_of(fig8, *good), tables_of(fig8, *bad))


@pytest.mark.parametrize(
    ("name", "good", "bad"), IDLETIME, ids=[f[0] for f in IDLETIME]
)
def test_a_claim_on_idle_time_holds_and_fails(
    name: str, good: list[Problem], bad: list[Problem]
) -> None:
    assert_flips(fig9, name, tables_of(fig9, *good), tables_of(fig9, *bad))


@pytest.mark.parametrize(
    ("figure", "case"),
    [(fig8, IO_NODES), (fig9, IO_NODES), (fig17, OSTS), (fig18, OSTS)],
    ids=["fig8", "fig9", "fig17", "fig18"],
)
def test_a_figure_draws_what_was_computed(figure: Reproduction, case: str) -> None:
    tables = small_tables(figure, case)
    assert isinstance(figure.draw(tables), Figure)
    assert figure.summary(tables)["K"].unique().to_list() == [8, 12]


def test_the_table_of_slowdowns_has_its_two_parts() -> None:
    table = fig8.summary(tables_of(fig8, problem(0.5)))
    rows = table.filter(contender=label(T_CPU)).select("metric", "mean")
    assert dict(rows.iter_rows()) == {
        "mean_io_slowdown": 2.0,
        "rho_io": 1.0,
        "rho_con": 1.0,
    }
    assert label(MCKP) in table["contender"]


def test_the_table_of_idle_times_compares_with_t_cpu() -> None:
    table = fig9.summary(tables_of(fig9, problem(0.5, {(STATIC, GNC): idle(0.3)})))
    ratios = table.filter(metric="machine_idletime over t-cpu")
    means = dict(ratios.select("contender", "mean").iter_rows())
    assert means[label(T_CPU)] == 0.0
    assert means[label(STATIC)] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("figure", "name"),
    [(fig8, "bba-a-problem-at-very-high-load"), (fig9, "ta-ahead-at-larger-load")],
)
def test_a_claim_fails_if_no_set_has_its_load(figure: Reproduction, name: str) -> None:
    assert not holds(figure, name, tables_of(figure, problem(0.2)))


def test_a_number_of_applications_without_high_loads_does_not_count() -> None:
    """With K = 20 no set has an I/O-load of 1 or more."""
    high = problem(1.1, {(BEST_BANDWIDTH, GNC): slow(2.1)})
    few = problem(0.2, applications=20)
    tables = tables_of(fig8, high, few)
    assert holds(fig8, "bba-a-problem-at-very-high-load", tables)


def test_random_allocation_does_not_count_as_an_informed_one() -> None:
    tables = tables_of(fig8, problem(0.5, {(RANDOM, GNC): slow(9.0)}))
    assert not holds(fig8, "allocation-matters-more", tables)
