# SPDX-License-Identifier: MIT
"""Jobs are given storage targets when they join, from what is known of them."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from penstock.live.control.activity.phases import PhaseDetector
from penstock.live.control.activity.volumes import VolumePredictor
from penstock.live.control.coordinator import Coordinator
from penstock.live.control.placing import JobPlacer, application_of
from penstock.live.control.rates.controller import Controller
from penstock.live.control.rates.jobs import JobHistory
from penstock.live.control.records import JobRecord
from penstock.live.control.stager import Stager
from penstock.live.control.storage.shared_storage import SharedStorage
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    CounterReport,
    ExplainJob,
    JobCounters,
    JobJoined,
    JobLeft,
    UserRequest,
)
from penstock.placement import get_allocation, get_placement
from penstock.placement.online import OnlinePlacement
from penstock.staging import get_strategy

B = 100.0
NAMES = ("A", "B", "C", "D")


def placer(
    allocation: str = "best-bandwidth", profile: tuple[float, ...] = (50.0, 80.0)
) -> JobPlacer:
    """Return a placer for four targets."""
    placement = get_placement("greedy-non-clairvoyant")
    online = OnlinePlacement(4, 1, get_allocation(allocation), placement)
    return JobPlacer(online, NAMES, profile)


class Site:
    """A coordinator that places jobs."""

    def __init__(self, places: JobPlacer, strategy: str = "") -> None:
        config = AgentConfig("control", ["/s"], 0.1, 0.1, 3.0, B, reads=True)
        stager = Stager(get_strategy(strategy), 4) if strategy else None
        controller = Controller("fair-share", B, compiled=False)
        self.histories: dict[str, JobHistory] = {}
        self.coordinator = Coordinator(
            controller, config, self.histories.get, stager=stager
        )
        self.coordinator.placer = places
        self.coordinator.receive("n", AgentHello([]), 0.0)

    def join(
        self, job: str, nodes: int = 1, kept: tuple[str, ...] = ()
    ) -> tuple[int, ...] | None:
        """Let a job join; return its new targets."""
        joined = JobJoined(f"0:{job}", 0, "0", nodes, 0.0, targets=kept)
        self.coordinator.receive("n", joined, 0.0)
        return self.coordinator.decide(0.0).retargeted.get(f"0:{job}")

    def leave(self, job: str) -> None:
        """Let a job leave."""
        self.coordinator.receive("n", JobLeft(f"0:{job}"), 0.0)
        assert self.coordinator.decide(0.0).retargeted == {}

    def explain(self, job: str) -> str:
        """Return what its user is told."""
        message = UserRequest(1, 0, trusted=True, request=ExplainJob(job))
        return str(self.coordinator.answer(message, 0.0))


def test_jobs_get_targets_when_they_join_and_free_them() -> None:
    site = Site(placer())
    assert site.join("a") == (0, 1)
    assert site.join("b") == (2, 3)
    assert site.join("a") is None  # it is there already
    site.leave("a")
    assert site.join("c") == (0, 1)


def test_a_job_that_joins_and_leaves_in_one_turn_is_not_moved() -> None:
    site = Site(placer())
    joined = JobJoined("0:a", 0, "0", 1, 0.0)
    site.coordinator.receive("n", joined, 0.0)
    site.leave("a")
    # It may be back in the same turn.
    for message in (joined, JobLeft("0:a"), joined):
        site.coordinator.receive("n", message, 0.0)
    assert site.coordinator.decide(0.0).retargeted == {"0:a": (0, 1)}


def test_the_user_is_told_which_and_why() -> None:
    site = Site(placer())
    site.join("a")
    assert (
        "Its files go to the storage targets A, B: best-bandwidth gives it 2 of 4 "
        "targets, greedy-non-clairvoyant has chosen which." in site.explain("a")
    )


def test_a_job_keeps_its_targets_over_a_restart_of_the_controller() -> None:
    site = Site(placer())
    assert site.join("b", kept=("C", "D")) == (2, 3)
    assert "C, D: it had them before the controller was restarted" in site.explain("b")
    assert site.join("a") == (0, 1)
    # Targets that are not there any more: it gets new ones.
    site.leave("b")
    assert site.join("c", kept=("C", "X")) == (2, 3)
    assert "greedy-non-clairvoyant has chosen which" in site.explain("c")


def test_nodes_decide_if_no_bandwidth_is_known() -> None:
    site = Site(placer("t-cpu", ()))
    assert len(site.join("a", nodes=3) or ()) == 4
    assert len(site.join("b", nodes=1) or ()) == 1


def test_a_strategy_that_stages_does_not_move_jobs() -> None:
    site = Site(placer(), "2a")
    assert site.join("a") == (0, 1)
    assert site.join("b") == (2, 3)


def test_a_job_of_a_class_has_its_own_profile() -> None:
    placement = get_placement("greedy-non-clairvoyant")
    online = OnlinePlacement(4, 1, get_allocation("best-bandwidth"), placement)
    classes = [("narrow*", (50.0, 40.0)), ("*", (50.0, 60.0, 70.0))]
    site = Site(JobPlacer(online, NAMES, (50.0,), classes))
    assert site.join("narrow-1") == (0,)
    assert site.join("wide") == (1, 2, 3)


def test_a_job_whose_folder_was_not_moved_says_why() -> None:
    site = Site(placer())
    site.join("a")
    site.coordinator.unmoved = {"0:a": "no target A", "7:a": "of another user"}
    assert "But its folder is not on these targets: no target A." in site.explain("a")
    assert site.coordinator.status(0.0).faults == [
        "the folder of job a is not on its storage targets: no target A"
    ]
    assert site.coordinator.status(0.0, reader=7).faults == []


def test_jobs_of_other_users_take_no_targets() -> None:
    online = OnlinePlacement(
        *(4, 1, get_allocation("static"), get_placement("greedy-non-clairvoyant"))
    )
    site = Site(JobPlacer(online, NAMES, user=5))
    assert site.join("a") is None
    assert "only jobs of the user who runs the controller" in site.explain("a")
    assert online.get("0:a") is None
    site.leave("a")


def test_an_algorithm_that_fails_is_reported_and_the_job_runs() -> None:
    site = Site(placer())
    site.coordinator.placer = JobPlacer(
        OnlinePlacement(
            4, 1, get_allocation("best-bandwidth"), get_placement("greedy-clairvoyant")
        ),
        NAMES,
        (-1.0,),
    )
    assert site.join("a") is None
    assert "It was given no storage targets: " in site.explain("a")


def test_the_past_of_a_job_tells_its_work_and_its_volume() -> None:
    """4 iterations of 25 s, 500 bytes at 100 bytes/s in each: 20 s of work."""
    controller = Controller("fair-share", B, compiled=False)
    history = JobHistory(0.0, 0.0, 4, 100.0)
    controller.register("0:a", 0.0, history=history, nodes=7)
    storage = SharedStorage("", controller, None)
    phases, predictor = PhaseDetector(0.1), VolumePredictor()
    job = JobRecord("0:a", 0, 7, storage, phases, predictor, 0.0, 0.0)
    assert application_of(job, (B,)).phases() == []
    predictor.learn(500.0)
    known = application_of(job, (B,))
    assert known.phases() == [("work", pytest.approx(20.0)), ("io", 500.0)]
    assert (known.name, known.nodes, known.profile.tolist()) == ("0:a", 7, [B])
    assert inf not in known.profile
    job.hint_work_s = 7.0
    assert application_of(job, (B,)).phases() == [("work", 7.0), ("io", 500.0)]


# --- Jobs of a batch system -----------------------------------------------------------

#: 4 iterations of 25 s, with 500 bytes at 100 bytes/s in each: 20 s of work.
PAST = JobHistory(0.0, 0.0, 4, 100.0, past_bytes=(500.0, 500.0, 500.0), processes=6)


def slurm_job(node: str = "n", name: str = "", **rest: Any) -> JobJoined:
    """Return the message of a node of a job with two nodes."""
    return JobJoined("0:17", 0, "0", 2, 0.0, history_name=name, **rest)


def test_the_name_of_a_job_may_come_from_its_last_node() -> None:
    """Slurm tells it on the first node, whose prolog may be the slower one."""
    site = Site(placer("t-cpu", (50.0, 80.0, 90.0, 95.0)))
    site.histories["0/climate"] = PAST
    site.coordinator.receive("m", AgentHello([]), 0.0)
    site.coordinator.receive("m", slurm_job(), 0.0)
    assert len(site.coordinator.decide(0.0).retargeted["0:17"]) == 4
    assert "t-cpu would have to know V_io, T_cpu" in site.explain("17")
    site.coordinator.receive("n", slurm_job(name="climate"), 0.0)
    assert len(site.coordinator.decide(0.0).retargeted["0:17"]) == 4
    assert "t-cpu gives it 4 of 4 targets, greedy" in site.explain("17")
    job = site.coordinator._jobs["0:17"]
    known = application_of(job, (B,))
    assert known.phases() == [("work", pytest.approx(20.0)), ("io", 500.0)]
    assert job.processes == 6
    # Nothing new: it stays where it is.
    site.coordinator.receive("n", slurm_job(name="climate"), 0.0)
    assert site.coordinator.decide(0.0).retargeted == {}


def test_a_job_with_files_or_kept_targets_is_not_placed_again() -> None:
    for targets in ((), ("C", "D")):
        site = Site(placer("t-cpu", (50.0, 80.0, 90.0, 95.0)))
        site.histories["0/climate"] = PAST
        site.coordinator.receive("m", AgentHello([]), 0.0)
        site.coordinator.receive("m", slurm_job(targets=targets), 0.0)
        site.coordinator.decide(0.0)
        if not targets:
            counts = JobCounters("0:17", 1, 9.0, 0.0, waiting=False, idle_s=0.0)
            site.coordinator.receive("m", CounterReport([counts], 1), 1.0)
        named = slurm_job(name="climate", targets=targets)
        site.coordinator.receive("n", named, 1.0)
        assert site.coordinator.decide(1.0).retargeted == {}


def test_the_class_of_a_job_is_that_of_its_name_in_the_batch_system() -> None:
    placement = get_placement("greedy-non-clairvoyant")
    online = OnlinePlacement(4, 1, get_allocation("best-bandwidth"), placement)
    classes = [("narrow*", (50.0, 40.0))]
    site = Site(JobPlacer(online, NAMES, (50.0, 60.0, 70.0), classes))
    site.coordinator.receive("n", slurm_job(name="narrow-7"), 0.0)
    assert site.coordinator.decide(0.0).retargeted == {"0:17": (0,)}
    # Its number is no name.
    site.leave("17")
    site.coordinator.receive("n", slurm_job(), 0.0)
    assert len(site.coordinator.decide(0.0).retargeted["0:17"]) == 3
    site.coordinator.receive("n", slurm_job(name="narrow-7"), 0.0)
    assert len(site.coordinator.decide(0.0).retargeted["0:17"]) == 1
