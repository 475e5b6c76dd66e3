# SPDX-License-Identifier: MIT
"""Studies of placements: rows, class profiles, seeds, campaigns."""

from __future__ import annotations

import pickle
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.analysis import measure
from penstock.analysis.placement import measure_placement
from penstock.errors import InputError, UnknownNameError
from penstock.experiments.placement_study import (
    CLASS,
    CRITERIA,
    Contender,
    PlacementStudy,
)
from penstock.experiments.runners.campaign import run_study
from penstock.experiments.runners.executors import Inline
from penstock.experiments.study import Piece, Point, sweep
from penstock.placement import get_allocation, get_placement
from penstock.sim import simulate
from penstock.workloads.profiles.profile_classes import class_profile
from penstock.workloads.striped import Striped, minimum_load

GNC, GC = "greedy-non-clairvoyant", "greedy-clairvoyant"
SMALL: dict[str, float | str] = {
    "applications": 12,
    "targets": 5,
    "compute_nodes": 60,
    "case": "osts",
}
POINTS = sweep("striped", SMALL, {"load": (0.3, 0.9)})
STUDY = PlacementStudy(
    "t",
    POINTS,
    3,
    (
        Contender("best-bandwidth", GNC),
        Contender("t-cpu", GC),
        Contender("random", "random"),
        Contender("n-sys", GNC, policy="fcfs"),
        Contender("best-bandwidth", GNC, profile_information=CLASS),
    ),
)
FAMILY = Striped(applications=12, targets=5, compute_nodes=60, case="osts", load=0.9)


def _rows(study: PlacementStudy, point: int = 1, index: int = 2) -> list[Any]:
    return list(study.rows(point, index))


def _only(contender: Contender, **changes: Any) -> PlacementStudy:
    return replace(STUDY, contenders=(contender,), **changes)


def _untimed(rows: list[Any]) -> list[Any]:
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


# --- Rows -------------------------------------------------------------------------


def test_a_row_is_what_simulator_and_analysis_say() -> None:
    row = _rows(STUDY)[1]
    problem = FAMILY.problem(1, 2)
    allocation = get_allocation("t-cpu").allocate(problem)
    placement = get_placement(GC).place(problem, allocation)
    run = simulate(problem.instance(placement), "fair-share", until_first_end=True)
    metrics = measure_placement(problem, run)
    assert {name: row[name] for name in CRITERIA} == {
        name: getattr(metrics, name) for name in CRITERIA
    }
    assert (row["point"], row["instance"], row["workload"]) == (1, 2, "striped")
    assert (row["load"], row["case"], row["applications"]) == (0.9, "osts", 12)
    assert (row["allocation"], row["placement"]) == ("t-cpu", GC)
    assert (row["profile_information"], row["policy"]) == ("exact", "fair-share")
    assert row["minimum_load"] == minimum_load(problem)
    assert row["io_load"] == problem.io_load(allocation)
    assert row["complete"] is True
    assert row["window"] == run.instance.window.length
    assert row["events"] == run.events
    assert "min_yield" not in row


def test_the_correlation_is_that_of_users_and_occupancy() -> None:
    (row,) = _rows(_only(Contender("static", "random:seed=3")))
    problem = FAMILY.problem(1, 2)
    allocation = get_allocation("static").allocate(problem)
    placement = get_placement("random:seed=3").place(problem, allocation)
    run = simulate(problem.instance(placement), "fair-share", until_first_end=True)
    users = [sum(r in targets for targets in placement) for r in range(5)]
    expected = np.corrcoef(users, run.occupied)[0, 1]
    assert row["users_correlation"] == pytest.approx(expected, rel=1e-12)


def test_the_policy_shares_the_targets() -> None:
    (row,) = _rows(_only(Contender("n-sys", GNC, policy="fcfs")))
    assert row["policy"] == "fcfs"
    assert row == {**_rows(STUDY)[3], "seconds": row["seconds"]}
    (fair,) = _rows(_only(Contender("n-sys", GNC)))
    assert fair["mean_io_slowdown"] != row["mean_io_slowdown"]


def test_objectives_are_those_of_the_instance_of_the_workload() -> None:
    (row,) = _rows(_only(Contender("n-sys", GC, policy="fcfs"), objectives=True))
    family = replace(FAMILY, allocation="n-sys", placement=GC)
    expected = asdict(measure(simulate(family.instance(1, 2), "fcfs")))
    assert {name: row[name] for name in expected} == expected


def test_contenders_that_decide_alike_have_the_same_outcome() -> None:
    study = replace(
        STUDY,
        points=sweep("striped", SMALL, {"load": (0.05,)}),
        contenders=(Contender("t-cpu", GNC), Contender("best-bandwidth", GNC)),
    )
    one, other = _rows(study, point=0)
    assert one.pop("allocation") != other.pop("allocation")
    assert one == other


def test_unmeasurable_values_are_null_and_incomplete_rows_are_marked() -> None:
    # A fast application ends before a slow one has computed for the first time.
    quick = sweep("striped", {"applications": 20}, {"load": (0.4,)})
    study = _only(Contender("best-bandwidth", GNC), points=quick)
    rows = [row for index in range(20) for row in _rows(study, 0, index)]
    nulls = [row for row in rows if row["mean_io_slowdown"] is None]
    assert 0 < len(nulls) < len(rows)
    for row in nulls:
        assert row["complete"] is False
        assert {row[name] for name in CRITERIA} == {None}
    begun = [r for r in rows if not r["complete"] and r["mean_io_slowdown"] is not None]
    assert begun
    assert all(row["mean_io_slowdown"] > 1 for row in begun)


def test_rows_do_not_depend_on_how_instances_are_grouped() -> None:
    together = Piece(STUDY, 0, 0, 3).run()
    apart = [row for i in range(3) for row in Piece(STUDY, 0, i, 1).run()]
    assert _untimed(together) == _untimed(apart)


# --- Profiles that algorithms are given --------------------------------------------


def test_algorithms_decide_by_class_profiles_and_true_profiles_are_simulated() -> None:
    row = _rows(STUDY)[-1]
    problem = FAMILY.problem(1, 2)
    believed = tuple(
        int(class_profile(a.profile, "osts")[:5].argmax()) + 1
        for a in problem.applications
    )
    assert believed != get_allocation("best-bandwidth").allocate(problem)
    placement = get_placement(GNC).place(problem, believed)
    run = simulate(problem.instance(placement), "fair-share", until_first_end=True)
    assert row["mean_io_slowdown"] == measure_placement(problem, run).mean_io_slowdown
    assert row["io_load"] == problem.io_load(believed)
    assert row["minimum_load"] == minimum_load(problem)


def test_class_profiles_do_not_change_algorithms_that_use_no_profile() -> None:
    exact, classes = (
        _rows(_only(Contender("static", GNC, profile_information=kind)))[0]
        for kind in ("exact", CLASS)
    )
    assert exact.pop("profile_information") != classes.pop("profile_information")
    assert _untimed([exact]) == _untimed([classes])


# --- Seeds ------------------------------------------------------------------------


def test_random_algorithms_draw_from_seed_and_index_alone() -> None:
    study = _only(Contender("random", "random"))
    again = _only(Contender("random", "random"))
    assert _untimed(_rows(study)) == _untimed(_rows(again))
    assert _rows(study)[0]["allocation"] == "random"
    loads = {
        _rows(replace(study, seed=seed), index=index)[0]["io_load"]
        for seed in (1, 2)
        for index in (0, 1)
    }
    assert len(loads) == 4


def test_all_placements_of_a_random_allocation_place_the_same_numbers() -> None:
    contenders = tuple(Contender("random", p) for p in (GNC, GC, "random"))
    rows = _rows(replace(STUDY, contenders=contenders))
    assert len({row["io_load"] for row in rows}) == 1
    assert len({row["io_spread"] for row in rows}) == 3


# --- Declarations and campaigns ---------------------------------------------------


def test_the_digest_is_that_of_the_declaration() -> None:
    studies = (
        STUDY,
        replace(STUDY, name="u"),
        replace(STUDY, points=POINTS[:1]),
        replace(STUDY, instances=4),
        replace(STUDY, seed=2),
        replace(STUDY, contenders=STUDY.contenders[:2]),
        replace(STUDY, objectives=True),
    )
    assert len({study.digest() for study in studies}) == len(studies)
    assert pickle.loads(pickle.dumps(STUDY)).digest() == STUDY.digest()  # noqa: S301


def test_an_impossible_study_is_refused_at_once() -> None:
    for contender, kind in (
        (Contender("bba", GNC), "unknown allocation 'bba'"),
        (Contender("n-sys", "gnc"), "unknown placement 'gnc'"),
        (Contender("n-sys", GNC, policy="fsfc"), "unknown policy 'fsfc'"),
    ):
        with pytest.raises(UnknownNameError, match=kind):
            _only(contender)
    with pytest.raises(UnknownNameError, match="unknown profile information 'nothing'"):
        Contender("n-sys", GNC, profile_information="nothing")
    with pytest.raises(InputError, match="'synthetic' has no placement problems"):
        replace(STUDY, points=(Point("synthetic"),))
    with pytest.raises(InputError, match="listed twice"):
        replace(STUDY, contenders=(Contender("n-sys", GNC), Contender("n-sys:", GNC)))
    for nothing in ({"points": ()}, {"contenders": ()}, {"instances": 0}):
        with pytest.raises(InputError, match="nothing to do"):
            replace(STUDY, **nothing)


def test_a_campaign_keeps_and_sorts_the_rows(tmp_path: Path) -> None:
    table = run_study(STUDY, tmp_path / "one", Inline())
    assert table.height == 2 * 3 * 5
    key = (
        "point",
        "instance",
        "allocation",
        "placement",
        "profile_information",
        "policy",
    )
    assert table.select(key).is_unique().all()
    assert table.equals(table.sort(key))
    assert "seconds" not in table.columns
    run_study(STUDY, tmp_path / "other", Inline())
    one, other = (tmp_path / n / "table.parquet" for n in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    pieces = list((tmp_path / "one" / "pieces").iterdir())
    assert len(pieces) == 2
    pieces[0].unlink()
    run_study(STUDY, tmp_path / "one", Inline())
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("kind", ["allocate", "place"])
def test_results_of_an_algorithm_that_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    source = tmp_path / f"mine_{kind}.py"
    source.write_text(
        "NEEDS = frozenset()\n"
        "def allocate(problem):\n"
        "    return [1] * len(problem.applications)\n"
        "def place(problem, allocation):\n"
        "    return [range(n) for n in allocation]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    contender = Contender("static", GNC)
    field = "allocation" if kind == "allocate" else "placement"
    study = replace(
        STUDY,
        instances=1,
        contenders=(replace(contender, **{field: f"mine_{kind}.{kind}"}),),
    )
    messages: list[str] = []

    def note(_done: float, _total: float, message: str) -> None:
        messages.extend([message] if message else [])

    run_study(study, tmp_path / "out", Inline(), note)
    run_study(study, tmp_path / "out", Inline(), note)
    assert messages == []
    source.write_text(source.read_text() + "# better\n")
    run_study(study, tmp_path / "out", Inline(), note)
    assert len(messages) == 1
    assert "has changed since): computing them again" in messages[0]
