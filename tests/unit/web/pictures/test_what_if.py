# SPDX-License-Identifier: MIT
"""What another policy would have done, by simulation of the archive."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.errors import InputError, UnavailableError
from penstock.live.wire.messages import (
    PastJob,
    ReportedOperation,
    RunWithOperations,
)
from penstock.web.pictures import what_if as module
from penstock.web.pictures.past_picture import POINTS
from penstock.web.pictures.what_if import ask_what_if, what_if
from support.archives import WALL_S, operation, record, run

HOUR = (WALL_S, WALL_S + 100.0)


def _two_jobs(folder: Path) -> None:
    """Archive two jobs that wanted to move 10 GB each at 1 GB/s, at the same time."""
    moved: dict[str, Any] = {"moved_bytes": 1e10, "capacity": 1e9, "lost_s": 10.0}
    record(
        folder,
        (run("7:a", lost_s=10.0), [operation(0.0, 20.0, **moved)]),
        (run("8:b", lost_s=10.0), [operation(0.0, 20.0, **moved)]),
    )


def _asked(folder: Path, policy: str = "fcfs") -> dict[str, Any]:
    return what_if(folder, policy, "fair-share", *HOUR, compiled=False)


def test_first_come_first_served_instead_of_equal_shares(tmp_path: Path) -> None:
    _two_jobs(tmp_path)
    answer = _asked(tmp_path)
    rows = {row["job"]: row for row in answer["jobs"]}
    assert rows.keys() == {"7:a", "8:b"}
    # Under equal shares both lose the same; now one of them loses nothing.
    assert rows["7:a"]["present"] == pytest.approx(rows["8:b"]["present"])
    best = max(row["policy"] for row in rows.values())
    assert best > rows["7:a"]["present"]


def _running(key: str, *operations: ReportedOperation) -> dict[str, Any]:
    """Return a job that runs since the begin, as the daemon tells it."""
    user, _, name = key.partition(":")
    job = PastJob(name, int(user), "", 1, WALL_S, None, None, 1e10, 5.0, 0.5, "fcfs")
    document: dict[str, Any] = msgspec.to_builtins(
        RunWithOperations(job, [*operations])
    )
    return document


def _under_way(begin_s: float) -> ReportedOperation:
    """Return an operation that has moved 10 GB at half of 1 GB/s by now, 100 s."""
    times_s = WALL_S + begin_s, WALL_S + 100.0
    moved_bytes = 0.5e9 * (100.0 - begin_s)
    lost_s = 0.5 * (100.0 - begin_s)
    return ReportedOperation(*times_s, moved_bytes, lost_s, lost_s, 1e9, "fcfs", [])


def test_operations_under_way_count_and_jobs_without_any_are_named(
    tmp_path: Path,
) -> None:
    _two_jobs(tmp_path)
    running = [_running("9:new", _under_way(80.0)), _running("9:computes")]
    answer = what_if(
        *(tmp_path, "fcfs", "fair-share", *HOUR), under_way=running, compiled=False
    )
    actual = {row["job"]: row["actual"] for row in answer["jobs"]}
    left_s = run("8:b").left_s
    assert left_s is not None
    alone = 1.0 - 10.0 / (min(left_s, 100.0) - run("8:b").joined_s)
    # It has lost 10 of its 100 s, though its operation has not ended.
    assert actual == pytest.approx({"7:a": alone, "8:b": alone, "9:new": 0.9})
    assert answer["left_out"] == ["9:computes"]
    new = next(s for s in answer["picture"]["series"] if s["job"] == "9:new")
    assert sum(new["rates"]) * 100.0 / POINTS == pytest.approx(1e10, rel=0.01)


def test_an_operation_that_began_earlier_counts_in_part(tmp_path: Path) -> None:
    running = [_running("9:new", _under_way(-100.0))]
    answer = what_if(
        *(tmp_path, "fcfs", "fair-share", *HOUR), under_way=running, compiled=False
    )
    (row,) = answer["jobs"]
    assert row["actual"] == pytest.approx(0.5)
    (series,) = answer["picture"]["series"]
    assert sum(series["rates"]) * 100.0 / POINTS == pytest.approx(0.5e11, rel=0.01)


def test_the_simulated_picture(tmp_path: Path) -> None:
    _two_jobs(tmp_path)
    picture = _asked(tmp_path)["picture"]
    assert len(picture["times"]) == POINTS
    assert picture["bandwidth"][0] == pytest.approx(1e9)
    assert {series["job"] for series in picture["series"]} == {"7:a", "8:b"}
    for series in picture["series"]:
        moved_bytes = sum(series["rates"]) * 100.0 / POINTS
        assert moved_bytes == pytest.approx(1e10, rel=0.01)
    together = [sum(rates) for rates in zip(*(s["rates"] for s in picture["series"]))]  # noqa: B905
    assert max(together) <= 1.001e9


def test_storages_do_not_share(tmp_path: Path) -> None:
    moved: dict[str, Any] = {"moved_bytes": 1e10, "capacity": 1e9}
    record(
        tmp_path,
        (run("7:a", storage="x"), [operation(0.0, 10.0, **moved)]),
        (run("8:b", storage="y"), [operation(0.0, 10.0, **moved)]),
    )
    answer = _asked(tmp_path)
    assert [row["policy"] for row in answer["jobs"]] == pytest.approx([1.0, 1.0])
    assert answer["picture"]["bandwidth"][0] == pytest.approx(2e9)


def test_nothing_to_simulate(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no job has moved anything in this time"):
        _asked(tmp_path)


def test_too_many_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_OPERATIONS", 1)
    _two_jobs(tmp_path)
    with pytest.raises(InputError, match="more than 1 operations in this time"):
        _asked(tmp_path)


def test_an_unknown_policy(tmp_path: Path) -> None:
    _two_jobs(tmp_path)
    with pytest.raises(InputError, match="did you mean 'fcfs'"):
        _asked(tmp_path, "fcsf")


# --- The process ----------------------------------------------------------------------


def _request(folder: Path, policy: str) -> dict[str, Any]:
    begin_s, end_s = HOUR
    return {
        "folder": str(folder),
        "policy": policy,
        "present": "fair-share",
        "begin_s": begin_s,
        "end_s": end_s,
        "compiled": False,
    }


def test_another_process_gives_the_same(tmp_path: Path) -> None:
    _two_jobs(tmp_path)
    answer = asyncio.run(ask_what_if(_request(tmp_path, "fcfs")))
    assert answer == json.loads(json.dumps(_asked(tmp_path)))
    with pytest.raises(InputError, match="did you mean 'fcfs'"):
        asyncio.run(ask_what_if(_request(tmp_path, "fcsf")))


def test_a_process_that_fails_or_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnavailableError, match="the simulation failed"):
        asyncio.run(ask_what_if({}))
    monkeypatch.setattr(module, "_LIMIT_S", 0.0)
    with pytest.raises(UnavailableError, match="takes too long"):
        asyncio.run(ask_what_if(_request(tmp_path, "fcfs")))
