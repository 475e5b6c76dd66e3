# SPDX-License-Identifier: MIT
"""One stager for each storage: jobs on different file systems do not take turns."""

from __future__ import annotations

from math import inf
from typing import cast

from penstock.live.control.activity.phases import PhaseDetector
from penstock.live.control.activity.volumes import VolumePredictor
from penstock.live.control.coordinator import Coordinator
from penstock.live.control.rates.controller import Controller
from penstock.live.control.records import JobRecord
from penstock.live.control.stager import Stager
from penstock.live.control.stagers import Stagers
from penstock.live.control.storage.bandwidth import BandwidthEstimator
from penstock.live.control.storage.shared_storage import SharedStorage
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    CounterReport,
    JobCounters,
    JobJoined,
)
from penstock.staging import (
    Forecast,
    Situation,
    StagingOrder,
    StagingPlan,
    Strategy,
    get_strategy,
)
from support.controllers import B, controller_with


def job_on(storage: SharedStorage, key: str, begun_s: float = inf) -> JobRecord:
    """Return a job, which has written since `begun_s`."""
    phases, predictor = PhaseDetector(0.1), VolumePredictor()
    job = JobRecord(key, 7, 0, storage, phases, predictor, 0.0, 0.0)
    # It has journals.
    job.counters["n"] = JobCounters(key, 0, 0.0, 0.0, waiting=False, idle_s=0.0)
    if begun_s < inf:
        storage.controller.post(key, begun_s, 500.0)
        job.phases.is_active, job.phases.began_s = True, begun_s
    return job


def in_background(situation: Situation) -> StagingPlan:
    """Let the first job of each storage write through, and the others stage."""
    orders = [
        StagingOrder((0,), stage=number > 0, drain=True)
        for number in range(len(situation.applications))
    ]
    return StagingPlan(orders, drains_in_background=True)


def test_drains_get_what_writers_leave_on_their_own_storage() -> None:
    jobs = []
    for name, begun_s in (("x", 0.0), ("y", inf)):
        controller = controller_with("fair-share", "7:a" + name, "7:b" + name)
        controller.set_limit("7:a" + name, 30.0, 0.0)
        storage = SharedStorage(name, controller, None)
        jobs += [job_on(storage, "7:a" + name, begun_s), job_on(storage, "7:b" + name)]
    stagers = Stagers(Stager(Strategy("background", "", in_background, {})))
    decision = stagers.decide(jobs, 1.0)
    assert decision.left == {"x": B - 30.0, "y": B}
    assert [key for key, order in decision.orders.items() if order.stage] == [
        "7:bx",
        "7:by",
    ]
    # A writer that stages takes nothing from the drains.
    jobs[0], jobs[1] = jobs[1], jobs[0]
    assert stagers.decide(jobs, 2.0).left == {"x": B, "y": B}
    assert stagers.decide([], 3.0).orders == {}


def test_a_strategy_that_fails_on_one_storage_serves_the_others() -> None:
    """More writers than targets: only where there are so many."""
    both = [controller_with("fair-share", *keys) for keys in (["7:a"], ["7:b", "7:c"])]
    storages = [
        SharedStorage(name, each, None) for name, each in zip("xy", both, strict=True)
    ]
    jobs = [
        job_on(storages[0], "7:a", 1.0),
        job_on(storages[1], "7:b", 1.0),
        job_on(storages[1], "7:c", 1.0),
    ]
    stagers = Stagers(Stager(get_strategy("3b")))
    decision = stagers.decide(jobs, 2.0)
    assert decision.orders["7:a"].targets == (0,)
    assert decision.orders["7:b"].targets == decision.orders["7:c"].targets == ()
    assert len(decision.faults) == 1


def test_targets_are_divided_among_the_jobs_of_all_storages() -> None:
    """All of them have folders on the targets."""
    keys = ("7:a", "7:b")
    storages = [SharedStorage(k, controller_with("fair-share", k), None) for k in keys]
    jobs = [job_on(each, key, 1.0) for each, key in zip(storages, keys, strict=True)]
    known: list[Forecast | None] = []
    strategy = get_strategy("3b")

    def noting(situation: Situation) -> StagingPlan:
        known.append(situation.forecast)
        return strategy.decide(situation)

    noted = Strategy("noting", "", noting, {})
    stagers = Stagers(Stager(noted, 4, "ABCD", lambda _: cast("Forecast", "known")))
    orders = stagers.decide(jobs, 2.0).orders
    assert [orders[key].targets for key in keys] == [(0, 1), (2, 3)]
    # Nobody knows the bandwidth of several storages together.
    stagers.decide(jobs[:1], 3.0)
    assert [bool(each) for each in known] == [False, True]


def test_nothing_is_kept_of_jobs_that_have_left() -> None:
    storage = SharedStorage("", controller_with("fair-share", "7:a", "7:b"), None)
    jobs = [job_on(storage, key) for key in ("7:a", "7:b")]
    stagers = Stagers(Stager(get_strategy("3a"), 4))
    assert stagers.decide(jobs[:1], 1.0).orders["7:a"].targets == (0, 1)
    stagers.decide([], 2.0)
    assert stagers.decide(jobs[1:], 3.0).orders["7:b"].targets == (0, 1)


class Learning:
    """A coordinator that learns bandwidths, with jobs on two file systems."""

    def __init__(self, strategy: str) -> None:
        config = AgentConfig("control", [], 0.1, 0.1, 3.0, B, reads=True)
        self.coordinator = Coordinator(
            Controller("fair-share", B, compiled=False),
            config,
            stager=Stager(get_strategy(strategy)),
            estimator=lambda _: BandwidthEstimator(),
        )
        self.coordinator.receive("n", AgentHello([]), 0.0)
        for job, storage in (("a", "home"), ("b", "scratch"), ("c", "home")):
            joined = JobJoined(f"0:{job}", 0, "0", 1, 1000.0, storage)
            self.coordinator.receive("n", joined, 0.0)
        self.coordinator.decide(0.0)

    def begin(self, job: str, now: float) -> None:
        """Let a job begin to write."""
        counts = JobCounters(f"0:{job}", 1, 0.0, 0.0, waiting=False, idle_s=0.0)
        self.coordinator.receive("n", CounterReport([counts], 3), now)
        self.coordinator.decide(now)

    def stages(self, job: str) -> bool:
        """Return True if a job has to stage its writes."""
        return self.coordinator._jobs[f"0:{job}"].order.stage


def test_jobs_on_different_file_systems_do_not_take_turns() -> None:
    site = Learning("2a")
    site.begin("a", 1.0)
    site.begin("b", 2.0)
    site.begin("c", 3.0)
    assert [site.stages(job) for job in "abc"] == [False, False, True]
