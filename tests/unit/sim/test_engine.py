# SPDX-License-Identifier: MIT
"""The main loop: events at one instant, their order, and the decisions."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from penstock.model import Application, Instance, Platform, Window
from penstock.policies.policy import Policy, bind
from penstock.sim import engine, simulate
from penstock.sim.run import Run
from penstock.sim.state import COMPLETION, POST, WAKE_UP
from unit.samples import app, make

NAMES = {COMPLETION: "completion", POST: "post", WAKE_UP: "wake-up"}


def events(run: Run) -> list[tuple[float, str, int]]:
    """Return the log as (instant, event, application)."""
    assert run.log is not None
    rows = zip(run.log.time, run.log.kind, run.log.application, strict=True)
    return [(float(t), NAMES[int(k)], int(i)) for t, k, i in rows]


def seen_by(allocate: Any) -> tuple[Policy, list[tuple[float, list[int]]]]:
    """Return a policy that records the time and the active applications."""
    seen: list[tuple[float, list[int]]] = []

    def watched(view: Any, rates: Any) -> float:
        active = [view.active[position] for position in range(view.n_active)]
        seen.append((view.now, active))
        return float(allocate(view, rates))

    return bind("watched", watched), seen


def first_only(view: Any, rates: Any) -> float:
    """Serve the active application with the lowest index; never ask to be woken."""
    first = view.active[0]
    rates[first] = min(view.cap[first], view.capacity)
    return inf


def equal_times() -> Instance:
    """Return applications of which one completes when two others post, at 4 s."""
    return make(
        app("a", ("work", 4.0), ("io", 1.0), ("work", 30.0)),
        app("b", ("work", 1.0), ("io", 3.0), ("work", 30.0)),
        app("c", ("work", 4.0), ("io", 1.0), ("work", 30.0)),
    )


def test_a_completion_comes_before_posts_and_posts_by_index() -> None:
    run = simulate(equal_times(), "fcfs", record=True)
    assert [event for event in events(run) if event[0] == 4.0] == [
        (4.0, "completion", 1),
        (4.0, "post", 0),
        (4.0, "post", 2),
    ]


@pytest.mark.parametrize("compiled", [True, False])
def test_one_decision_per_instant_after_all_its_events(compiled: bool) -> None:
    policy, seen = seen_by(first_only)
    simulate(equal_times(), policy, compiled=compiled)
    assert seen == [(1.0, [1]), (4.0, [0, 2]), (5.0, [2])]


def test_a_wake_up_comes_before_the_completion_at_the_same_time() -> None:
    def wake_at_the_end(view: Any, rates: Any) -> float:
        first_only(view, rates)
        return float(view.now + view.remaining[view.active[0]])

    policy, seen = seen_by(wake_at_the_end)
    run = simulate(
        make(app("a", ("work", 1.0), ("io", 2.0), ("work", 30.0))), policy, record=True
    )
    assert events(run) == [
        (1.0, "post", 0),
        (3.0, "wake-up", -1),
        (3.0, "completion", 0),
    ]
    # At 3 s no application is active: the policy is not called.
    assert seen == [(1.0, [0])]


def test_phases_of_length_0_pass_before_the_next_application() -> None:
    run = simulate(
        make(
            app(
                "a", ("work", 2.0), ("io", 0.0), ("io", 0.0), ("io", 1.0), ("work", 30)
            ),
            app("b", ("work", 2.0), ("io", 1.0), ("work", 30.0)),
        ),
        "fcfs",
        record=True,
    )
    at_two = [event[1:] for event in events(run) if event[0] == 2.0]
    zero = [("post", 0), ("completion", 0)]
    assert at_two == [*zero, *zero, ("post", 0), ("post", 1)]
    assert run.decisions == 2


def test_the_end_of_an_application_causes_no_decision() -> None:
    policy, seen = seen_by(first_only)
    instance = make(
        app("a", ("work", 1.0), ("io", 4.0), ("work", 30.0)),
        app("b", ("work", 3.0)),
    )
    simulate(instance, policy, steady=False)
    assert seen == [(1.0, [0])]


def test_an_event_at_the_end_of_the_window_is_not_handled() -> None:
    instance = make(app("a", ("work", 10.0), ("io", 1.0), ("work", 1.0)))
    run = simulate(instance, "fcfs", record=True)
    assert events(run) == []
    assert run.work.tolist() == [10.0]


def test_a_constant_rate_is_not_rounded_by_other_events() -> None:
    # a transfers 0.3 at rate 0.1; the posts of the others cause decisions meanwhile.
    rate = 0.1

    def give_a_tenth(view: Any, rates: Any) -> float:
        for position in range(view.n_active):
            rates[view.active[position]] = rate
        return inf

    instance = make(
        app("a", ("io", 0.3), ("work", 30.0)),
        *(app(f"x{n}", ("work", 0.07 * n), ("io", 9.0)) for n in range(1, 9)),
        window=(0.0, 9.0),
    )
    run = simulate(instance, bind("tenth", give_a_tenth), record=True)
    (done,) = [t for t, kind, i in events(run) if (kind, i) == ("completion", 0)]
    assert done == 0.3 / rate


def test_targets_decide_independently() -> None:
    phases = [("work", 1.0), ("io", 2.0), ("work", 30.0)]
    both = Application.from_phases("both", 2, phases, targets=(0, 1))
    phases = [("work", 2.0), ("io", 1.0), ("work", 30.0)]
    one = Application.from_phases("one", 1, phases, targets=(1,))
    instance = Instance(Platform(2.0, 1.0, targets=2), Window(0.0, 10.0), (both, one))
    policy, seen = seen_by(first_only)
    run = simulate(instance, policy, record=True)
    # Flows 0 and 1 are those of `both`; each has 1 byte at 1 byte/s, from 1 to 2 s.
    assert sorted(seen[:2]) == [(1.0, [0]), (1.0, [1])]
    # At 2 s both flows are done and `one` posts: only target 1 has a flow to serve.
    assert seen[2:] == [(2.0, [2])]
    assert run.lost.tolist() == [0.0, 0.0]


def test_a_flow_that_is_done_waits_for_the_others_and_loses_time() -> None:
    """One flow waits 2 s after its end, the other 2 s before its start."""

    def starve_target_1(view: Any, rates: Any) -> float:
        flow = view.active[0]
        if flow == 1 and view.now < 3.0:
            return 3.0
        rates[flow] = view.cap[flow]
        return inf

    phases = [("work", 1.0), ("io", 2.0), ("work", 30.0)]
    both = Application.from_phases("both", 2, phases, targets=(0, 1))
    instance = Instance(Platform(2.0, 1.0, targets=2), Window(0.0, 10.0), (both,))
    run = simulate(instance, bind("mine", starve_target_1), record=True)
    assert events(run)[-1] == (4.0, "completion", 0)
    # 3 s from post to completion, 1 s of them transfer at full speed.
    assert run.lost.tolist() == [2.0]


def test_the_docstring_of_the_module_states_the_order_at_equal_times() -> None:
    text = " ".join((engine.__doc__ or "").split())
    order = ["The clock is set", "Wake-ups and flows", "Work phases", "ONE decision"]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
