# SPDX-License-Identifier: MIT
"""Figures 12 and 13 of target allocation: OSTs compared with I/O nodes."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from penstock.experiments.reproduction import Scale
from penstock.papers.p2.osts import fig12, fig13
from penstock.papers.p2.study import (
    BEST_BANDWIDTH,
    GNC,
    IO_NODES,
    MCKP,
    OSTS,
    STATIC,
    T_CPU,
    label,
)
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


def both_cases(*loads: float, nodes: Change, osts: Change) -> list[Problem]:
    """Return a problem of each case per load."""
    return [
        problem(load, change, case)
        for load in loads
        for case, change in ((IO_NODES, nodes), (OSTS, osts))
    ]


#: Claim, problems for which it holds, problems for which it does not.
OUTCOME: list[tuple[str, list[Problem], list[Problem]]] = [
    (
        "bba-better-under-little-stress",
        [
            problem(0.1, {(BEST_BANDWIDTH, GNC): slow(1.5)}, OSTS),
            problem(0.5, case=OSTS),
        ],
        [
            problem(0.1, case=OSTS),
            problem(0.5, {(BEST_BANDWIDTH, GNC): slow(1.5)}, OSTS),
        ],
    ),
    (
        "bba-degrades-quickly",
        [
            problem(0.1, case=OSTS),
            problem(0.5, {(BEST_BANDWIDTH, GNC): slow(2.5)}, OSTS),
        ],
        [
            problem(0.5, {(BEST_BANDWIDTH, GNC): slow(2.5)}, OSTS),
            problem(0.9, case=OSTS),
        ],
    ),
    (
        "ta-matches-bba-when-needed",
        [
            problem(
                0.1, {(BEST_BANDWIDTH, GNC): slow(1.5), (T_CPU, GNC): slow(1.55)}, OSTS
            ),
            problem(0.5, {(BEST_BANDWIDTH, GNC): slow(3)}, OSTS),
        ],
        [problem(0.1, {(BEST_BANDWIDTH, GNC): slow(1.5)}, OSTS)],
    ),
    (
        "static-excellent",
        [problem(0.5, {(STATIC, GNC): slow(2.1)}, OSTS)],
        [problem(0.5, {(STATIC, GNC): idle(0.3)}, OSTS)],
    ),
]
DIFFERENCE: list[tuple[str, list[Problem], list[Problem]]] = [
    (
        "differences-below-5-per-cent",
        both_cases(0.2, 0.8, nodes={}, osts={(BEST_BANDWIDTH, GNC): slow(2.05)}),
        both_cases(0.2, 0.8, nodes={(T_CPU, GNC): idle(0.25)}, osts={}),
    ),
    (
        "bba-difference-grows",
        [
            problem
            for load in (0.2, 0.5, 0.8)
            for problem in both_cases(
                load, nodes={}, osts={(BEST_BANDWIDTH, GNC): slow(1 + load)}
            )
        ],
        [
            problem
            for load in (0.2, 0.5, 0.8)
            for problem in both_cases(
                load, nodes={}, osts={(BEST_BANDWIDTH, GNC): slow(3 - load)}
            )
        ],
    ),
    (
        "earlier-cut-off",
        [
            *both_cases(
                0.2,
                nodes={(BEST_BANDWIDTH, GNC): slow(1)},
                osts={(BEST_BANDWIDTH, GNC): slow(1)},
            ),
            *both_cases(0.8, nodes={(BEST_BANDWIDTH, GNC): slow(1)}, osts={}),
        ],
        [
            *both_cases(0.2, nodes={(BEST_BANDWIDTH, GNC): slow(1)}, osts={}),
            *both_cases(
                0.8,
                nodes={(BEST_BANDWIDTH, GNC): slow(1)},
                osts={(BEST_BANDWIDTH, GNC): slow(1)},
            ),
        ],
    ),
    (
        "static-unreliable",
        both_cases(0.5, nodes={(STATIC, GNC): slow(2.5)}, osts={}),
        both_cases(0.5, nodes={}, osts={}),
    ),
]


def test_every_claim_is_tested() -> None:
    assert_all_claims([fig12], [flip[0] for flip in OUTCOME])
    assert_all_claims([fig13], [flip[0] for flip in DIFFERENCE])


@pytest.mark.parametrize(("name", "good", "bad"), OUTCOME, ids=[f[0] for f in OUTCOME])
def test_a_claim_on_the_outcome_holds_and_fails(
    name: str, good: list[Problem], bad: list[Problem]
) -> None:
    assert_flips(fig12, name, tables_of(fig12, *good), tables_of(fig12, *bad))


@pytest.mark.parametrize(
    ("name", "good", "bad"), DIFFERENCE, ids=[f[0] for f in DIFFERENCE]
)
def test_a_claim_on_the_difference_holds_and_fails(
    name: str, good: list[Problem], bad: list[Problem]
) -> None:
    assert_flips(fig13, name, tables_of(fig13, *good), tables_of(fig13, *bad))


def test_an_allocation_that_is_never_ahead_does_not_fall_behind_earlier() -> None:
    never = both_cases(0.5, nodes={}, osts={})
    (claim,) = [c for c in fig13.claims if c.name == "earlier-cut-off"]
    verdict = claim.check(tables_of(fig13, *never))
    assert not verdict.holds
    assert verdict.numbers == {"K = 60": {"OSTs": 0.0, "I/O nodes": 0.0}}


def test_figure_13_needs_both_studies() -> None:
    studies = fig13.study(Scale.SMOKE)
    assert isinstance(studies, tuple)
    assert [study.name for study in studies] == ["p2-osts", "p2-io-nodes"]
    assert fig12.study(Scale.SMOKE) == studies[0]


def test_both_draw_what_was_computed() -> None:
    for figure, cases in ((fig12, (OSTS,)), (fig13, (OSTS, IO_NODES))):
        tables = small_tables(figure, *cases)
        assert isinstance(figure.draw(tables), Figure)
        assert figure.summary(tables).height > 0


def test_the_outcome_leaves_out_mckp() -> None:
    changed = problem(0.5, {(T_CPU, GNC): slow(3.0)}, OSTS)
    table = fig12.summary(tables_of(fig12, changed))
    slowdowns = table.filter(metric="mean_io_slowdown")
    means = dict(slowdowns.select("contender", "mean").iter_rows())
    assert means[label(T_CPU)] == 3.0
    assert label(MCKP) not in means


def test_the_difference_is_relative_to_io_nodes_with_its_error() -> None:
    problems = both_cases(0.5, nodes={}, osts={(BEST_BANDWIDTH, GNC): slow(3.0)})
    problems += both_cases(0.5, nodes={}, osts={(BEST_BANDWIDTH, GNC): slow(5.0)})
    table = fig13.summary(tables_of(fig13, *problems))
    (line,) = table.filter(
        metric="mean_io_slowdown", contender=label(BEST_BANDWIDTH)
    ).to_dicts()
    assert line["mean"] == pytest.approx(4.0 / 2.0 - 1)
    # 1.96 s / sqrt(2) of the values 3 and 5, over the mean of the I/O nodes.
    assert line["error"] == pytest.approx(1.96 / 2.0)
    assert line["high"] - line["low"] == pytest.approx(2 * line["error"])
    assert line["sets"] == 2
