# SPDX-License-Identifier: MIT
"""Jobs on a storage whose bandwidth is learnt: whole runs of the coordinator.

`FluidStorage` is the storage: the coordinator sees only counters, the storage only
grants.
"""

from __future__ import annotations

from math import inf

import pytest

from penstock.live.control.activity.usage import Kind
from penstock.live.control.storage.bandwidth import BandwidthEstimator, Reason
from penstock.live.control.storage.shared_storage import SharedStorage
from support.controllers import controller_with
from support.storages import Caller, FluidStorage, LearningSite

MB = 1e6
C = 40 * MB


def constant(_: float) -> float:
    """Return the capacity of a storage that does not change."""
    return C


def pair() -> list[Caller]:
    """Return two jobs of which the second one begins after 1 s."""
    return [Caller("a", 1e6), Caller("b", 1e6, begin_s=1.0)]


# --- Alone means free -----------------------------------------------------------------


@pytest.mark.parametrize("known", [None, {Kind.WRITES: (1.0, Reason.MEASURED)}])
@pytest.mark.parametrize("policy", ["fair-share", "fcfs", "greedy-yield", "set-10"])
def test_a_lone_job_is_never_held_up(
    policy: str, known: dict[Kind, tuple[float, Reason]] | None
) -> None:
    (job,) = jobs = [Caller("a")]
    site = LearningSite(FluidStorage(constant, jobs), policy, known)
    site.run(3.0)
    assert (job.held_up_s, job.rate) == (0.0, inf)
    assert job.moved_bytes > 0.95 * 3.0 * C
    (line,) = site.coordinator.status(site.now).jobs
    assert (line.grant, line.lost_s, line.held_up_s) == (None, 0.0, 0.0)
    assert "is not held up: no other job uses its storage" in line.why


def test_two_jobs_get_their_shares_with_the_first_report_of_the_second() -> None:
    jobs = pair()
    site = LearningSite(FluidStorage(constant, jobs))
    site.run(0.95)
    assert jobs[0].rate == inf
    site.run(0.1)
    assert [job.rate for job in jobs] == pytest.approx([C / 2, C / 2], rel=0.05)


def test_the_remaining_job_is_free_at_once() -> None:
    jobs = pair()
    jobs[1].end_s = 4.0
    site = LearningSite(FluidStorage(constant, jobs))
    site.run(3.9)
    assert jobs[0].rate < inf
    site.run(0.3)
    held_up_s = jobs[0].held_up_s
    site.run(1.0)
    assert (jobs[0].rate, jobs[0].held_up_s) == (inf, held_up_s)


def test_jobs_on_different_storages_are_no_company() -> None:
    jobs = [Caller("a", 1e6), Caller("b", 1e6, storage=":/other")]
    site = LearningSite(FluidStorage(constant, jobs))
    site.run(3.0)
    assert [job.held_up_s for job in jobs] == [0.0, 0.0]
    names = {each.name for each in site.coordinator.status(site.now).storages}
    assert names == {"n:/storage", "n:/other"}


# --- What is learnt -------------------------------------------------------------------


@pytest.mark.parametrize("call_bytes", [250e3, 1e6, 4e6])
@pytest.mark.parametrize("begin_s", [0.0, 1.0])
def test_two_writers(call_bytes: float, begin_s: float) -> None:
    jobs = [Caller("a", call_bytes), Caller("b", call_bytes, begin_s=begin_s)]
    site = LearningSite(FluidStorage(constant, jobs))
    site.run(10.0)
    assert site.bandwidth == pytest.approx(C, rel=0.05)
    assert site.shares(5.0)["a"] == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize(
    "ramp", [(1.0,), (0.4, 0.7, 1.0), (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)]
)
def test_programs_that_start_together_on_an_unknown_storage_are_not_slowed(
    ramp: tuple[float, ...],
) -> None:
    """The storage gets going in steps of 0.5 s."""

    def capacity(now: float) -> float:
        return C * ramp[min(int(now / 0.5), len(ramp) - 1)]

    jobs = [Caller("a"), Caller("b")]
    site = LearningSite(FluidStorage(capacity, jobs))
    before_bytes = 0.0
    for index in range(20):
        offered_bytes = 0.5 * capacity(site.now)
        site.run(0.5)
        moved_bytes = sum(job.moved_bytes for job in jobs)
        # A call in the storage counts when it ends.
        least_bytes = 0.95 * offered_bytes - jobs[0].call_bytes
        assert moved_bytes - before_bytes >= least_bytes, index
        before_bytes = moved_bytes
    assert site.bandwidth == pytest.approx(C, rel=0.05)
    assert site.shares(5.0)["a"] == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("sizes", [(1 << 20, 256 << 10), (256 << 10, 1 << 20)])
@pytest.mark.parametrize("capacity", [6 * MB, 12 * MB, 24 * MB])
def test_calls_of_different_sizes_that_are_served_one_by_one(
    sizes: tuple[int, int], capacity: float
) -> None:
    """Without control, the job with large calls gets four times as much."""
    jobs = [Caller("a", sizes[0]), Caller("b", sizes[1], begin_s=1.0)]
    storage = FluidStorage(lambda _: capacity, jobs, one_by_one=True)
    site = LearningSite(storage)
    site.run(11.0)
    # One call more or less of 1 MiB in 30 s is 1.2 % of a share of 3 MB/s.
    assert site.shares(30.0)["a"] == pytest.approx(0.5, rel=0.02)
    assert site.mean_bandwidth(10.0) == pytest.approx(capacity, rel=0.05)


def test_the_first_one_is_served_first() -> None:
    jobs = pair()
    site = LearningSite(FluidStorage(constant, jobs), "fcfs")
    site.run(10.0)
    assert site.shares(5.0)["a"] == pytest.approx(1.0, abs=0.02)
    assert site.bandwidth == pytest.approx(C, rel=0.05)


def test_three_writers() -> None:
    jobs = [Caller("a", 1e6), Caller("b", 1e6), Caller("c", 1e6)]
    site = LearningSite(FluidStorage(constant, jobs))
    site.run(10.0)
    assert site.shares(5.0) == pytest.approx(dict.fromkeys("abc", 1 / 3), rel=0.02)


def test_a_reader_and_a_writer() -> None:
    jobs = [Caller("a", 1e6, reads=True), Caller("b", 1e6, begin_s=1.0)]
    site = LearningSite(FluidStorage(constant, jobs, write_factor=0.5))
    site.run(10.0)
    # Equal volumes: 1 / (0.5 / C + 0.5 / (C / 2)).
    assert site.bandwidth == pytest.approx(C / 1.5, rel=0.05)
    assert site.shares(5.0)["a"] == pytest.approx(0.5, rel=0.02)
    (storage,) = site.coordinator.status(site.now).storages
    assert storage.doing == "mixed"
    assert {"reads", "mixed"} <= storage.beliefs.keys()


@pytest.mark.parametrize(("before", "after"), [(40, 10), (40, 20), (20, 40), (10, 60)])
def test_a_limit_that_changes_is_followed(before: float, after: float) -> None:
    def capacity(now: float) -> float:
        return (before if now < 8.0 else after) * MB

    site = LearningSite(FluidStorage(capacity, pair()))
    site.run(18.0)
    assert site.bandwidth == pytest.approx(after * MB, rel=0.05)
    before_bytes = [job.moved_bytes for job in site.storage.callers]
    site.run(5.0)
    drawn = sum(job.moved_bytes for job in site.storage.callers) - sum(before_bytes)
    assert drawn >= 0.95 * 5.0 * after * MB


@pytest.mark.parametrize("falls_s", [1.2, 1.5, 2.0])
def test_a_limit_that_falls_before_it_was_seen_is_followed(falls_s: float) -> None:
    """A call then takes longer than a window. A window without an end says nothing."""
    jobs = [Caller("a", 250e3, reads=True), Caller("b", 250e3, begin_s=1.0)]
    storage = FluidStorage(lambda now: 4 * MB if now < falls_s else MB, jobs)
    site = LearningSite(storage)
    site.run(6.0)
    assert site.bandwidth == pytest.approx(MB, rel=0.05)


@pytest.mark.parametrize("known", [0.1, 1.0, 400.0, 4000.0])
def test_a_wrong_start_is_corrected(known: float) -> None:
    jobs = [Caller("a", 250e3), Caller("b", 250e3)]
    start = {Kind.WRITES: (known * MB, Reason.MEASURED)}
    site = LearningSite(FluidStorage(constant, jobs), known=start)
    site.run(10.0)
    assert site.bandwidth == pytest.approx(C, rel=0.05)


def test_a_slow_lone_job_does_not_slow_a_fast_one_for_long() -> None:
    jobs = [Caller("a", 1e4, stream=MB), Caller("b", 250e3, begin_s=1.0)]
    site = LearningSite(FluidStorage(constant, jobs))
    site.run(20.0)
    assert jobs[1].held_up_s < 2.0


def test_a_job_that_uses_a_quarter_of_the_storage_leaves_the_rest() -> None:
    """It waits in its calls all the time, but not because the storage is full."""
    jobs = [Caller("a", 64e3, stream=C / 4), Caller("b", 250e3, begin_s=1.0)]
    site = LearningSite(FluidStorage(constant, jobs))
    site.run(11.0)
    assert site.mean_bandwidth(10.0) >= 0.95 * C


@pytest.mark.parametrize("begin_s", [0.0, 1.0])
def test_jobs_that_limit_themselves_are_not_held_up_for_long(begin_s: float) -> None:
    stream = 10 * MB
    jobs = [Caller("a", stream=stream), Caller("b", stream=stream, begin_s=begin_s)]
    site = LearningSite(FluidStorage(constant, jobs))
    site.run(20.0)
    assert all(job.held_up_s < 1.0 for job in jobs)


def test_memory_that_takes_writes_only_delays_what_is_learnt() -> None:
    site = LearningSite(FluidStorage(constant, pair(), memory_bytes=200 * MB))
    site.run(20.0)
    assert site.bandwidth == pytest.approx(C, rel=0.05)


def test_a_slow_job_that_computes_keeps_its_pace() -> None:
    jobs = [Caller("a", 1e4, think_s=0.01), Caller("b", 250e3, begin_s=1.0)]
    site = LearningSite(FluidStorage(constant, jobs))
    site.run(10.0)
    assert jobs[0].held_up_s < 0.1
    assert jobs[1].held_up_s < 2.0


# --- Storages that serve one call at a time, programs that sync ----------------------


def parts_of_lone_rates(*jobs: Caller) -> list[float]:
    """Return what jobs draw from 10 to 20 s, in parts of what each draws alone."""
    storage = FluidStorage(constant, list(jobs), one_by_one=True, latency_s=0.001)
    site = LearningSite(storage)
    site.run(10.0)
    before = [job.moved_bytes for job in jobs]
    site.run(10.0)
    drawn = [job.moved_bytes - moved for job, moved in zip(jobs, before, strict=True)]
    return [
        moved / 10.0 / storage.lone_rate(job)
        for job, moved in zip(jobs, drawn, strict=True)
    ]


@pytest.mark.parametrize("begin_s", [0.0, 1.0])
def test_jobs_bound_by_latency_share_a_storage_that_serves_one_call_at_a_time(
    begin_s: float,
) -> None:
    parts = parts_of_lone_rates(Caller("a", 4e3), Caller("b", 4e3, begin_s=begin_s))
    assert parts == pytest.approx([0.5, 0.5], abs=0.02)


@pytest.mark.parametrize("small_begin_s", [0.0, 2.0])
@pytest.mark.parametrize("large_bytes", [64e3, 1e6])
def test_a_job_bound_by_latency_is_not_starved_by_large_calls(
    small_begin_s: float, large_bytes: float
) -> None:
    """Without control it would get 4 or 30 % of what it draws alone."""
    small = Caller("small", 4e3, begin_s=small_begin_s)
    parts = parts_of_lone_rates(small, Caller("large", large_bytes, begin_s=1.0))
    assert parts[0] > 0.5
    assert parts[1] > 0.3
    # The parts of the time that each one uses: the storage is always busy.
    assert sum(parts) > 0.97


@pytest.mark.parametrize("sync_bytes", [1e6, 8e6])
def test_programs_that_sync_often_lose_nothing(sync_bytes: float) -> None:
    jobs = [Caller(key, sync_bytes=sync_bytes) for key in ("a", "b")]
    site = LearningSite(FluidStorage(constant, jobs, memory_bytes=200 * MB))
    site.run(10.0)
    shares = site.shares(10.0)
    assert shares["a"] == pytest.approx(0.5, abs=0.02)
    assert sum(job.moved_bytes for job in jobs) > 0.97 * 20.0 * C


# --- Numbers, status ------------------------------------------------------------------


def test_a_number_holds_for_a_lone_job_and_learning_can_be_switched_on() -> None:
    storage = SharedStorage("", controller_with("fair-share"), None)
    assert (storage.is_free, storage.learns, storage.bandwidth) == (False, False, 100.0)
    storage.start_learning(BandwidthEstimator())
    assert (storage.is_free, storage.learns, storage.bandwidth) == (True, True, None)
    storage.fix(50.0, 1.0)
    assert (storage.is_free, storage.bandwidth) == (False, 50.0)
    assert storage.status(1.0).beliefs == {}


def test_the_status_says_what_is_believed_and_why() -> None:
    jobs = [Caller("a", 1e6), Caller("b", 1e6)]
    site = LearningSite(FluidStorage(constant, jobs))
    (storage,) = site.coordinator.status(0.0).storages
    assert (storage.bandwidth, storage.learns, storage.beliefs) == (None, True, {})
    site.run(6.0)
    (storage,) = site.coordinator.status(site.now).storages
    belief = storage.beliefs["writes"]
    assert (storage.name, storage.active_jobs) == ("n:/storage", 2)
    assert belief.bandwidth == pytest.approx(storage.bandwidth, rel=2e-3)
    assert belief.why == "drawn while calls took longer"
    assert belief.age_s is not None
    assert belief.age_s < 6.0
    assert site.coordinator.learnt() == {
        "n:/storage": {Kind.WRITES: pytest.approx(belief.bandwidth)}
    }
