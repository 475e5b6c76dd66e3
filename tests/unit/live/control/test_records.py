# SPDX-License-Identifier: MIT
"""The coordinator's record of a job: sums over its nodes, and the rate it draws."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from penstock.live.control.activity.phases import PastOperation, PhaseDetector
from penstock.live.control.activity.volumes import VolumePredictor
from penstock.live.control.records import DRAW_S, JobRecord
from penstock.live.control.storage.shared_storage import SharedStorage
from penstock.live.wire.messages import JobCounters, JobJoined
from penstock.staging import StagingOrder
from support.controllers import controller_with


def counters(moved_bytes: float, **rest: Any) -> JobCounters:
    """Return the counters of a job on a node."""
    facts: dict[str, Any] = {"held_up_s": 0.0, "waiting": False, "idle_s": 0.0} | rest
    return JobCounters("7:a", 1, moved_bytes, **facts)


@pytest.fixture
def job() -> JobRecord:
    """Return a job without nodes, since 10 s."""
    storage = SharedStorage("", controller_with("fcfs"), None)
    phases, predictor = PhaseDetector(0.1), VolumePredictor()
    return JobRecord("7:a:b", 7, 0, storage, phases, predictor, 10.0, 10.0)


def test_the_name_is_all_behind_the_first_colon(job: JobRecord) -> None:
    assert job.name == "a:b"


def test_a_job_without_nodes(job: JobRecord) -> None:
    assert (job.nodes, job.moved_bytes, job.staged_bytes) == (1, 0.0, 0.0)
    assert (job.idle_s, job.quiet_s) == (inf, inf)
    assert not job.is_waiting


def test_counters_of_nodes_are_added_up(job: JobRecord) -> None:
    job.moved_elsewhere_bytes = 5.0
    job.counters = {
        "m": counters(10.0, held_up_s=1.0, idle_s=3.0, quiet_s=4.0, staged_bytes=2.0),
        "n": counters(20.0, held_up_s=2.0, idle_s=5.0, quiet_s=2.0, waiting=True),
    }
    assert (job.moved_bytes, job.held_up_s, job.staged_bytes) == (35.0, 3.0, 2.0)
    assert (job.idle_s, job.quiet_s, job.is_waiting) == (3.0, 2.0, True)


def test_processes_are_counted_and_remembered(job: JobRecord) -> None:
    assert job.processes == 1
    job.counters = {"m": counters(0.0, processes=3), "n": counters(0.0, processes=4)}
    job.count_processes()
    job.counters = {"m": counters(0.0, processes=1)}
    job.count_processes()
    assert job.processes == 7
    job.claimed_nodes = 9
    assert job.processes == 9


def test_the_usual_work_is_without_the_transfer_at_any_bandwidth(
    job: JobRecord,
) -> None:
    """A bandwidth that is learnt changes; the operations before were slower."""
    job.past_operations.append(PastOperation(8.0, 10.0, 100.0))
    job.past_operations.append(PastOperation(18.0, 20.0, 100.0))
    job.past_operations.append(PastOperation(26.0, 27.0, 100.0))
    assert job.usual_work_s == 7.0
    assert job.next_phase_s == 34.0
    job.hint_work_s = 3.0
    assert job.usual_work_s == 3.0


def test_requests_are_measured_while_nothing_is_staged(job: JobRecord) -> None:
    facts = {"processes": 2, "write_calls": 10, "written_bytes": 80.0}
    job.counters = {"m": counters(80.0, written_busy_s=5.0, **facts)}
    job.count_processes()
    job.order = StagingOrder((), stage=True)
    job.measure_requests(PastOperation(0.0, 10.0, 80.0))
    assert job.requests.pause_s == 0.0
    job.order = StagingOrder(())
    job.measure_requests(PastOperation(0.0, 10.0, 80.0))
    assert (job.requests.round_bytes, job.requests.pause_s) == (16.0, 1.5)


def test_requests_are_not_measured_while_parts_are_merged(job: JobRecord) -> None:
    """The steps of a merge count as calls, and their bytes as written."""
    job.counters = {"m": counters(0.0, processes=1)}
    job.requests.begin(job.request_counts)
    facts = {"processes": 1, "write_calls": 10, "written_busy_s": 5.0}
    job.counters = {
        "m": counters(80.0, written_bytes=120.0, merged_bytes=40.0, **facts)
    }
    job.measure_requests(PastOperation(0.0, 10.0, 80.0))
    assert (job.requests.round_bytes, job.requests.pause_s) == (0.0, 0.0)
    job.requests.begin(job.request_counts)
    facts = {"processes": 1, "write_calls": 20, "written_busy_s": 10.0}
    job.counters = {
        "m": counters(160.0, written_bytes=200.0, merged_bytes=40.0, **facts)
    }
    job.measure_requests(PastOperation(20.0, 30.0, 80.0))
    assert (job.requests.round_bytes, job.requests.pause_s) == (8.0, 0.5)


def test_what_was_merged_before_a_restart_is_not_being_merged(job: JobRecord) -> None:
    seen = []
    job.counters = {"m": counters(0.0)}  # as when the job joins
    job.unread_agents.add("m")
    for merged_bytes in (30.0, 40.0, 40.0):
        job.read("m", counters(40.0, merged_bytes=merged_bytes))
        seen.append(job.is_merging)
    assert seen == [False, True, False]


def test_claimed_nodes_take_precedence_over_counted_ones(job: JobRecord) -> None:
    job.counters = {"m": counters(0.0), "n": counters(0.0)}
    assert job.nodes == 2
    job.claimed_nodes = 7
    assert job.nodes == 7


def test_the_draw_is_measured_over_an_interval(job: JobRecord) -> None:
    job.counters["n"] = counters(40.0)
    job.measure_draw(10.0 + DRAW_S / 2.0)
    assert job.draw == 0.0
    job.measure_draw(10.0 + 2.0 * DRAW_S)
    assert job.draw == 40.0 / (2.0 * DRAW_S)
    job.measure_draw(10.0 + 3.0 * DRAW_S)
    assert job.draw == 0.0


def test_a_user_announces_more_of_a_job_that_has_joined(job: JobRecord) -> None:
    """A priority by Slurm's QOS cannot be raised so."""
    job.priority = -5.0
    joined = JobJoined("7:a:b", 7, "7", 0, 50.0, priority=-1.0, work_s=3.0)
    job.take_hints(joined)
    assert (job.predictor.hint_bytes, job.hint_work_s) == (50.0, 3.0)
    assert job.priority == -5.0
    job.take_hints(JobJoined("7:a:b", 7, "7", 0, 0.0, priority=-6.0))
    assert (job.predictor.hint_bytes, job.hint_work_s) == (50.0, 3.0)
    assert job.priority == -6.0
