# SPDX-License-Identifier: MIT
"""What one user may see of the jobs; `test_coordinator` asks through messages."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import msgspec
import pytest

from penstock.errors import InputError
from penstock.live.control.activity.phases import PhaseDetector
from penstock.live.control.activity.requests import RequestMeter
from penstock.live.control.activity.volumes import VolumePredictor
from penstock.live.control.rates.controller import Controller
from penstock.live.control.records import JobRecord
from penstock.live.control.stager import Stager
from penstock.live.control.stagers import Stagers
from penstock.live.control.status import StatusView, find_job
from penstock.live.control.storage.bandwidth import BandwidthEstimator
from penstock.live.control.storage.shared_storage import SharedStorage
from penstock.live.wire.messages import GetStatus, JobCounters, UserRequest
from penstock.staging import StagingOrder, get_strategy
from support.controllers import B, controller_with, decide

TARGETS = ("left", "mid", "right")
KEYS = ("7:mine", "7:both", "8:both", "8:theirs", "9:7:mine")


def record(job_key: str, storage: SharedStorage | None = None) -> JobRecord:
    """Return the record of a job on node n."""
    user = int(job_key.partition(":")[0])
    storage = storage or SharedStorage("", controller_with("fcfs"), None)
    phases, predictor = PhaseDetector(0.1), VolumePredictor()
    job = JobRecord(job_key, user, 0, storage, phases, predictor, 0.0, 0.0)
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
        (7, True, "8:both", "8:both"),
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
        (7, False, "mime", "there is no job 'mime' .did you mean mine"),
        (7, False, "their", "there is no job 'their' .penstock ctl status lists"),
        (7, True, "both", "several jobs are called 'both' .*: 7:both or 8:both"),
        (0, True, "both", "several jobs are called 'both' .*: 7:both or 8:both"),
    ],
)
def test_a_job_that_is_not_found(
    user: int, trusted: bool, name: str, message: str
) -> None:
    records = [record(key) for key in KEYS]
    with pytest.raises(InputError, match=message):
        find_job(records, name, request(user, trusted=trusted))


def test_names_that_several_users_use_become_keys() -> None:
    controller = controller_with("fair-share", *KEYS)
    for key in ("7:both", "8:both", "7:mine"):
        controller.post(key, 1.0, 1e6)
    decide(controller, 1.0)
    seen = view(controller)
    both = seen.explanation(seen.jobs["7:both"])
    assert both.startswith("7:both may draw ")
    assert "8:both with " in both
    assert " mine with " in both
    assert seen.names.answer(both).job_keys == ["7:both", "8:both"]
    own = view(controller, 7)
    assert own.explanation(own.jobs["7:both"]).startswith("both may draw ")


# --- Lines and explanations -----------------------------------------------------------


def view(controller: Controller, user: int | None = None) -> StatusView:
    """Return the view of a user 5 seconds after the start."""
    storage = SharedStorage("", controller, None)
    jobs = {job.key: record(job.key, storage) for job in controller.jobs()}
    stagers = Stagers(Stager(get_strategy("2a"), 3, TARGETS))
    return StatusView(user, "control", jobs, 5.0, stagers=stagers)


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
    seen.jobs["7:a"].draw, seen.jobs["7:a"].read_s = 30.0, 5.0
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
    assert "penstock would have held up its calls for 0 s" in text
    assert "has held" not in text


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


def test_a_job_that_staging_may_slow_down_is_told() -> None:
    seen = view(controller_with("fcfs", "7:a"))
    job = seen.jobs["7:a"]
    job.order = StagingOrder((), stage=True)
    assert "may cost more" not in seen.explanation(job)
    job.most_processes = 4
    job.requests = RequestMeter(round_bytes=B, pause_s=3.0)  # 1 s alone
    assert "Its 4 processes pause for 75% of the time" in seen.explanation(job)


def test_the_targets_of_a_job_are_explained() -> None:
    seen = view(controller_with("fcfs", "7:a"))
    job = seen.jobs["7:a"]
    job.order = StagingOrder((0, 2), drain=True)
    assert seen.explanation(job).endswith(
        "Strategy 2a: its new files go to 2 of 3 storage targets (left, right)."
    )
    job.order = StagingOrder((0, 1, 2), drain=True)
    assert "storage targets" not in seen.explanation(job)


def test_redirected_data_is_explained() -> None:
    seen = view(controller_with("fcfs", "7:a"))
    job = seen.jobs["7:a"]
    assert "parts" not in seen.explanation(job)
    counters = JobCounters("7:a", 1, 9.0, 0.0, waiting=False, idle_s=0.0)
    job.counters["n"] = msgspec.structs.replace(
        counters, redirected_bytes=70.0, merged_bytes=20.0
    )
    assert seen.explanation(job).endswith(
        "Its targets have changed while files were open: 70 B went to parts on the new "
        "targets, and its programs have copied 20 B from parts into the files "
        "(penstock drain --show lists the others)."
    )


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        (
            "control",
            "penstock has held up its calls for 2 s, and the storage has taken 0 s for "
            "them. In a dry run, it would have held them up for 3 s.",
        ),
        (
            "dry-run",
            "penstock would have held up its calls for 3 s, and the storage has taken "
            "0 s for them. Before the dry run, it has held them up for 2 s.",
        ),
    ],
)
def test_what_a_dry_run_would_hold_up_is_kept_apart(mode: str, sentence: str) -> None:
    seen = replace(delayed(held_up_s=2.0, would_hold_up_s=3.0), mode=mode)
    assert sentence in seen.explanation(seen.jobs["7:a"])
    (line,) = seen.lines()
    assert (line.held_up_s, line.would_hold_up_s) == (2.0, 3.0)


def test_a_mean_draw_above_the_grant_is_explained() -> None:
    seen = delayed(waiting=True)
    seen.jobs["7:a"].draw = 140.0
    text = seen.explanation(seen.jobs["7:a"])
    assert "It drew 140 B/s on average over the last 500 ms: its grant was" in text
    seen.jobs["7:a"].draw = 101.0
    assert "on average" not in seen.explanation(seen.jobs["7:a"])


def test_a_free_job_is_told_whether_it_is_alone_or_nothing_is_known() -> None:
    storage = SharedStorage("", controller_with("fcfs", "7:a"), BandwidthEstimator())
    seen = StatusView(None, "control", {"7:a": record("7:a", storage)}, 5.0)
    storage.active.add("7:a")
    text = seen.explanation(seen.jobs["7:a"])
    assert "no other job uses its storage now." in text
    storage.active.add("7:b")
    text = seen.explanation(seen.jobs["7:a"])
    assert "the bandwidth of its storage is not known yet, so nobody waits" in text


# --- Who delays a job, and policies that serve nobody ---------------------------------


def delayed(**counts: float) -> StatusView:
    """Return the view of a job that has moved 20 B/s since an instant 1 s."""
    controller = controller_with("fcfs", "7:a")
    controller.post("7:a", 1.0, 1000.0)
    decide(controller, 1.0)
    seen = view(controller)
    seen.jobs["7:a"].draw = 20.0
    facts = {"held_up_s": 0.0, "waiting": False, "idle_s": 0.0} | counts
    seen.jobs["7:a"].counters["n"] = JobCounters("7:a", 1, 9.0, **facts)  # type: ignore[arg-type]
    return seen


def test_a_slow_storage_is_not_blamed_on_control() -> None:
    seen = delayed(held_up_s=0.25, read_busy_s=1.0, written_busy_s=2.5)
    text = seen.explanation(seen.jobs["7:a"])
    assert (
        "penstock has held up its calls for 250 ms, and the storage has taken 3.5 s"
    ) in text
    assert "Now it draws 20 B/s and no call is held up: the storage or the" in text
    assert "cost" not in text


def test_a_job_that_is_held_up_is_not_told_that_its_storage_is_slow() -> None:
    seen = delayed(held_up_s=2.0, waiting=True)
    assert "the storage or the program" not in seen.explanation(seen.jobs["7:a"])


def test_a_draw_that_is_not_measured_yet_says_nothing_about_the_storage() -> None:
    seen = replace(delayed(), now=1.1)
    assert "the storage or the program" not in seen.explanation(seen.jobs["7:a"])


def test_a_policy_that_grants_nothing_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "miser.py").write_text(
        "from math import inf\ndef allocate(view, rates):\n    return inf\n"
    )
    monkeypatch.chdir(tmp_path)
    controller = controller_with("miser.allocate", "7:a", "7:b")
    assert view(controller).stalled() == []
    for job_key in ("7:a", "7:b"):
        controller.post(job_key, 1.0, 1000.0)
    decide(controller, 1.0)
    assert view(controller).stalled() == [
        "policy miser.allocate grants nothing to any of the 2 jobs that do I/O: all "
        "of them wait"
    ]
    assert replace(view(controller), mode="off").stalled() == []


def test_a_policy_that_serves_one_job_is_not_reported() -> None:
    controller = controller_with("fcfs", "7:a", "7:b")
    for job_key in ("7:a", "7:b"):
        controller.post(job_key, 1.0, 1000.0)
    decide(controller, 1.0)
    assert view(controller).stalled() == []
