# SPDX-License-Identifier: MIT
"""Which applications drain first if several want to."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from penstock.staging import ApplicationStatus, Situation
from penstock.staging.flushing import turns
from support.staging_plans import A, B, C, decide, draining


def full(application: ApplicationStatus, **changes: object) -> ApplicationStatus:
    return replace(application, staged_bytes=10.0, **changes)  # type: ignore[arg-type]


def test_the_token_stays_until_the_buffer_is_empty() -> None:
    b, c = full(B, is_blocked=True, turn_began_s=1.0), full(C, is_blocked=True)
    assert draining(decide("2b:flush=token", A, b, c, now=1e6)) == [False, True, False]
    emptied = replace(b, staged_bytes=0.0)
    assert draining(decide("2b:flush=token", A, emptied, c)) == [False, False, True]


def test_the_token_goes_to_the_application_without_it_for_longest() -> None:
    b, c = (
        full(B, is_blocked=True, turn_ended_s=9.0),
        full(C, is_blocked=True, turn_ended_s=7.0),
    )
    assert draining(decide("2b:flush=token", A, b, c)) == [False, False, True]
    never = replace(b, turn_ended_s=-inf)
    assert draining(decide("2b:flush=token", A, never, c)) == [False, True, False]


def test_a_window_is_passed_on_in_time() -> None:
    b, c = full(B, is_blocked=True, turn_began_s=8.0), full(C, is_blocked=True)
    name = "2b:flush=window,window=3"
    during = decide(name, A, b, c, now=10.0)
    assert (draining(during), during.wake_s) == ([False, True, False], 11.0)
    after = decide(name, A, b, c, now=11.0)
    assert (draining(after), after.wake_s) == ([False, False, True], 14.0)


def test_a_window_goes_on_if_no_other_application_wants_to_drain() -> None:
    b = full(B, is_blocked=True, turn_began_s=8.0)
    alone = decide("2b:flush=window,window=3", A, b, now=50.0)
    assert (draining(alone), alone.wake_s) == ([False, True], inf)


def test_priority_goes_first_at_any_moment() -> None:
    b = full(B, is_blocked=True, turn_began_s=1.0)
    c = full(C, is_blocked=True, priority=2.0)
    assert draining(decide("2b:flush=priority", A, b, c)) == [False, False, True]
    equal = replace(c, priority=0.0)
    assert draining(decide("2b:flush=priority", A, b, equal)) == [False, True, False]


# --- The rule itself ------------------------------------------------------------------


def test_all_drain_at_once_by_default() -> None:
    situation = Situation(0.0, 1, (full(A), full(B), full(C)))
    assert turns(situation, [0, 2], "all", 1.0) == ([0, 2], inf)


def test_without_applications_that_want_to_drain_there_is_no_turn() -> None:
    situation = Situation(0.0, 1, (A, B))
    for flush in ("all", "token", "window", "priority"):
        assert turns(situation, [], flush, 1.0) == ([], inf)


@given(
    ended_s=st.lists(st.floats(-100.0, 0.0), min_size=2, max_size=6),
    window_s=st.floats(0.1, 10.0),
)
def test_with_windows_every_application_has_its_turn(
    ended_s: list[float], window_s: float
) -> None:
    """After as many windows as applications, each application has drained once."""
    count = len(ended_s)
    applications = [
        full(replace(A, name=f"a{i}"), turn_ended_s=ended_s[i]) for i in range(count)
    ]
    now_s, served = 0.0, []
    for _ in range(count):
        situation = Situation(now_s, 1, tuple(applications))
        (holder,), wake_s = turns(situation, range(count), "window", window_s)
        assert wake_s > now_s
        served.append(holder)
        for i, application in enumerate(applications):
            if i == holder:
                applications[i] = replace(application, turn_began_s=now_s)
            elif application.turn_began_s < inf:
                ended = replace(application, turn_began_s=inf, turn_ended_s=now_s)
                applications[i] = ended
        now_s = wake_s
    assert sorted(served) == list(range(count))
