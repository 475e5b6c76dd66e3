# SPDX-License-Identifier: MIT
"""What another policy would have done, by simulation of the archive."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError, UnavailableError
from penstock.web import what_if as module
from penstock.web.past_picture import POINTS
from penstock.web.what_if import ask_what_if, what_if
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


def test_jobs_that_run_are_left_out_by_name_and_real_yields_are_told(
    tmp_path: Path,
) -> None:
    _two_jobs(tmp_path)
    running = {"7:a": 0.25, "9:new": 0.5}
    answer = what_if(
        *(tmp_path, "fcfs", "fair-share", *HOUR), running=running, compiled=False
    )
    actual = {row["job"]: row["actual"] for row in answer["jobs"]}
    # b lost 10 s; what the operation of a under way has lost only the daemon knows.
    left_s = run("8:b").left_s
    assert left_s is not None
    length_s = min(left_s, 100.0) - run("8:b").joined_s
    assert actual == pytest.approx({"7:a": 0.25, "8:b": 1.0 - 10.0 / length_s})
    assert answer["left_out"] == ["9:new"]


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
    with pytest.raises(InputError, match="no job has ended an operation in this time"):
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
