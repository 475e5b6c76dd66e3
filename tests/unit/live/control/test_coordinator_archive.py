# SPDX-License-Identifier: MIT
"""What the coordinator hands to the archive: operations that ended, jobs that left."""

from __future__ import annotations

from math import inf

import pytest

from penstock.live.control.output import CoordinatorOutput
from penstock.live.control.past import CompletedOperation, JobRun
from penstock.live.wire.messages import (
    GetStatus,
    SetLimit,
    SetMode,
    SetPolicy,
    UserRequest,
)
from unit.live.control.test_coordinator import B, Site


class _Archive:
    """Collects what the coordinator of a site would archive."""

    def __init__(self) -> None:
        self.completed: list[tuple[JobRun, CompletedOperation]] = []
        self.left: list[JobRun] = []

    def watch(self, site: Site) -> None:
        decide = site.coordinator.decide

        def collect(now: float) -> CoordinatorOutput:
            output = decide(now)
            self.completed += output.completed
            self.left += output.left_runs
            return output

        site.coordinator.decide = collect  # type: ignore[method-assign]


@pytest.fixture
def archive() -> _Archive:
    return _Archive()


@pytest.fixture
def site(archive: _Archive) -> Site:
    """Return a site of one node with two jobs that share B."""
    made = Site()
    archive.watch(made)
    made.agent("n")
    made.join("n", "0:a")
    made.join("n", "0:b")
    return made


def _share_for_a_second(site: Site) -> None:
    """Let a move 75 bytes from 0 s and b 25 from 1 s; a ends at 1.5 s."""
    site.report("n", "0:a", 0.0)
    site.now = 1.0
    site.report("n", "0:b", 5.0, held_up_s=0.25)
    site.now = 1.75
    site.report("n", "0:a", 75.0, idle_s=0.25, held_up_s=0.5)


def test_the_run_of_a_job_counts_the_loss_of_the_operation_under_way(
    site: Site,
) -> None:
    _share_for_a_second(site)
    site.report("n", "0:b", 25.0, held_up_s=0.5)
    runs = {run.job_key: run for run in site.coordinator.stop(site.now).left_runs}
    assert runs["0:b"].lost_s == pytest.approx(0.25)


@pytest.mark.parametrize(("held_up_s", "lost_s"), [(0.0, 0.0), (0.1, 0.1), (9.0, 0.25)])
def test_status_and_archive_have_one_definition_of_lost_time(
    site: Site, archive: _Archive, held_up_s: float, lost_s: float
) -> None:
    """It is what grants cost (0.25 s here), but at most what calls were held up."""
    site.report("n", "0:a", 0.0)
    site.now = 1.0
    site.report("n", "0:b", 5.0)
    site.now = 1.5
    site.report("n", "0:a", 75.0, held_up_s=held_up_s)
    (under_way, _) = site.ask(GetStatus()).jobs
    assert under_way.lost_s == pytest.approx(lost_s)
    assert under_way.lost_by_grants_s == pytest.approx(0.25)
    assert under_way.progress_yield == pytest.approx(1.0 - lost_s / 1.5)
    site.now = 1.75
    site.report("n", "0:a", 75.0, idle_s=0.25, held_up_s=held_up_s)
    (ended, _) = site.ask(GetStatus()).jobs
    ((run, done),) = archive.completed
    assert done.lost_s == pytest.approx(lost_s)
    assert run.lost_s == done.lost_s == ended.lost_s


def test_an_operation_that_ended_comes_with_its_grants(
    site: Site, archive: _Archive
) -> None:
    _share_for_a_second(site)
    ((run, done),) = archive.completed
    assert run.job_key == "0:a"
    assert run.left_s is None
    assert (done.begin_s, done.end_s, done.moved_bytes) == (0.0, 1.5, 75.0)
    assert done.held_up_s == 0.5
    assert done.grants == ((0.0, B), (1.0, 50.0))
    assert (done.capacity, done.policy) == (B, "fair-share")
    # For the last 0.5 s, it was granted half of what it can use.
    assert done.lost_s == pytest.approx(0.25)


def test_a_grant_that_nobody_was_held_to_costs_nothing(
    site: Site, archive: _Archive
) -> None:
    site.report("n", "0:a", 0.0)
    site.now = 1.0
    site.report("n", "0:b", 5.0)
    site.now = 1.75
    site.report("n", "0:a", 75.0, idle_s=0.25, held_up_s=0.1)
    ((run, done),) = archive.completed
    assert done.lost_s == pytest.approx(0.1)
    assert run.lost_s == pytest.approx(0.1)


def test_an_operation_that_ends_with_its_job_has_its_lost_time(
    site: Site, archive: _Archive
) -> None:
    site.report("n", "0:a", 0.0)
    site.report("n", "0:b", 0.0)
    site.now = 2.0
    site.report("n", "0:b", 80.0, held_up_s=1.5)
    site.part("n", "0:b")
    (run,) = archive.left
    assert run.lost_s == pytest.approx(1.0)


def test_a_job_that_comes_back_begins_a_new_run(site: Site, archive: _Archive) -> None:
    _share_for_a_second(site)
    site.part("n", "0:a")
    site.now = 5.0
    site.join("n", "0:a")
    site.report("n", "0:a", 5.0)
    site.now = 9.0
    site.part("n", "0:a")
    first, second = (run for run in archive.left if run.job_key == "0:a")
    assert first.lost_s == pytest.approx(0.25)
    assert (second.joined_s, second.lost_s) == (5.0, 0.0)


def test_a_job_that_left_is_archived_with_its_last_operation(
    site: Site, archive: _Archive
) -> None:
    _share_for_a_second(site)
    site.now = 3.0
    site.part("n", "0:b")
    assert [run.job_key for run in archive.left] == ["0:b"]
    assert archive.left[0].left_s == 3.0
    assert [run.job_key for run, _ in archive.completed] == ["0:a", "0:b"]


def test_the_next_operation_begins_a_new_trace(site: Site, archive: _Archive) -> None:
    _share_for_a_second(site)
    site.now = 5.0
    site.report("n", "0:a", 80.0, operations_begun=2, held_up_s=0.5)
    site.now = 6.0
    site.report("n", "0:a", 90.0, operations_begun=2, idle_s=0.5, held_up_s=0.5)
    _, done = archive.completed[-1]
    assert done.begin_s == 5.0
    assert done.grants[0][0] == 5.0
    assert done.held_up_s == 0.0


def test_a_job_without_an_operation_is_not_archived(
    site: Site, archive: _Archive
) -> None:
    """A program that control did not see has no yield."""
    site.now = 3.0
    site.part("n", "0:a")
    assert site.coordinator.stop(3.0).left_runs == []
    assert archive.left == []


def test_what_a_limit_takes_does_not_count_for_earlier_grants(
    site: Site, archive: _Archive
) -> None:
    site.report("n", "0:a", 0.0)
    site.report("n", "0:b", 0.0)
    site.now = 1.0
    # Its grants have cost 0.5 s on paper, but the storage was slower.
    site.report("n", "0:a", 20.0)
    site.ask(SetLimit("a", 10.0))
    site.now = 3.0
    site.report("n", "0:a", 40.0, held_up_s=1.8)
    site.part("n", "0:a")
    # Of its 10 bytes/s it is granted 10/11, for 2 s.
    assert archive.left[0].lost_s == pytest.approx(2.0 / 11.0)


def test_the_lowest_limit_is_archived(site: Site, archive: _Archive) -> None:
    site.report("n", "0:a", 0.0)
    for limit in (30.0, 20.0, 40.0, inf):
        site.ask(SetLimit("a", limit))
    site.report("n", "0:b", 0.0)
    site.now = 1.0
    site.part("n", "0:a")
    site.part("n", "0:b")
    assert [run.limit for run in archive.left] == [20.0, inf]


def test_a_limit_of_before_a_restart_holds_again() -> None:
    site = Site()
    site.agent("n")
    site.coordinator.kept_limit = {"0:a": 20.0}.pop
    site.join("n", "0:a")
    assert site.coordinator.limits() == {"0:a": 20.0}
    (line,) = site.coordinator.status(site.now).jobs
    assert line.limit == 20.0
    assert "as before the restart: a gets 20 B/s at most" in site.changes
    site.part("n", "0:a")
    assert site.coordinator.limits() == {}


def test_all_jobs_leave_when_the_controller_ends(site: Site) -> None:
    _share_for_a_second(site)
    site.now = 4.0
    runs = site.coordinator.stop(4.0).left_runs
    assert [(run.job_key, run.left_s) for run in runs] == [("0:a", 4.0), ("0:b", 4.0)]
    assert runs[0].cap == inf


def test_a_dry_run_is_archived_as_such(site: Site, archive: _Archive) -> None:
    site.ask(SetMode("dry-run"))
    _share_for_a_second(site)
    site.part("n", "0:a")
    ((seen, done), *_) = archive.completed
    assert (seen.policy, done.policy) == ("dry-run", "dry-run")
    assert archive.left[0].policy == "dry-run"
    assert {run.policy for run in site.coordinator.stop(site.now).left_runs} == {
        "dry-run"
    }


def test_a_run_is_archived_with_all_policies_that_it_saw(
    site: Site, archive: _Archive
) -> None:
    before = site.coordinator.controller.policy
    site.report("n", "0:a", 5.0)
    for now, request in (
        (1.0, SetPolicy("fcfs")),
        (2.0, SetMode("dry-run")),
        (3.0, SetMode("off")),
        (4.0, SetMode("control")),
        (5.0, SetPolicy("fcfs")),
    ):
        site.now = now
        site.ask(request)
    site.now = 6.0
    site.part("n", "0:a")
    (left,) = archive.left
    assert left.policies == (
        *((0.0, before), (1.0, "fcfs"), (2.0, "dry-run"), (3.0, "off")),
        (4.0, "fcfs"),
    )
    assert left.policy == "fcfs"
    # Control that is switched off ends the operation: nobody was held up in it.
    ((_, done),) = archive.completed
    assert done.policy == "dry-run"


def test_what_a_job_does_now_is_told_as_if_its_operation_ended(site: Site) -> None:
    _share_for_a_second(site)
    site.now = 2.0
    site.report("n", "0:b", 25.0, held_up_s=0.5)
    request = UserRequest(1, 0, True, GetStatus())
    told = [job.under_way(2.0) for job in site.coordinator.seen_by(request)]
    by_key = {run.job_key: (run, present) for run, present in told}
    assert by_key["0:a"][1] is None
    run, present = by_key["0:b"]
    assert present is not None
    assert (present.begin_s, present.end_s, present.moved_bytes) == (1.0, 2.0, 20.0)
    assert run.left_s is None
    assert run.lost_s == pytest.approx(present.lost_s)
    # The operation goes on.
    assert site.coordinator.status(2.0).jobs[1].active


def test_operations_under_way_are_archived_when_the_controller_ends(site: Site) -> None:
    _share_for_a_second(site)
    site.report("n", "0:b", 25.0, held_up_s=0.5)
    stopped = site.coordinator.stop(2.0)
    ((run, done),) = stopped.completed
    assert (run.job_key, done.begin_s, done.end_s) == ("0:b", 1.0, 2.0)
    assert done.moved_bytes == 20.0
    lost = {run.job_key: run.lost_s for run in stopped.left_runs}
    assert lost["0:b"] == pytest.approx(done.lost_s)


def test_bytes_from_before_a_restart_are_not_counted_again() -> None:
    """A job goes on while another controller starts: its counters are not at 0."""
    site = Site()
    site.now = 5.0
    site.agent("n")
    site.join("n", "0:a")
    site.report("n", "0:a", 839.0, operations_begun=3)
    site.now = 6.0
    site.report("n", "0:a", 859.0, operations_begun=3)
    (line,) = site.ask(GetStatus()).jobs
    assert (line.moved_bytes, line.drawn_bytes_per_s) == (859.0, 20.0)
    (run,) = site.coordinator.stop(6.0).left_runs
    assert run.moved_bytes == 20.0


def test_a_node_that_comes_back_is_not_counted_twice(archive: _Archive) -> None:
    site = Site()
    archive.watch(site)
    for agent in ("n", "m"):
        site.agent(agent)
        site.join(agent, "0:a")
        site.report(agent, "0:a", 0.0)
    site.report("m", "0:a", 40.0)
    site.part("m", "0:a")
    site.join("m", "0:a")
    site.report("m", "0:a", 40.0)
    site.report("m", "0:a", 45.0)
    site.part("m", "0:a")
    site.part("n", "0:a")
    (run,) = archive.left
    assert run.moved_bytes == 45.0


def test_a_job_that_computes_draws_nothing(site: Site) -> None:
    """Its agent does not report it any more: the last report does not hold for ever."""
    site.report("n", "0:a", 0.0)
    site.now = 1.0
    site.report("n", "0:a", 50.0)
    (drawing, _) = site.ask(GetStatus()).jobs
    site.now = 1.2
    site.report("n", "0:a", 50.0, idle_s=0.2)
    site.now = 2.0
    (computing, _) = site.ask(GetStatus()).jobs
    assert (drawing.active, drawing.drawn_bytes_per_s) == (True, 50.0)
    assert (computing.active, computing.drawn_bytes_per_s) == (False, 0.0)
