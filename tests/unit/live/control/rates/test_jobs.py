# SPDX-License-Identifier: MIT
"""A job in the controller reads the engine's columns."""

from __future__ import annotations

from math import inf

import pytest

from penstock.live.control.rates.controller import Controller
from penstock.live.control.rates.jobs import JobHistory, by_rate
from support.controllers import B, controller_with


def test_a_job_without_an_operation() -> None:
    controller = controller_with("fair-share", "a")
    job = controller.job("a")
    assert (job.cap, job.grant, job.rate, job.usable) == (B, B, 0.0, B)
    assert (job.volume_bytes, job.remaining_bytes(9.0), job.since_post_s(9.0)) == (
        0.0,
        0.0,
        0.0,
    )
    assert job.completion_s == inf
    assert not job.is_frugal
    assert job.history(9.0) == JobHistory(0.0)


def test_a_job_with_an_operation() -> None:
    controller = controller_with("fcfs", "a", "b")
    controller.post("a", 2.0, 300.0)
    controller.post("b", 2.0, 300.0)
    controller.decide(2.0)
    a, b = controller.jobs()
    assert (a.rate, a.grant, b.rate, b.grant) == (B, B, 0.0, 0.0)
    assert (a.remaining_bytes(3.0), b.remaining_bytes(3.0)) == (200.0, 300.0)
    assert (a.completion_s, b.completion_s) == (5.0, inf)
    assert (a.since_post_s(3.0), b.lost_s(4.0)) == (1.0, 2.0)


def test_the_record_shows_the_present_when_columns_grow() -> None:
    """The columns move to new memory when all numbers are taken."""
    controller = controller_with("fair-share", "first")
    job = controller.job("first")
    for number in range(100):
        controller.register(str(number), 0.0)
    controller.post("first", 1.0, 50.0)
    controller.decide(1.0)
    assert (job.rate, job.volume_bytes) == (B, 50.0)


def test_the_yield_at_the_release_is_1() -> None:
    controller = controller_with("fair-share", "a")
    assert controller.job("a").progress_yield(0.0) == 1.0


def test_history_survives_a_second_registration() -> None:
    first = controller_with("fcfs", "a", "b")
    for job_key in ("a", "b"):
        first.post(job_key, 1.0, 100.0)
    first.decide(1.0)
    first.complete("a", 2.0)
    first.decide(2.0)
    first.complete("b", 3.0)
    first.post("b", 4.0, 100.0)
    first.decide(4.0)
    first.complete("b", 5.0)
    history = first.job("b").history(5.0)
    assert history == JobHistory(0.0, lost_s=1.0, iterations=1, iteration_time_s=2.0)
    second = Controller("fcfs", B, compiled=False)
    second.register("b", 5.0, history=history)
    assert second.job("b").history(5.0) == history
    assert second.job("b").progress_yield(5.0) == pytest.approx(0.8)
    # The restart has cut a work phase: the operation after it ends no iteration.
    second.post("b", 7.0, 100.0)
    second.decide(7.0)
    second.complete("b", 8.0)
    assert second.job("b").history(8.0) == history


def test_by_rate() -> None:
    controller = controller_with("fair-share", *"abcd")
    for job_key, limit in (("a", 10.0), ("b", 30.0), ("c", 20.0)):
        controller.set_limit(job_key, limit, 0.0)
        controller.post(job_key, 0.0, 1e4)
    controller.decide(0.0)
    assert [job.key for job in by_rate(controller.jobs())] == ["b", "c", "a"]
