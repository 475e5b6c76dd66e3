# SPDX-License-Identifier: MIT
"""The dashboard of a real daemon: documents, events, rights and faults."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra `web`")
pytest.importorskip("uvicorn", reason="needs the extra `web`")

from support.pages import PageDaemon
from support.users import NEEDS_ROOT, NOBODY, SOMEBODY, as_user, open_for_all
from support.waiting import LIMIT_S, until


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


#: Opens connections without a word; then waits for the end of its input.
CONNECTIONS = """
import resource, socket, sys
count = int(sys.argv[2])
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
address = ("127.0.0.1", int(sys.argv[1]))
held = [socket.create_connection(address) for _ in range(count)]
print("open", flush=True)
sys.stdin.read()
"""


@NEEDS_ROOT
def test_10000_connections_do_not_keep_a_reader_out(daemon: PageDaemon) -> None:
    page = _web_process(daemon)
    command = [sys.executable, "-c", CONNECTIONS, str(daemon.port), "2500"]
    with daemon.events() as events, ExitStack() as stack:
        floods = [
            stack.enter_context(subprocess.Popen(command, stdin=PIPE, stdout=PIPE))
            for _ in range(4)
        ]
        until(lambda: daemon.get("/api/reader")[0] == 200)
        for flood in floods:
            assert flood.stdout is not None
            assert flood.stdout.readline() == b"open\n"
        # They stay open, and take neither places nor memory.
        assert daemon.get("/api/status")[0] == 200
        assert len(list(Path(f"/proc/{page}/fd").iterdir())) < 400
        begun_s = time.time()
        assert any(data.get("time", 0.0) > begun_s for _, data, _ in events)
        for flood in floods:
            flood.communicate()
    assert _web_process(daemon) == page
    assert daemon.status()["policy"] == "fair-share"


HUGE = "x" * 10_000
#: Method, path and body of a request, and the statuses that refuse it.
TOO_MUCH: list[tuple[str, str, bytes | None, set[int]]] = [
    ("GET", f"/api/jobs/{HUGE}", None, {400, 404}),
    ("GET", f"/static/{HUGE}.js", None, {404}),
    ("GET", f"/api/picture?from={'9' * 10_000}&to={HUGE}", None, {400}),
    ("GET", f"/api/what-if?policy={HUGE}", None, {400, 503}),
    ("GET", f"/api/status?{'a=b&' * 3000}", None, {200}),
    ("GET", f"/{HUGE * 100}", None, {0, 400}),
    ("POST", "/api/acts", bytes(10_000_000), {0, 400, 403}),
    ("POST", "/login", bytes(10_000_000), {0, 303, 403}),
]


@pytest.mark.parametrize(("method", "path", "body", "statuses"), TOO_MUCH)
def test_huge_parameters_are_refused(
    daemon: PageDaemon, method: str, path: str, body: bytes | None, statuses: set[int]
) -> None:
    status, answer = daemon.send(method, path, body, Sec_Fetch_Site="same-origin")
    assert status in statuses, answer[:200]
    assert daemon.get("/api/reader")[0] == 200
    assert "Traceback" not in daemon.log


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_origins_read_and_write_nothing(daemon: PageDaemon, site: str) -> None:
    for path in ("/api/status", "/api/events", "/api/what-if?policy=fcfs", "/metrics"):
        assert daemon.get(path, Sec_Fetch_Site=site)[0] == 403
    act = b'{"act": "policy", "policy": "fcfs"}'
    page = daemon.json("/api/reader")["page"]
    for headers in (
        {"Sec_Fetch_Site": site, "X_Penstock_Page": page},
        {"Origin": "http://evil.example", "X_Penstock_Page": page},
        {"Sec_Fetch_Site": "same-origin", "X_Penstock_Page": "0" * 64},
        {"Sec_Fetch_Site": "same-origin"},
    ):
        assert daemon.send("POST", "/api/acts", act, **headers)[0] == 403
    assert daemon.status()["policy"] == "fair-share"


#: Fields of a job that never decrease.
_GROWING = ("moved", "held_up", "age", "operations")
#: Fields of a job that do not change while two jobs write without a pause.
_CONSTANT = ("job", "user", "nodes", "limit", "granted", "staged")


def test_the_numbers_are_those_of_ctl(daemon: PageDaemon) -> None:
    """What the page shows lies between the answers of ctl before and after it."""
    with daemon.events() as events:
        before, asked_s = daemon.status(), time.time()
        shown = next(
            data
            for name, data, _ in events
            # The poll began after `before`.
            if name == "status" and data["time"] > asked_s + 1.0
        )
    after = daemon.status()
    assert before["decisions"] <= shown["decisions"] <= after["decisions"]
    lines = [
        {line["job"]: line for line in document["jobs"]}
        for document in (before, shown, after)
    ]
    for job in ("climate", "genome"):
        first, middle, last = (each[job] for each in lines)
        for field in _GROWING:
            assert first[field] <= middle[field] <= last[field], field
        for field in _CONSTANT:
            assert first[field] == middle[field] == last[field], field


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
            with daemon.events() as events:
                next(events)
                stop(daemon)
                assert all(name != "error" for name, _, _ in events)
            until(lambda pid=pid: not Path(f"/proc/{pid}").exists())  # type: ignore[misc]
            assert "Traceback" not in daemon.log
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
        for forged in ("", "0", operator[:-1], operator + "0", nobody[::-1], HUGE):
            bearer = f"Bearer {forged}"
            assert daemon.get("/api/status", Authorization=bearer)[0] == 401
            cookie = f"penstock_session={forged}"
            assert daemon.get("/api/status", Cookie=cookie)[0] == 401
    finally:
        daemon.close()


@NEEDS_ROOT
def test_the_user_behind_a_proxy_at_a_unix_socket(tmp_path: Path) -> None:
    """A web server that runs as nobody forwards the requests of two readers."""
    open_for_all(tmp_path)
    web = f"unix:{tmp_path / 'page.sock'}"
    daemon = PageDaemon(tmp_path, web=web, web_proxy="nobody", users="all")
    try:
        daemon.start()
        daemon.write("climate")
        until(lambda: daemon.job("climate"))

        def jobs(reader: str) -> list[str]:
            document = daemon.json("/api/status", X_Remote_User=reader)
            return [line["job"] for line in document["jobs"]]

        assert as_user(NOBODY, lambda: jobs("operator:ann")) == ["climate"]
        assert as_user(NOBODY, lambda: jobs("daemon")) == []
        assert as_user(NOBODY, lambda: daemon.get("/api/status")[0]) == 403
        # Others are who the kernel says, and name nobody.
        assert as_user(SOMEBODY, lambda: daemon.json("/api/reader")["user"]) == SOMEBODY
        named = as_user(
            SOMEBODY, lambda: daemon.get("/api/status", X_Remote_User="root")[0]
        )
        assert named == 403
    finally:
        daemon.close()


def test_a_restart_with_jobs_that_run_spoils_nothing(tmp_path: Path) -> None:
    daemon = PageDaemon(tmp_path, bandwidth="16 MB/s", lease="60 s")
    try:
        daemon.start()
        writer = daemon.write("climate")
        until(lambda: _job(daemon).get("moved", 0.0) > 3e7)
        limit = b'{"act": "limit", "job": "climate", "limit": "4 MB/s"}'
        assert daemon.send("POST", "/api/acts", limit, **_own(daemon))[0] == 200
        stopped_s = time.time()
        assert daemon.stop() == 0
        begun_s = time.time()
        daemon.start()
        # What the job did before is no rate of now.
        with daemon.events() as events:
            rates = [data["rates"] for name, data, _ in _some(events, 3)]
        assert rates
        assert all(rate < 3e7 for each in rates for rate in each.values())
        # The limit holds, and the change is listed with its undoing.
        until(lambda: _job(daemon).get("limit") == 4e6)
        start, act = daemon.json("/api/acts")["acts"]
        assert start["act"] == {"act": "start"}
        assert act["undo"]["limit"] == "none"
        # The operation that was open at the stop is drawn; then there is a gap.
        path = f"/api/picture?from={stopped_s - 1.0}&to={time.time()}"
        picture = daemon.json(path)
        (series,) = picture["series"]
        early = [
            rate
            for at, rate in zip(picture["times"], series["rates"], strict=True)
            if at < stopped_s - 0.3
        ]
        assert all(rate > 0.0 for rate in early)
        gaps = [gap for gap in picture["unknown"] if gap[1] - gap[0] > 0.01]
        assert any(begin < begun_s + 60.0 and end > stopped_s for begin, end in gaps)
        writer.kill()
        writer.wait(LIMIT_S)
        until(lambda: not _job(daemon))
        # No byte counts twice.
        runs = daemon.json("/api/history")["jobs"]
        assert len(runs) == 2
        size = (daemon.data / "climate").stat().st_size
        assert sum(run["moved"] for run in runs) <= 1.01 * size
    finally:
        daemon.close()


def _job(daemon: PageDaemon) -> dict[str, Any]:
    """Return the status of the only job; empty if there is none."""
    lines = daemon.json("/api/status")["jobs"]
    return dict(lines[0]) if lines else {}


def _own(daemon: PageDaemon) -> dict[str, str]:
    """Return the headers of a page of this server."""
    text = daemon.json("/api/reader")["page"]
    return {"X_Penstock_Page": text, "Sec_Fetch_Site": "same-origin"}


def _some(events: Iterator[Any], count: int) -> list[Any]:
    """Return so many events with a status, the next ones."""
    found: list[Any] = []
    while len(found) < count:
        event = next(events)
        if event[0] == "status":
            found.append(event)
    return found
