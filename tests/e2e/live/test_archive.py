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
    # A long gap: what a job writes is one operation on a busy machine, too.
    settings = {"policy": "fcfs", "bandwidth": "20 MB/s", "gap": "2 s"}
    with closing(Daemon(tmp_path, **settings)) as made:
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


def _possible_yields(small: dict[str, Any], big: dict[str, Any]) -> tuple[float, float]:
    """Return the lowest and highest yield of small under fcfs, by the archived times.

    It waits until big has ended: at the latest when big really ended, at the earliest
    when big has moved its bytes with the whole bandwidth. On an idle machine these are
    the same. If big did not draw the bandwidth, small may get the rest at once.
    """
    (own,), (other,) = small["operations"], big["operations"]
    shared = own["shared"]
    length_s = own["end"] - own["begin"]
    alone_s = sorted((length_s - own["lost"], own["moved"] / shared))
    outside_s = small["job"]["left"] - small["job"]["joined"] - length_s
    drawn_s = other["moved"] / shared

    def reached(big_end_s: float, alone_s: float) -> float:
        wait_s = max(big_end_s - own["begin"], 0.0)
        return float(1.0 - wait_s / (wait_s + alone_s + outside_s))

    low = reached(other["end"], alone_s[0])
    if drawn_s < 0.95 * (other["end"] - other["begin"]):
        return low, 1.0
    return low, reached(other["begin"] + drawn_s, alone_s[1])


def test_what_jobs_did_is_known_after_their_end(daemon: Daemon) -> None:
    _run_two(daemon)
    jobs = _history(daemon)
    assert jobs["small"]["moved"] >= 4 * 2**20
    assert jobs["small"]["lost"] > 0.0
    report = _report(daemon, "small")
    assert [delay["job"] for delay in report["delays"]] == ["big"]
    assert report["operations"][0]["policy"] == "fcfs"
    low, high = _possible_yields(report, _report(daemon, "big"))
    assert low - 0.05 <= report["policies"]["fcfs"] <= high + 0.05
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
    # It is known while it goes on, too.
    assert _history(daemon)["long"]["left"] is None
    assert _report(daemon, "long")["operation_count"] == 1
    assert daemon.stop() == 0
    assert _history(daemon)["long"]["left"] is not None
    job.kill()


def test_a_job_that_outlives_a_killed_daemon_says_what_is_missing(
    daemon: Daemon,
) -> None:
    job = daemon.write("long")
    until(lambda: daemon.job("long").get("moved", 0.0) > 0.0)
    daemon.kill()
    daemon.start()
    until(lambda: daemon.job("long").get("active", False))
    job.kill()
    until(lambda: not daemon.status()["jobs"])
    # The operation under way was lost with the daemon.
    assert _history(daemon)["long"]["missing"] == "begin"
    assert "A daemon was started while it ran" in daemon.command("history").stdout
    assert "A daemon was started while it ran" in daemon.ctl("explain", "long")


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
