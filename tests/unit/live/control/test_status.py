# SPDX-License-Identifier: MIT
"""What one user may see of the jobs; `test_coordinator` asks through messages."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from penstock.errors import InputError
from penstock.live.control.controller import Controller
from penstock.live.control.phases import PhaseDetector
from penstock.live.control.records import JobRecord
from penstock.live.control.status import StatusView, find_job
from penstock.live.control.volumes import VolumePredictor
from penstock.live.wire.messages import GetStatus, JobCounters, UserRequest
from penstock.staging import StagingOrder
from support.controllers import B, controller_with, decide

KEYS = ("7:mine", "7:both", "8:both", "8:theirs", "9:7:mine")


def record(job_key: str) -> JobRecord:
    """Return the record of a job on node n."""
    user = int(job_key.partition(":")[0])
    job = JobRecord(job_key, user, 0, PhaseDetector(0.1), VolumePredictor(), 0.0)
    job.counters["n"] = JobCounters(job_key, 0, 0.0, 0.0, waiting=False, idle_s=inf)
    return job


def request(user: int, *, trusted: bool = False) -> UserRequest:
    """Return a request of a user."""
    return UserRequest(1, user, trusted, GetStatus())


# --- Names ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "trusted", "name", "job_key"),
    [
        (7, False, "mine", "7:mine"),
        (7, False, "7:mine", "7:mine"),
        (7, False, "both", "7:both"),
        (8, False, "both", "8:both"),
        (7, True, "both", "7:both"),
        (0, True, "theirs", "8:theirs"),
        (0, True, "8:both", "8:both"),
        # A job whose name is the key of another job does not hide that job.
        (0, True, "7:mine", "7:mine"),
        (9, False, "7:mine", "9:7:mine"),
    ],
)
def test_a_job_is_found_by_name_or_key(
    user: int, trusted: bool, name: str, job_key: str
) -> None:
    records = [record(key) for key in KEYS]
    assert find_job(records, name, request(user, trusted=trusted)).key == job_key


@pytest.mark.parametrize(
    ("user", "trusted", "name", "message"),
    [
        (7, False, "theirs", "there is no job 'theirs'"),
        (7, False, "8:both", "there is no job '8:both'"),
        (7, True, "nothing", "there is no job 'nothing'"),
        (0, True, "both", "several jobs are called 'both'"),
    ],
)
def test_a_job_that_is_not_found(
    user: int, trusted: bool, name: str, message: str
) -> None:
    records = [record(key) for key in KEYS]
    with pytest.raises(InputError, match=message):
        find_job(records, name, request(user, trusted=trusted))


# --- Lines and explanations -----------------------------------------------------------


def view(controller: Controller, user: int | None = None) -> StatusView:
    """Return the view of a user 5 seconds after the start."""
    jobs = {job.key: record(job.key) for job in controller.jobs()}
    return StatusView(user, "control", "2a", jobs, controller, 5.0)


def test_a_user_sees_the_own_jobs_and_root_sees_all() -> None:
    controller = controller_with("fair-share", *KEYS)
    names = [line.job_name for line in view(controller, 7).lines()]
    assert names == ["mine", "both"]
    assert len(view(controller).lines()) == len(KEYS)


def test_a_line_without_and_with_an_operation() -> None:
    controller = controller_with("fcfs", "7:a", "7:b")
    controller.post("7:b", 1.0, 1000.0)
    decide(controller, 1.0)
    idle, active = view(controller).lines()
    assert (idle.active, idle.grant, idle.limit, idle.volume_bytes) == (
        False,
        B,
        None,
        0.0,
    )
    assert (active.active, active.grant, active.remaining_bytes) == (True, B, 600.0)
    assert (active.age_s, active.lost_s, active.progress_yield) == (5.0, 0.0, 1.0)
    assert active.why.startswith("b may draw 100 B/s, all that it can use.")


def test_a_job_that_is_held_up_demands_its_cap() -> None:
    controller = controller_with("fair-share", "7:a")
    seen = view(controller)
    seen.jobs["7:a"].draw = 30.0
    seen.jobs["7:a"].counters["n"] = JobCounters("7:a", 1, 9.0, 0.0, True, 0.0)
    (line,) = seen.lines()
    assert (line.waiting, line.demanded, line.drawn_bytes_per_s) == (True, B, 30.0)
    seen.jobs["7:a"].counters["n"] = JobCounters("7:a", 1, 9.0, 0.0, False, 60.0)
    (line,) = seen.lines()
    assert (line.waiting, line.demanded, line.drawn_bytes_per_s) == (False, 0.0, 0.0)


def test_without_control_the_policy_explains_nothing() -> None:
    seen = replace(view(controller_with("fcfs", "7:a")), mode="off")
    text = seen.explanation(seen.jobs["7:a"])
    assert text == "Control is switched off: a draws what it can."


def test_a_dry_run_says_so_first() -> None:
    seen = replace(view(controller_with("fcfs", "7:a")), mode="dry-run")
    text = seen.explanation(seen.jobs["7:a"])
    assert text.startswith("Dry run: no call is held up. With control switched on: a ")


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        (
            StagingOrder((), stage=True),
            "Strategy 2a: its writes go to its journals; "
            "50 B in its journals have to wait.",
        ),
        (
            StagingOrder((), drain=True),
            "Strategy 2a: its writes go directly to the files; "
            "50 B in its journals are being drained.",
        ),
    ],
)
def test_staging_is_explained(order: StagingOrder, sentence: str) -> None:
    seen = view(controller_with("fcfs", "7:a"))
    job = seen.jobs["7:a"]
    job.order = order
    job.counters["n"] = JobCounters("7:a", 1, 0.0, 0.0, False, 0.0, staged_bytes=50.0)
    assert seen.explanation(job).endswith(sentence)
