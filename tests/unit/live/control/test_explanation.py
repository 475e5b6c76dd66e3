# SPDX-License-Identifier: MIT
"""The sentences of ``penstock ctl explain``."""

from __future__ import annotations

import pytest

from penstock.live.control.explanation import Circumstances, explain
from penstock.live.control.rates.controller import Controller
from penstock.live.control.rates.jobs import by_rate
from penstock.live.control.rates.lending import LEND_AFTER_S
from penstock.units import format_bandwidth
from support.controllers import controller_with


def explanation(
    controller: Controller,
    job_key: str,
    now: float,
    circumstances: Circumstances | None = None,
) -> str:
    """Return the explanation for a reader who may see all jobs."""
    job, active = controller.job(job_key), by_rate(controller.jobs())
    return explain(job, active, controller.policy, now, str, circumstances)


def test_a_job_without_io() -> None:
    controller = controller_with("fcfs", "a")
    assert explanation(controller, "a", 4.0) == (
        "a does no I/O now. Its next operation may begin at 100 B/s. "
        "It has lost 0 s of the 4 s since it started (yield 1.000)."
    )


def test_a_job_with_all_that_it_can_use() -> None:
    controller = controller_with("fcfs", "a")
    controller.post("a", 1.0, 500.0)
    controller.decide(1.0)
    assert explanation(controller, "a", 2.0) == (
        "a may draw 100 B/s, all that it can use. "
        "Its operation began 1 s ago; 400 B of about 500 B remain "
        "(nobody has announced the volume: penstock guesses it). "
        "It has lost 0 s of the 2 s since it started (yield 1.000)."
    )


def test_an_announced_volume_is_not_called_a_guess() -> None:
    controller = controller_with("fcfs", "a")
    controller.post("a", 1.0, 500.0)
    controller.decide(1.0)
    text = explanation(controller, "a", 2.0, Circumstances(is_announced=True))
    assert "began 1 s ago; 400 B of the announced 500 B remain." in text
    assert "guess" not in text


def test_the_age_of_a_job_with_history_counts_from_its_first_run() -> None:
    controller = controller_with("fcfs", "a")
    text = explanation(controller, "a", 4.0, Circumstances(has_history=True))
    assert "lost 0 s of the 4 s since its first run on record (yield" in text


def test_users_and_policies_may_count_the_lost_time_differently() -> None:
    controller = controller_with("fcfs", "a", "b")
    controller.post("a", 0.0, 1000.0)
    controller.post("b", 0.0, 1000.0)
    controller.decide(0.0)
    shown = Circumstances(lost_of={"a": 0.0, "b": 1.0}.get)  # type: ignore[arg-type]
    text = explanation(controller, "b", 4.0, shown)
    assert "Also served: a with 100 B/s (yield 1.000)." in text
    assert text.endswith(
        "It has lost 1 s of the 4 s since it started (yield 0.750). For the policy it "
        "counts as 4 s: what its grants cost, whether they held up its calls or not."
    )


def test_a_free_job_is_told_why() -> None:
    controller = controller_with("fcfs", "a")
    free = Circumstances(free_because="it is alone")
    assert explanation(controller, "a", 4.0, free).startswith(
        "a does no I/O now: it is alone. It has"
    )
    controller.post("a", 5.0, 500.0)
    controller.decide(5.0)
    assert explanation(controller, "a", 6.0, free).startswith(
        "a is not held up: it is alone. Its"
    )


def test_a_job_that_waits_names_the_job_that_is_served() -> None:
    controller = controller_with("fcfs", "a", "b")
    controller.post("a", 1.0, 1000.0)
    controller.decide(1.0)
    controller.post("b", 2.0, 1000.0)
    controller.decide(2.0)
    assert explanation(controller, "b", 4.0) == (
        "b waits: policy fcfs serves other jobs first. "
        "Its operation began 2 s ago; 1 kB of about 1 kB remain "
        "(nobody has announced the volume: penstock guesses it). "
        "Also served: a with 100 B/s (yield 1.000). "
        "It has lost 2 s of the 4 s since it started (yield 0.500)."
    )


def test_a_share_and_a_limit() -> None:
    controller = controller_with("fair-share", "a", "b")
    for job_key in ("a", "b"):
        controller.post(job_key, 1.0, 1e4)
    controller.set_limit("b", 20.0, 1.0)
    controller.decide(1.0)
    share = (
        "83% of the 100 B/s that it can use: policy fair-share divides the bandwidth"
    )
    assert share in explanation(controller, "a", 2.0)
    assert "among 2 active jobs" in explanation(controller, "a", 2.0)
    assert (
        "An operator has limited it to 20 B/s "
        "(remove the limit with: penstock ctl limit b none)."
    ) in explanation(controller, "b", 2.0)


def test_a_frugal_job_is_told_that_it_lends() -> None:
    controller = controller_with("fair-share", "a", "b")
    for job_key in ("a", "b"):
        controller.post(job_key, 0.0, 1e4)
    controller.decide(0.0)
    controller.progress("a", LEND_AFTER_S, 4.0, held_up=False)
    controller.decide(LEND_AFTER_S)
    text = explanation(controller, "a", LEND_AFTER_S)
    assert "a may draw 12.5 B/s: it drew less than its grant" in text
    assert "Also served" not in text


def test_a_job_is_told_what_other_jobs_lend_to_it() -> None:
    controller = controller_with("fair-share", "a", "b", "c")
    for job_key in ("a", "b", "c"):
        controller.post(job_key, 0.0, 1e4)
    controller.set_limit("c", 20.0, 0.0)
    controller.decide(0.0)
    before = controller.job("b").rate
    assert controller.job("b").borrowed == 0.0
    controller.progress("a", LEND_AFTER_S, 4.0, held_up=False)
    controller.decide(LEND_AFTER_S)
    lent = controller.job("b").rate - before
    assert lent > 0.0
    assert controller.job("b").borrowed == pytest.approx(lent)
    assert controller.job("a").borrowed == 0.0
    share = (
        f"of which {format_bandwidth(lent)} is lent by other jobs: policy fair-share"
    )
    assert share in explanation(controller, "b", LEND_AFTER_S)
    # A call of the lender is held up: it gets its grant back.
    controller.progress("a", 2 * LEND_AFTER_S, 8.0, held_up=True)
    controller.decide(2 * LEND_AFTER_S)
    assert controller.job("b").borrowed == 0.0
    assert "lent" not in explanation(controller, "b", 2 * LEND_AFTER_S)


def test_at_most_three_other_jobs_are_named() -> None:
    controller = controller_with("fair-share", *"abcdefg")
    for job_key in "abcdefg":
        controller.post(job_key, 0.0, 1e4)
    controller.decide(0.0)
    text = explanation(controller, "a", 1.0)
    assert text.count(" with ") == 3
    assert "and 3 more." in text


def test_another_users_job_is_not_named() -> None:
    controller = controller_with("fair-share", "7:mine", "8:theirs")
    for job in controller.jobs():
        controller.post(job.key, 0.0, 1e4)
    controller.decide(0.0)

    def name_of(job_key: str) -> str | None:
        return "mine" if job_key == "7:mine" else None

    active = by_rate(controller.jobs())
    text = explain(controller.job("7:mine"), active, "set-10", 1.0, name_of)
    assert text.startswith("mine may draw 50 B/s, 50% of the 100 B/s that it can use")
    assert "Also served: another user's job with 50 B/s." in text
    assert "8:" not in text
