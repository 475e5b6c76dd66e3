# SPDX-License-Identifier: MIT
"""Figures of papers/2: they draw, and every claim can hold and can fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, judge
from penstock.experiments.output.plots import save_figure
from penstock.experiments.placement_study import Contender, PlacementStudy
from penstock.experiments.reproduction import Scale
from penstock.experiments.runners.campaign import run_study
from penstock.experiments.runners.executors import Inline
from penstock.experiments.study import sweep
from penstock.papers import FIGURES, get_figure
from penstock.papers.p1.policies import ALL_POLICIES
from penstock.papers.p2.study import (
    BBA,
    GC,
    GENERATED,
    GNC,
    IO_NODES,
    MCKP,
    NSYSA,
    OSTS,
    RANDOM,
    STATIC,
    TA,
)

NAMES = [name for name in FIGURES if name.startswith("p2-")]
PROFILES = ["p2-fig1", "p2-fig2", "p2-fig10"]
FACTS = {"version": "0", "command": "test"}
#: The same declarations with another set of profiles.
TWINS = {f"p2-fig{n + 9}": f"p2-fig{n}" for n in (5, 6, 7, 8, 9)}


# --- The studies and the figures --------------------------------------------------


def _studies(name: str, scale: Scale = Scale.SMOKE) -> tuple[PlacementStudy, ...]:
    work = get_figure(name).study(scale)
    return work if isinstance(work, tuple) else (work,)


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Tables]:
    """Return what gives the tables of a figure, from small studies."""
    small: dict[str, Any] = {"applications": 12, "targets": 5, "compute_nodes": 60}
    kept: dict[str, pl.DataFrame] = {}

    def rows(study: PlacementStudy) -> pl.DataFrame:
        if study.name not in kept:
            case = dict(study.points[0].settings).get("case", IO_NODES)
            points = sweep(
                "striped", {**small, "case": case}, {"load": (0.2, 0.4, 1.1)}
            )
            folder: Path = tmp_path_factory.mktemp(study.name)
            shrunk = replace(study, points=points, instances=2)
            kept[study.name] = run_study(shrunk, folder, Inline())
        return kept[study.name]

    def tables(name: str) -> Tables:
        work = get_figure(name).study(Scale.SMOKE)
        if isinstance(work, pl.DataFrame):
            return Tables(work, pl.DataFrame())
        parts = [rows(study) for study in _studies(name)]
        return Tables(pl.concat(parts, how="diagonal_relaxed"), pl.DataFrame())

    return tables


def test_every_figure_of_the_paper_is_there() -> None:
    numbers = [1, 2, *range(5, 19)]
    assert [f"p2-fig{n}" for n in numbers] + ["p2-sharing"] == NAMES


def test_figures_of_one_case_share_one_study() -> None:
    for scale in Scale:
        studies = [
            study
            for name in NAMES
            if name not in PROFILES
            for study in _studies(name, scale)
        ]
        assert {study.name for study in studies} == {
            *("p2-io-nodes", "p2-osts", "p2-sharing"),
        }
        assert len({study.digest() for study in studies}) == 3


def test_sharing_compares_all_policies_on_the_same_placements() -> None:
    (study,) = _studies("p2-sharing", Scale.PAPER)
    assert study.objectives
    assert study.instances > 100
    for allocation in (NSYSA, TA, BBA):
        for placement in (RANDOM, GNC):
            for policy in ALL_POLICIES:
                contender = Contender(allocation, placement, policy=policy)
                assert contender in study.contenders


def _shows_osts(name: str) -> bool:
    if name in PROFILES:
        return name == "p2-fig2"
    return any(study.name == "p2-osts" for study in _studies(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_draws_and_says_what_is_generated(
    name: str, computed: Callable[[str], Tables], tmp_path: Path
) -> None:
    figure, tables = get_figure(name), computed(name)
    drawn = figure.draw(tables)
    assert isinstance(drawn, Figure)
    for kind in ("png", "svg"):
        path = tmp_path / f"figure.{kind}"
        save_figure(drawn, str(path), FACTS)
        assert path.stat().st_size > 5_000
    assert figure.summary(tables).height > 0
    assert (GENERATED in figure.title) == _shows_osts(name)
    assert (GENERATED in path.read_text()) == _shows_osts(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_claims_of_a_figure_are_judged(
    name: str, computed: Callable[[str], Tables]
) -> None:
    claims = get_figure(name).claims
    records = judge(claims, computed(name))
    assert len({record["name"] for record in records}) == len(claims) > 0
    for record in records:
        assert record["numbers"], record["name"]
        assert all(abs(v) < float("inf") for v in record["numbers"].values())


@pytest.mark.parametrize("twin", TWINS)
def test_osts_are_judged_by_the_claims_of_the_io_nodes(twin: str) -> None:
    ours, theirs = get_figure(twin).claims, get_figure(TWINS[twin]).claims
    assert [claim.sentence for claim in ours] == [claim.sentence for claim in theirs]


# --- Claims, on tables made by hand -----------------------------------------------

Key = tuple[str | None, ...]
Change = Mapping[Key, Mapping[str, float]]
_DEFAULTS = {
    "mean_io_slowdown": 2.0,
    "rho_io": 1.0,
    "rho_con": 1.0,
    "io_spread": 0.5,
    "machine_idletime": 0.2,
    "users_correlation": 0.5,
    "min_yield": 0.5,
    "efficiency": 0.5,
}


def _set(load: float, change: Change | None = None, case: str = IO_NODES) -> Any:
    """Return the rows of one problem of papers/2, all alike but for `change`.

    Its keys: allocation, placement and (default: exact) what is told; None: any.
    """
    return _problem(_studies("p2-fig5")[0].contenders, "told", load, change, case)


def _shared(load: float, change: Change | None = None) -> Any:
    """Return the rows of one problem of p2-sharing; keys end with the policy."""
    (study,) = _studies("p2-sharing")
    return _problem(study.contenders, "policy", load, change, IO_NODES)


def _problem(
    contenders: tuple[Contender, ...],
    last: str,
    load: float,
    change: Change | None,
    case: str,
) -> list[dict[str, Any]]:
    rows = []
    for contender in contenders:
        labels = contender.labels()
        names = (labels["allocation"], labels["placement"], labels[last])
        row = {**labels, **_DEFAULTS, "case": case, "minimum_load": load}
        for key, values in (change or {}).items():
            full = (*key, "exact") if len(key) == 2 else key
            if all(k in (None, n) for k, n in zip(full, names, strict=True)):
                row |= values
        rows.append({**row, "complete": True, "instance": 0})
    return rows


def _tables(*problems: list[dict[str, Any]]) -> Tables:
    rows = [
        {**row, "point": number}
        for number, problem in enumerate(problems)
        for row in problem
    ]
    return Tables(pl.DataFrame(rows, infer_schema_length=None), pl.DataFrame())


def _slow(value: float) -> dict[str, float]:
    return {"mean_io_slowdown": value}


def _idle(value: float) -> dict[str, float]:
    return {"machine_idletime": value}


def _wide(value: float) -> dict[str, float]:
    return {"io_spread": value}


def _con(value: float) -> dict[str, float]:
    return {"rho_con": value}


def _io(value: float) -> dict[str, float]:
    return {"rho_io": value}


def _least(value: float) -> dict[str, float]:
    return {"min_yield": value}


CLASSES = "classes"
SMART = "periodic-greedy-yield"
LOOK_AHEAD = "look-ahead-greedy-yield"
FAIR = "fair-share"
YIELD_BASED = ("greedy-yield", LOOK_AHEAD, SMART, "best-next-event")
_SPREADS = {(BBA, RANDOM): _wide(0.9), (BBA, GNC): _wide(0.6), (BBA, GC): _wide(0.3)}
_FAST = {(BBA, GNC): _slow(1.0) | _idle(0.1), (TA, GNC): _slow(1.0) | _idle(0.1)}
_BETTER = {"min_yield": 0.6, "efficiency": 0.6, "mean_io_slowdown": 1.5}


def _both_cases(*loads: float, nodes: Change, osts: Change) -> list[Any]:
    return [
        _set(load, change, case)
        for load in loads
        for case, change in ((IO_NODES, nodes), (OSTS, osts))
    ]


#: Figure, claim, problems for which it holds, problems for which it does not.
FLIPS: list[tuple[str, str, list[Any], list[Any]]] = [
    ("p2-fig5", "gnc-like-gc", [_set(0.5)], [_set(0.5, {(NSYSA, GNC): _slow(2.2)})]),
    (
        "p2-fig5",
        "random-allocation-excepted",
        [_set(0.5, {(RANDOM, GNC): _slow(2.2)})],
        [_set(0.5, {(TA, GNC): _slow(2.2)})],
    ),
    (
        "p2-fig5",
        "random-placement-matters",
        [_set(0.5, {(None, RANDOM): _slow(2.2)})],
        [_set(0.5, {(None, RANDOM): _slow(2.2), (TA, RANDOM): _slow(2.05)})],
    ),
    (
        "p2-fig5",
        "naive-placement-will-do",
        [_set(0.5, {(None, GNC): _slow(1.5)})],
        [_set(0.5, {(None, GNC): _slow(2.2)})],
    ),
    (
        "p2-fig6",
        "gc-balances-best",
        [_set(0.5, {(None, GC): _wide(0.3)}), _set(0.7)],
        [_set(0.5, {(None, GC): _wide(0.3), (TA, GC): _wide(0.6)})],
    ),
    (
        "p2-fig6",
        "gnc-balances-better-than-random",
        [_set(0.5, {(None, RANDOM): _wide(0.6)})],
        [_set(0.5, {(None, RANDOM): _wide(0.6), (TA, RANDOM): _wide(0.4)})],
    ),
    (
        "p2-fig6",
        "occupancy-follows-users",
        [_set(0.5)],
        [_set(0.5, {(None, RANDOM): {"users_correlation": 0.2}})],
    ),
    (
        "p2-fig6",
        "balance-does-not-matter",
        [_set(0.5, {(None, GNC): _wide(0.6)})],
        [_set(0.5, {(None, GNC): _wide(0.6) | _slow(2.2)})],
    ),
    (
        "p2-fig7",
        "order-at-every-load",
        [_set(0.5, _SPREADS), _set(0.9, _SPREADS)],
        [_set(0.5, _SPREADS), _set(0.9, {**_SPREADS, (BBA, GC): _wide(0.7)})],
    ),
    ("p2-fig8", "bba-least-rho-io", [_set(0.5)], [_set(0.5, {(BBA, GNC): _io(1.1)})]),
    (
        "p2-fig8",
        "bba-much-more-congestion",
        [_set(0.5, {(BBA, GNC): _con(1.6)})],
        [_set(0.5, {(BBA, GNC): _con(1.6), (STATIC, GNC): _con(1.2)})],
    ),
    (
        "p2-fig8",
        "bba-congestion-linear",
        [_set(w, {(BBA, GNC): _con(5 * w)}) for w in (0.1, 0.4, 0.8, 1.2)],
        [_set(w, {(BBA, GNC): _con(5 * w**8)}) for w in (0.1, 0.4, 0.8, 1.2)],
    ),
    (
        "p2-fig8",
        "bba-a-problem-at-very-high-load",
        [_set(1.1, {(BBA, GNC): _slow(2.1)}), _set(0.9, {(BBA, GNC): _slow(1.0)})],
        [_set(1.1, {(BBA, GNC): _slow(1.9)}), _set(0.9, {(BBA, GNC): _slow(9.0)})],
    ),
    (
        "p2-fig8",
        "aware-vary-less",
        [_set(0.1), _set(0.9, {(BBA, GNC): _con(5), (TA, GNC): _con(2)})],
        [_set(0.1), _set(0.9, {(BBA, GNC): _con(5), (TA, GNC): _con(6)})],
    ),
    (
        "p2-fig8",
        "aware-pay-in-rho-io",
        [_set(0.1), _set(0.9, {(NSYSA, GNC): _io(2), (TA, GNC): _io(2)})],
        [_set(0.1), _set(0.9, {(NSYSA, GNC): _io(2)})],
    ),
    (
        "p2-fig8",
        "mckp-worst",
        [_set(w, {(MCKP, "exclusive"): _slow(9)}) for w in (0.2, 0.8)],
        [_set(0.2, {(MCKP, "exclusive"): _slow(9)}), _set(0.8)],
    ),
    (
        "p2-fig8",
        "bba-best-at-low-load",
        [_set(0.2), _set(0.5, {(NSYSA, GNC): _slow(1.0)})],
        [_set(0.2, {(NSYSA, GNC): _slow(1.9)})],
    ),
    (
        "p2-fig8",
        "allocation-matters-more",
        [_set(0.5, {(BBA, None): _slow(4.0)})],
        [_set(0.5, {(TA, RANDOM): _slow(4.0)})],
    ),
    (
        "p2-fig9",
        "same-order-at-low-load",
        [_set(0.2, _FAST), _set(0.5)],
        [_set(0.2, {**_FAST, (NSYSA, GNC): _idle(0.05)})],
    ),
    (
        "p2-fig9",
        "ta-ahead-at-larger-load",
        [_set(0.8, {(TA, GNC): _idle(0.18)})],
        [_set(0.8), _set(0.5, {(TA, GNC): _idle(0.1)})],
    ),
    (
        "p2-fig9",
        "ta-performs-like-bba",
        [_set(0.8), _set(0.5, {(TA, GNC): _slow(1.0)})],
        [_set(0.8, {(TA, GNC): _slow(1.7)})],
    ),
    (
        "p2-fig9",
        "static-good-at-high-load",
        [_set(0.9, {(STATIC, GNC): _idle(0.1)})],
        [_set(0.9, {(STATIC, GNC): _idle(0.3)}), _set(0.5, {(STATIC, GNC): _idle(0)})],
    ),
    (
        "p2-fig9",
        "fine-tuned-pays",
        [_set(0.5, {(TA, GNC): _idle(0.1) | _slow(1.5)})],
        [_set(0.5, {(TA, GNC): _idle(0.3) | _slow(1.5)})],
    ),
    (
        "p2-fig11",
        "negligible",
        [_set(0.5, {(BBA, GC, CLASSES): _slow(3)})],
        [_set(0.5, {(TA, GNC, CLASSES): _slow(2.03)})],
    ),
    (
        "p2-fig11",
        "ta-differs-most",
        [_set(0.5, {(TA, GNC, CLASSES): _slow(1.9)})],
        [_set(0.5, {(TA, GNC, CLASSES): _slow(2.1), (BBA, GC, CLASSES): _slow(1.5)})],
    ),
    (
        "p2-fig11",
        "gc-like-gnc-but-at-low-load",
        [_set(0.1, {(BBA, GC, CLASSES): _slow(2.1)}), _set(0.5)],
        [_set(0.1), _set(0.5, {(BBA, GC, CLASSES): _slow(2.1)})],
    ),
    (
        "p2-fig11",
        "ta-best-even-so",
        [_set(0.5), _set(0.9, {(TA, GNC, CLASSES): _idle(0.1)})],
        [_set(0.5, {(TA, GNC, CLASSES): _idle(0.21)}), _set(0.9)],
    ),
    (
        "p2-fig11",
        "robust",
        [_set(0.5, {(TA, GNC, CLASSES): _slow(2.05)})],
        [_set(0.5, {(BBA, GC, CLASSES): _slow(2.2)})],
    ),
    (
        "p2-fig12",
        "bba-better-under-little-stress",
        [_set(0.1, {(BBA, GNC): _slow(1.5)}, OSTS), _set(0.5, case=OSTS)],
        [_set(0.1, case=OSTS), _set(0.5, {(BBA, GNC): _slow(1.5)}, OSTS)],
    ),
    (
        "p2-fig12",
        "bba-degrades-quickly",
        [_set(0.1, case=OSTS), _set(0.5, {(BBA, GNC): _slow(2.5)}, OSTS)],
        [_set(0.5, {(BBA, GNC): _slow(2.5)}, OSTS), _set(0.9, case=OSTS)],
    ),
    (
        "p2-fig12",
        "ta-matches-bba-when-needed",
        [
            _set(0.1, {(BBA, GNC): _slow(1.5), (TA, GNC): _slow(1.55)}, OSTS),
            _set(0.5, {(BBA, GNC): _slow(3)}, OSTS),
        ],
        [_set(0.1, {(BBA, GNC): _slow(1.5)}, OSTS)],
    ),
    (
        "p2-fig12",
        "static-excellent",
        [_set(0.5, {(STATIC, GNC): _slow(2.1)}, OSTS)],
        [_set(0.5, {(STATIC, GNC): _idle(0.3)}, OSTS)],
    ),
    (
        "p2-fig13",
        "differences-below-5-per-cent",
        _both_cases(0.2, 0.8, nodes={}, osts={(BBA, GNC): _slow(2.05)}),
        _both_cases(0.2, 0.8, nodes={(TA, GNC): _idle(0.25)}, osts={}),
    ),
    (
        "p2-fig13",
        "bba-difference-grows",
        [
            problem
            for load in (0.2, 0.5, 0.8)
            for problem in _both_cases(
                load, nodes={}, osts={(BBA, GNC): _slow(1 + load)}
            )
        ],
        [
            problem
            for load in (0.2, 0.5, 0.8)
            for problem in _both_cases(
                load, nodes={}, osts={(BBA, GNC): _slow(3 - load)}
            )
        ],
    ),
    (
        "p2-fig13",
        "earlier-cut-off",
        [
            *_both_cases(
                0.2, nodes={(BBA, GNC): _slow(1)}, osts={(BBA, GNC): _slow(1)}
            ),
            *_both_cases(0.8, nodes={(BBA, GNC): _slow(1)}, osts={}),
        ],
        [
            *_both_cases(0.2, nodes={(BBA, GNC): _slow(1)}, osts={}),
            *_both_cases(
                0.8, nodes={(BBA, GNC): _slow(1)}, osts={(BBA, GNC): _slow(1)}
            ),
        ],
    ),
    (
        "p2-fig13",
        "static-unreliable",
        _both_cases(0.5, nodes={(STATIC, GNC): _slow(2.5)}, osts={}),
        _both_cases(0.5, nodes={}, osts={}),
    ),
    (
        "p2-sharing",
        "yield-based-help-the-worst-off",
        [_shared(0.4, {(None, None, p): _least(0.6) for p in YIELD_BASED})],
        [_shared(0.4, {(None, None, p): _least(0.6) for p in YIELD_BASED[1:]})],
    ),
    (
        "p2-sharing",
        "no-free-lunch",
        [_shared(0.4, {(None, None, LOOK_AHEAD): {**_BETTER, "efficiency": 0.4}})],
        [_shared(0.4, {(None, None, LOOK_AHEAD): _BETTER})],
    ),
    *(
        (
            "p2-sharing",
            f"sharing-for-placement-{allocation}",
            [
                _shared(w, {(allocation, RANDOM, SMART): _least(0.6)})
                for w in (0.4, 1.0)
            ],
            [_shared(0.4, {(allocation, RANDOM, SMART): _least(0.6)}), _shared(1.0)],
        )
        for allocation in (NSYSA, TA, BBA)
    ),
    (
        "p2-sharing",
        "placement-worth-less",
        [
            _shared(
                0.4, {(None, GNC, FAIR): _least(0.7), (None, GNC, SMART): _least(0.6)}
            )
        ],
        [_shared(0.4, {(None, GNC, FAIR): _least(0.6), (TA, GNC, SMART): _least(0.7)})],
    ),
    (
        "p2-sharing",
        "placement-still-counts",
        [_shared(0.4, {(None, GNC, None): _slow(1.5)})],
        [
            _shared(
                0.4, {(None, GNC, None): _slow(1.5), (None, GNC, "fcfs"): _slow(2.1)}
            )
        ],
    ),
]


def _holds(figure: str, name: str, tables: Tables) -> bool:
    (claim,) = [c for c in get_figure(figure).claims if c.name == name]
    (record,) = judge((claim,), tables)
    assert record["numbers"]
    return bool(record["holds"])


@pytest.mark.parametrize(
    ("figure", "name", "good", "bad"), FLIPS, ids=[f"{f[0]}-{f[1]}" for f in FLIPS]
)
def test_a_claim_can_hold_and_can_fail(
    figure: str, name: str, good: list[Any], bad: list[Any]
) -> None:
    assert _holds(figure, name, _tables(*good))
    assert not _holds(figure, name, _tables(*bad))


def test_every_claim_is_shown_to_hold_and_to_fail() -> None:
    shown = {(figure, name) for figure, name, *_ in FLIPS}
    declared = {
        (name, claim.name)
        for name in NAMES
        if name not in TWINS and name not in PROFILES
        for claim in get_figure(name).claims
    }
    assert shown == declared


# --- Claims on profiles -----------------------------------------------------------


def _profiles() -> pl.DataFrame:
    rows = get_figure("p2-fig1").study(Scale.SMOKE)
    assert isinstance(rows, pl.DataFrame)
    return rows


@pytest.mark.parametrize(
    ("figure", "name", "good", "bad"),
    [
        (
            "p2-fig1",
            "four-behaviours",
            lambda rows: rows,
            lambda rows: rows.filter(pl.col("class") != "neutral"),
        ),
        (
            "p2-fig1",
            "the-number-matters",
            lambda rows: rows,
            lambda rows: rows.with_columns(pl.lit(1.0).alias("bandwidth")),
        ),
        (
            "p2-fig10",
            "curves-keep-their-class",
            lambda rows: rows,
            lambda rows: rows.with_columns(pl.lit(1.0).alias("curve")),
        ),
        (
            "p2-fig10",
            "best-number-kept",
            lambda rows: rows.with_columns(pl.col("bandwidth").alias("curve")),
            lambda rows: rows.with_columns(pl.lit(1.0).alias("curve")),
        ),
    ],
)
def test_a_claim_on_profiles(
    figure: str,
    name: str,
    good: Callable[[pl.DataFrame], pl.DataFrame],
    bad: Callable[[pl.DataFrame], pl.DataFrame],
) -> None:
    rows = _profiles()
    assert _holds(figure, name, Tables(good(rows), pl.DataFrame()))
    assert not _holds(figure, name, Tables(bad(rows), pl.DataFrame()))


def test_profiles_are_normalised() -> None:
    rows = _profiles()
    assert rows.height == 189 * 8
    by_profile = rows.group_by("profile").agg(
        pl.max("normalised"), pl.col("centred").log().mean().alias("mean_log")
    )
    assert (by_profile["normalised"] == 1).all()
    assert by_profile["mean_log"].abs().max() < 1e-9
