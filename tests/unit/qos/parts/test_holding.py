# SPDX-License-Identifier: MIT
"""Requests that are held for an application that is short of its promise."""

from __future__ import annotations

import pytest

from penstock.qos.interface import THINK_S
from penstock.qos.parts.holding import PAUSE_S, TRIAL_S
from support.upper_level import UpperLevel
from unit.qos.parts.test_promises import new_queue, put, taken


def short_queue() -> UpperLevel:
    """Return a queue at 3 s in which B has one request at the storage and is short.

    A has had its promise, and more requests of A wait.
    """
    queue = new_queue()
    put(queue, "b", 0.0)
    assert queue.pop(2.0, has_room=True) >= 0
    put(queue, "a", 3.0, 60)
    taken(queue, 3.0)
    return queue


def test_requests_beyond_a_promise_wait_for_a_short_application() -> None:
    queue = short_queue()
    assert queue.pop(3.0, has_room=True) < 0
    # A's own promise is due again after 1/8 s.
    assert queue.hold_until_s == pytest.approx(3.125)


def test_after_an_answer_they_wait_for_the_next_request_only_shortly() -> None:
    queue = short_queue()
    queue.complete("b", 3.0)
    assert queue.pop(3.0, has_room=True) < 0
    assert queue.hold_until_s == pytest.approx(3.0 + THINK_S)
    assert queue.pop(3.0 + THINK_S, has_room=True) >= 0


def test_nothing_is_held_for_an_application_that_gains_nothing() -> None:
    """B's request never completes, so the trial ends without a gain."""
    queue = short_queue()
    now = 3.0
    while now <= 3.0 + TRIAL_S:
        taken(queue, now, has_room=False)
        assert queue.pop(now, has_room=True) < 0
        now += 0.05
    now += 0.2
    taken(queue, now, has_room=False)
    assert queue.pop(now, has_room=True) >= 0
    assert queue.state.pause_until_s[queue.index_of("b")] == pytest.approx(
        now + PAUSE_S, abs=0.3
    )
