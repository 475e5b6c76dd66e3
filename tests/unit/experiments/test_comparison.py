# SPDX-License-Identifier: MIT
"""Comparing policies: the same rows whatever the number and the order of workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.analysis import measure, min_yield_bound
from penstock.errors import InputError, PolicyError
from penstock.experiments.comparison import Comparison, compare
from penstock.experiments.runners.executors import Executor, Inline, LocalPool
from penstock.experiments.runners.tasks import Results, Warn
from penstock.experiments.source import FilePoint, Source
from penstock.experiments.study import METRICS, Piece, Point, Row
from penstock.model import write_instance
from penstock.policies import get_policy
from penstock.sim import simulate
from unit.samples import app, make, pair

SOURCE = Source(Point("synthetic", (("horizon", 20_000.0),)), count=2, seed=3)
POLICIES = ("fcfs", "set-10:initial=weight", "best-next-event")


class _Backwards:
    """Yields the last piece first."""

    def run(self, pieces: Iterable[Piece], warn: Warn) -> Results:
        yield from reversed(list(Inline().run(pieces, warn)))


def _compare(
    source: Source, policies: Sequence[str], executor: Executor, **options: Any
) -> list[Row]:
    return compare(source, [*map(get_policy, policies)], executor, **options)


def _timeless(rows: list[Row]) -> list[Row]:
    return [{**row, "seconds": 0.0} for row in rows]


@pytest.fixture(scope="module")
def alone() -> list[Row]:
    return _compare(SOURCE, POLICIES, Inline())


def test_rows_are_those_of_single_runs(alone: list[Row]) -> None:
    expected = [(index, policy) for index in (0, 1) for policy in POLICIES]
    assert [(row["instance"], row["policy"]) for row in alone] == expected
    for row in alone:
        instance = SOURCE.instance(row["instance"])
        assert row["digest"] == instance.digest()
        assert row["pressure"] == instance.pressure()
        assert row["window"] == (instance.window.begin, instance.window.end)
        assert row["bound"] == min_yield_bound(instance)
        assert row["applications"] == tuple(a.name for a in instance.applications)
        run = simulate(instance, row["policy"])
        metrics = measure(run)
        assert [row[m] for m in METRICS] == [getattr(metrics, m) for m in METRICS]
        assert row["yields"] == run.yields.tolist()
        assert (row["events"], row["decisions"]) == (run.events, run.decisions)
        assert row["seconds"] > 0


def test_no_policy_beats_the_bound(alone: list[Row]) -> None:
    for row in alone:
        assert row["min_yield"] <= row["bound"].min_yield + 1e-9


def test_two_workers_give_the_same_as_one(alone: list[Row]) -> None:
    assert _timeless(_compare(SOURCE, POLICIES, LocalPool(2))) == _timeless(alone)


def test_the_order_of_results_does_not_matter(alone: list[Row]) -> None:
    assert _timeless(_compare(SOURCE, POLICIES, _Backwards())) == _timeless(alone)


def test_the_order_of_policies_is_the_given_one() -> None:
    rows = _compare(SOURCE, POLICIES[::-1], Inline(), bounded=False)
    assert [row["policy"] for row in rows] == [*POLICIES[::-1]] * 2
    for row in rows:
        assert row["bound"] is None
        assert row["pressure"] > 0


def test_progress_counts_up_to_all_instances() -> None:
    seen: list[tuple[float, float, str]] = []

    def progress(done: float, total: float, message: str) -> None:
        seen.append((done, total, message))

    _compare(SOURCE, ["fcfs"], Inline(), bounded=False, progress=progress)
    assert seen == [(0, 2, ""), (1, 2, ""), (2, 2, "")]


def test_parameters_at_their_default_leave_the_plain_name() -> None:
    rows = _compare(SOURCE, ["set-10:update=completion"], Inline(), bounded=False)
    assert {row["policy"] for row in rows} == {"set-10"}


def test_applications_may_end_in_a_window_that_is_not_steady(tmp_path: Path) -> None:
    path = str(tmp_path / "open.json")
    write_instance(make(app("a", ("work", 1.0), ("io", 2.0))), path)
    source = Source(FilePoint(path))
    with pytest.raises(InputError, match=r"open\.json: applications\[0\]: 'a' ends at"):
        _compare(source, ["fcfs"], Inline())
    (row,) = _compare(source, ["fcfs"], Inline(), steady=False)
    assert row["min_yield"] == 1.0


@pytest.mark.parametrize("name", ["set-10", "set-fair-share", "share-priority"])
def test_periods_that_a_policy_must_be_given_are_required(
    tmp_path: Path, name: str
) -> None:
    path, phases = str(tmp_path / "some.json"), [("work", 1.0), ("io", 2.0)] * 9
    known, unknown = app("a", *phases, period=3.0), app("b", *phases)
    write_instance(make(known, unknown), path)
    policy = f"{name}:update=post,period=given"
    with pytest.raises(
        InputError, match=r"some\.json: applications\[1\]: 'b' has no period"
    ):
        _compare(Source(FilePoint(path)), [policy], Inline())
    write_instance(make(known), path := str(tmp_path / "all.json"))
    (row,) = _compare(Source(FilePoint(path)), [policy], Inline())
    assert row["policy"] == f"{name}:period=given,update=post"
    assert row["min_yield"] == 1.0


def test_a_message_names_its_instance() -> None:
    with pytest.raises(InputError, match=r"^instance 0: applications\[0\]: .* period"):
        _compare(SOURCE, ["set-10:period=given"], Inline())


def test_errors_come_back_from_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_failing.py").write_text(
        "def allocate(view, rates):\n    raise ValueError('no idea')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    with pytest.raises(PolicyError, match=r"policy my_failing\.allocate failed at t"):
        _compare(SOURCE, ["my_failing.allocate"], LocalPool(2), bounded=False)


def test_a_worker_that_dies_is_reported_with_its_instance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_dying.py").write_text(
        "import os\n\n\ndef allocate(view, rates):\n    os._exit(9)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    messages: list[str] = []
    with pytest.raises(InputError, match=r"^instance \d has killed 3 workers"):
        _compare(
            SOURCE,
            ["my_dying.allocate"],
            LocalPool(2),
            bounded=False,
            progress=lambda _done, _total, message: messages.append(message),
        )
    assert any("exit status 9" in message for message in messages)


def test_a_file_has_one_row_per_policy(tmp_path: Path) -> None:
    path = str(tmp_path / "pair.json")
    write_instance(pair(), path)
    fcfs, fair = _compare(Source(FilePoint(path)), ["fcfs", "fair-share"], Inline())
    assert fcfs["applications"] == fair["applications"] == ("a", "b")
    assert fcfs["yields"] == [1.0, 0.7]
    assert fair["yields"] == [0.7, 0.7]
    assert fcfs["bound"].min_yield == pytest.approx(0.7, abs=1e-8)


def test_every_instance_is_a_piece_even_where_a_study_takes_several() -> None:
    apex = Point("apex", (("windows", 3),))
    comparison = Comparison("c", (apex,), 4, ("fcfs",))
    names = [piece.name for piece in comparison.pieces()]
    assert names == ["instance 0", "instance 1", "instance 2", "instance 3"]
