# SPDX-License-Identifier: MIT
"""A real daemon archives real jobs, which are known and simulated after their end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import GetJobReport, ListPastJobs
from support.daemons import Daemon
from support.users import NEEDS_ROOT, NOBODY, as_user, open_for_all
from support.waiting import until


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Return a daemon that serves jobs in the order of their arrival."""
    with closing(Daemon(tmp_path, policy="fcfs", bandwidth="20 MB/s")) as made:
        made.start()
        yield made


def _run_two(daemon: Daemon) -> None:
    """Run a job, and one that waits until the first one is stopped."""
    big = daemon.write("big")
    until(lambda: daemon.job("big").get("moved", 0.0) > 0.0)
    small = daemon.write("small", 64)
    until(lambda: daemon.job("small").get("waiting", False))
    big.kill()
    assert small.wait(120) == 0
    until(lambda: not daemon.status()["jobs"])


def _history(daemon: Daemon) -> dict[str, dict[str, Any]]:
    done = daemon.command("history", "--json", "-")
    assert done.returncode == 0, done.stderr
    return {job["job"]: job for job in json.loads(done.stdout)["jobs"]}


def _report(daemon: Daemon, job: str) -> dict[str, Any]:
    done = daemon.command("report", job, "--json", "-")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_what_jobs_did_is_known_after_their_end(daemon: Daemon) -> None:
    _run_two(daemon)
    jobs = _history(daemon)
    assert jobs["small"]["moved"] >= 4 * 2**20
    assert jobs["small"]["lost"] > 0.0
    report = _report(daemon, "small")
    assert [delay["job"] for delay in report["delays"]] == ["big"]
    assert report["operations"][0]["policy"] == "fcfs"
    # The archive is simulated. Simulated and real yields differ by up to 0.6 on a busy
    # machine: `penstock bench advice` measures how near they are on an idle one, and
    # tests/unit/advice/job_report compares them with closed forms.
    assert 0.0 < report["policies"]["fcfs"] <= 1.0
    assert "It waited for big" in daemon.ctl("explain", "small")


def test_the_archive_outlives_a_killed_daemon(daemon: Daemon) -> None:
    _run_two(daemon)
    before = _history(daemon)
    daemon.kill()
    assert _history(daemon) == before
    daemon.start()
    assert _history(daemon) == before


def test_an_operation_that_a_stop_interrupts_is_archived(daemon: Daemon) -> None:
    job = daemon.write("long")
    until(lambda: any(job["active"] for job in daemon.status()["jobs"]))
    assert daemon.stop() == 0
    assert _history(daemon)["long"]["left"] is not None
    job.kill()


@NEEDS_ROOT
def test_users_see_their_own_jobs_only(tmp_path: Path) -> None:
    open_for_all(tmp_path)
    with closing(Daemon(tmp_path, users="all")) as daemon:
        daemon.start()
        assert daemon.write("secret", 4).wait(120) == 0
        until(lambda: "secret" in _history(daemon))

        def ask() -> tuple[list[str], str]:
            with Client(daemon.home / "agent.sock", 30.0) as client:
                names = [job.job_name for job in client.ask(ListPastJobs()).jobs]
                with pytest.raises(InputError) as refused:
                    client.ask(GetJobReport("secret"))
                return names, str(refused.value)

        names, reason = as_user(NOBODY, ask)
        assert names == []
        assert "there is no job 'secret'" in reason
