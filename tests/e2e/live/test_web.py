# SPDX-License-Identifier: MIT
"""The dashboard of a real daemon: documents, events, rights and faults."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra `web`")
pytest.importorskip("uvicorn", reason="needs the extra `web`")

from support.pages import PageDaemon
from support.users import NEEDS_ROOT, NOBODY, as_user, open_for_all
from support.waiting import until


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageDaemon]:
    """Return a daemon with two writers that share 8 MB/s."""
    made = PageDaemon(tmp_path_factory.mktemp("web"), users="all")
    try:
        made.start()
        made.write("climate")
        made.write("genome")
        until(lambda: len(_active(made.status())) == 2)
        yield made
    finally:
        made.close()


def _active(status: dict[str, Any]) -> list[str]:
    return [line["job"] for line in status["jobs"] if line["active"]]


def _web_process(daemon: PageDaemon) -> int:
    """Return the process of the page."""
    assert daemon.process is not None
    path = Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children")
    for child in path.read_text().split():
        if b"web_process" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    return 0


def test_the_status_is_that_of_ctl(daemon: PageDaemon) -> None:
    document, expected = daemon.json("/api/status"), daemon.status()
    assert document.keys() == expected.keys()
    assert [line.keys() for line in document["jobs"]] == [
        line.keys() for line in expected["jobs"]
    ]
    for key in ("mode", "policy", "bandwidth", "agents", "faults"):
        assert document[key] == expected[key]
    for line in document["jobs"]:
        assert line["granted"] == 4e6
        assert line["why"]


def test_events_follow_one_another(daemon: PageDaemon) -> None:
    with daemon.events() as events:
        name, picture, _ = next(events)
        assert (name, picture["reset"]) == ("picture", True)
        seen = [
            event for event in (next(events) for _ in range(5)) if event[0] == "status"
        ]
    times = [data["time"] for _, data, _ in seen]
    assert times == sorted(set(times))
    assert sorted(_active(seen[-1][1])) == ["climate", "genome"]
    # The browser reconnects, and gets what it has missed: no more, no less.
    with daemon.events(seen[0][2]) as events:
        name, data, _ = next(events)
        if name == "picture":
            assert data["reset"] is False
            assert all(time > times[0] for time in data["times"])
        else:
            assert data["time"] > times[0]


def test_a_job_is_explained_and_reported(daemon: PageDaemon) -> None:
    document = daemon.json("/api/jobs/climate")
    assert "climate may draw 4 MB/s" in document["explanation"]
    assert document["job"]["job"] == "climate"
    assert daemon.get("/api/jobs/nobody")[0] == 404


def test_metrics(daemon: PageDaemon) -> None:
    status, text = daemon.get("/metrics")
    assert status == 200
    assert b"penstock_jobs 2.0" in text


def test_a_foreign_name_is_refused(daemon: PageDaemon) -> None:
    assert daemon.get("/api/status", Host="evil.example")[0] == 403


@NEEDS_ROOT
def test_other_users_see_their_own_jobs(daemon: PageDaemon) -> None:
    document = as_user(NOBODY, lambda: daemon.json("/api/status"))
    assert document["jobs"] == []
    assert as_user(NOBODY, lambda: daemon.get("/api/jobs/climate")[0]) == 404


def test_many_idle_connections_leave_room_for_a_reader(daemon: PageDaemon) -> None:
    address = ("127.0.0.1", daemon.port)
    idle = [socket.create_connection(address, timeout=60) for _ in range(400)]
    try:
        # Those above the bound were closed at once. When some are gone, others get in.
        for each in idle[:300]:
            each.close()
        until(lambda: daemon.get("/api/status")[0] == 200)
    finally:
        for each in idle:
            each.close()
    assert daemon.status()["policy"] == "fair-share"


def test_a_killed_page_comes_back(daemon: PageDaemon) -> None:
    before = _web_process(daemon)
    os.kill(before, signal.SIGKILL)
    until(lambda: _web_process(daemon) not in (0, before))
    until(lambda: daemon.get("/api/status")[0] == 200)
    assert "the web page has ended with status -9" in daemon.log


def test_a_daemon_that_hangs(daemon: PageDaemon) -> None:
    assert daemon.process is not None
    with daemon.events() as events:
        next(events)
        os.kill(daemon.process.pid, signal.SIGSTOP)
        try:
            data = next(data for name, data, _ in events if name == "silence")
            assert data["since"] is not None
            assert "does not answer" in data["reason"]
        finally:
            os.kill(daemon.process.pid, signal.SIGCONT)
        assert next(name for name, _, _ in events if name == "status")


def test_the_page_ends_with_the_daemon(tmp_path: Path) -> None:
    for stop in (PageDaemon.stop, PageDaemon.kill):
        daemon = PageDaemon(tmp_path / stop.__name__)
        try:
            daemon.start()
            pid = _web_process(daemon)
            stop(daemon)
            until(lambda pid=pid: not Path(f"/proc/{pid}").exists())  # type: ignore[misc]
        finally:
            daemon.close()


@NEEDS_ROOT
def test_tokens_of_two_users(tmp_path: Path) -> None:
    open_for_all(tmp_path)
    path = tmp_path / "tokens"
    daemon = PageDaemon(tmp_path, web_token=str(path), users="all")
    make = ("serve", f"--web-token={path}", "--make-web-token")
    operator, nobody = (
        daemon.command(*make, user).stdout.strip() for user in ("operator", str(NOBODY))
    )
    try:
        daemon.start()
        daemon.write("climate")
        until(lambda: daemon.job("climate"))
        assert daemon.get("/api/status")[0] == 401
        seen = [
            [
                line["job"]
                for line in daemon.json("/api/status", Authorization=f"Bearer {token}")[
                    "jobs"
                ]
            ]
            for token in (operator, nobody)
        ]
        assert seen == [["climate"], []]
    finally:
        daemon.close()
