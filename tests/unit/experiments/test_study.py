# SPDX-License-Identifier: MIT
"""Studies: their pieces, and the rows of a piece."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from penstock.analysis import measure, min_yield_bound
from penstock.errors import InputError, UnknownNameError
from penstock.experiments.study import METRICS, Piece, Point, Study, sweep
from penstock.sim import simulate
from penstock.workloads import Synthetic

SMALL = sweep("synthetic", {"horizon": 20000.0}, {"pressure": (0.5, 0.8)})
STUDY = Study("t", SMALL, 4, ("fcfs", "fair-share"))


def test_a_sweep_is_all_combinations() -> None:
    points = sweep("io-sets", {"noise": 0.5}, {"n_high": (0, 40), "horizon": (1.0,)})
    assert points == (
        Point("io-sets", (("noise", 0.5), ("n_high", 0), ("horizon", 1.0))),
        Point("io-sets", (("noise", 0.5), ("n_high", 40), ("horizon", 1.0))),
    )


def test_pieces_cover_every_instance_once_under_names_of_their_own() -> None:
    pieces = list(STUDY.pieces())
    covered = [
        (piece.point, index)
        for piece in pieces
        for index in range(piece.first, piece.first + piece.count)
    ]
    assert sorted(covered) == [(p, i) for p in (0, 1) for i in range(4)]
    names = [piece.key for piece in pieces]
    assert names == sorted(set(names))


def test_instances_that_share_a_schedule_stay_together() -> None:
    study = Study("a", (Point("apex", (("windows", 3),)),), 7, ("fcfs",))
    assert [(p.first, p.count) for p in study.pieces()] == [(0, 3), (3, 3), (6, 1)]


def test_cost_is_the_number_of_operations() -> None:
    short, long = (
        Study("t", (Point("synthetic", (("horizon", h),)),), 1, ("fcfs",))
        for h in (20000.0, 40000.0)
    )
    (a,), (b,) = short.pieces(), long.pieces()
    assert a.cost() == Synthetic(horizon=20000.0).operations(1, 0)
    assert b.cost() > 1.5 * a.cost()


def test_rows_are_those_of_the_simulator() -> None:
    study = replace(STUDY, bounded=True, yields=True)
    rows = Piece(study, 1, 2, 1).run()
    instance = Synthetic(horizon=20000.0, pressure=0.8).instance(1, 2)
    assert [row["policy"] for row in rows] == ["fcfs", "fair-share"]
    for row in rows:
        run = simulate(instance, row["policy"])
        metrics = measure(run)
        assert {name: row[name] for name in METRICS} == {
            name: getattr(metrics, name) for name in METRICS
        }
        assert (row["point"], row["instance"]) == (1, 2)
        assert row["pressure"] == instance.pressure()
        assert row["bound"] == min_yield_bound(instance).min_yield
        assert row["yields"] == run.yields.tolist()


def test_rows_do_not_depend_on_how_instances_are_grouped() -> None:
    together = Piece(STUDY, 0, 0, 3).run()
    apart = [row for i in range(3) for row in Piece(STUDY, 0, i, 1).run()]
    for row in (*together, *apart):
        del row["seconds"]
    assert together == apart


def test_the_digest_is_that_of_the_declaration() -> None:
    digests = {
        study.digest()
        for study in (
            STUDY,
            replace(STUDY, name="u"),
            replace(STUDY, points=SMALL[:1]),
            replace(STUDY, instances=5),
            replace(STUDY, policies=("fcfs",)),
            replace(STUDY, seed=2),
            replace(STUDY, bounded=True),
            replace(STUDY, yields=True),
        )
    }
    assert len(digests) == 8
    assert pickle.loads(pickle.dumps(STUDY)).digest() == STUDY.digest()  # noqa: S301


def test_an_impossible_study_is_refused_at_once() -> None:
    with pytest.raises(UnknownNameError, match="unknown workload 'nope'"):
        replace(STUDY, points=(Point("nope"),))
    with pytest.raises(InputError, match="out of range"):
        replace(STUDY, points=(Point("synthetic", (("horizon", -1.0),)),))
    with pytest.raises(UnknownNameError, match="unknown policy 'fsfc'"):
        replace(STUDY, policies=("fsfc",))
    with pytest.raises(InputError, match="listed twice"):
        replace(STUDY, policies=("set-10", "set-10:"))
    with pytest.raises(InputError, match=r"applications\[0\]: .* has no period"):
        next(replace(STUDY, policies=("set-10:period=given",)).rows(0, 0))
    for many in (-1, 0, 1_000_000_000):
        with pytest.raises(InputError, match=f"^instances: {many} is out of range"):
            replace(STUDY, instances=many)
    with pytest.raises(InputError, match="has no workload or no policy"):
        replace(STUDY, points=())
    with pytest.raises(InputError, match="has no workload or no policy"):
        replace(STUDY, policies=())
