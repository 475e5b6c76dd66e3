# SPDX-License-Identifier: MIT
"""Jobs of a batch system, whose names are numbers, learn from their namesakes."""

from __future__ import annotations

from penstock.live.control.coordinator import Coordinator
from penstock.live.control.histories import history_key, past_of
from penstock.live.control.rates.controller import Controller
from penstock.live.control.rates.jobs import JobHistory
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    CounterReport,
    JobCounters,
    JobJoined,
    JobLeft,
)

OWN = JobHistory(-10.0, 3.0, 2, 8.0, (5.0,), 2.0, 4)
NAMESAKE = JobHistory(-90.0, 9.0, 5, 50.0, (7.0, 8.0), 6.0, 16)
SAVED = {"7:12": OWN, "7/climate": NAMESAKE}


def joined(name: str, history_name: str = "climate", user: int = 7) -> JobJoined:
    """Return the message about a job of the batch system."""
    facts = (f"{user}:{name}", user, "physics", 1, 0.0)
    return JobJoined(*facts, history_name=history_name)


def test_the_own_history_counts_first() -> None:
    assert past_of(joined("12"), SAVED.get, 100.0) == OWN


def test_a_job_that_has_done_nothing_before_a_restart_learns_from_its_namesakes() -> (
    None
):
    saved = SAVED | {"7:13": JobHistory(40.0), "7:14": JobHistory(50.0)}
    expected = JobHistory(40.0, 0.0, 5, 50.0, (7.0, 8.0), 0.0, 16)
    assert past_of(joined("13"), saved.get, 100.0) == expected
    assert past_of(joined("14", "other"), saved.get, 100.0) == JobHistory(50.0)


def test_a_new_number_gets_what_was_learnt_and_nothing_that_was_lost() -> None:
    expected = JobHistory(100.0, 0.0, 5, 50.0, (7.0, 8.0), 0.0, 16)
    assert past_of(joined("13"), SAVED.get, 100.0) == expected


def test_others_get_nothing() -> None:
    assert past_of(joined("13", "other"), SAVED.get, 100.0) is None
    assert past_of(joined("13", ""), SAVED.get, 100.0) is None
    assert past_of(joined("13", user=8), SAVED.get, 100.0) is None


def test_what_a_job_has_done_helps_the_next_of_its_name() -> None:
    """Its own number is the key for a restart, its name for later jobs."""
    saved: dict[str, JobHistory] = {}
    config = AgentConfig("control", ["/s"], 0.1, 0.1, 3.0, 100.0, reads=True)
    controller = Controller("fair-share", 100.0, compiled=False)
    coordinator = Coordinator(controller, config, saved.get)
    coordinator.receive("n", AgentHello([]), 0.0)
    coordinator.receive("n", joined("12"), 0.0)
    for now, moved_bytes, idle_s in ((0.0, 0.0, 9.0), (1.0, 500.0, 0.0)):
        facts = (0 if now == 0.0 else 1, moved_bytes, 0.0)
        counters = JobCounters("7:12", *facts, waiting=False, idle_s=idle_s)
        coordinator.receive("n", CounterReport([counters], 1), now)
        coordinator.decide(now)
    coordinator.receive("n", JobLeft("7:12"), 3.0)
    output = coordinator.decide(3.0)
    assert output.left.keys() == {"7:12"}
    assert output.learnt.keys() == {history_key(7, "climate")}
    assert output.learnt["7/climate"].past_bytes == (500.0,)
    # No later job has its number.
    assert output.learnt["7/climate"].is_lasting
    assert not output.left["7:12"].is_lasting
    saved |= output.learnt
    coordinator.receive("n", joined("13"), 9.0)
    assert coordinator.histories(9.0)["7:13"].past_bytes == (500.0,)
    assert controller.job("7:13").age_s(9.0) == 0.0
    # Slurm tells the name on one node only, which may register the job last.
    coordinator.receive("m", AgentHello([]), 9.0)
    coordinator.receive("m", joined("14", ""), 9.0)
    assert coordinator.histories(9.0)["7:14"].past_bytes == ()
    # The daemon saves what running jobs have done every few seconds.
    saved |= coordinator.histories(9.0)
    coordinator.receive("n", joined("14"), 9.0)
    assert coordinator.histories(9.0)["7:14"].past_bytes == (500.0,)
