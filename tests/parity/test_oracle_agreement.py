# SPDX-License-Identifier: MIT
"""The engine and its policies against the oracle, which computes with fractions.

Two families of instances, so that no comparison hangs on a rounding error:

*exact*
    small dyadic numbers and caps that make every rate a power of two: times and
    rates are doubles without rounding, ties are many, and agreement is equality;
*generic*
    lengths and volumes of 53 random bits: nothing ties but what must (posts at a
    common start, yields of 1), which both sides get exactly. Agreement to 1e-9.

best-next-event is compared in `test_best_next_event`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oracle import OracleRun, make_strategy
from oracle import simulate as simulate_exactly
from penstock.kernels import interpreted
from penstock.model import Application, Instance, Platform, Window
from penstock.policies import get_policy
from penstock.policies.view import View
from penstock.sim import Run, simulate
from penstock.sim.state import COMPLETION, POST, WAKE_UP
from penstock.workloads import Synthetic
from support import ALL_POLICIES, seeded

#: Policies that keep to powers of two in the exact family.
EXACT_POLICIES = (
    "fcfs",
    "exclusive-fcfs",
    "greedy-yield",
    "greedy-com",
    "look-ahead-greedy-yield",
    "periodic-greedy-yield:delta=0.75",
    "periodic-greedy-yield:delta=1.25,clock=event",
)
#: One has a test of its own; the rule of the other has no second derivation.
_APART = ("best-next-event", "soft-deadline")
POLICIES = tuple(name for name in ALL_POLICIES if name not in _APART)
TOLERANCE = 1e-9
KINDS = {COMPLETION: "completion", POST: "post", WAKE_UP: "wake"}
Decisions = list[tuple[float, dict[int, float]]]


# --- Both sides in one form ---------------------------------------------------


def exactly(instance: Instance, text: str, *, steady: bool = True) -> OracleRun:
    """Return the run of the oracle for the policy ``name:key=value,...``."""
    name, _, rest = text.partition(":")
    given: dict[str, Any] = dict(item.split("=") for item in rest.split(",") if item)
    for key in given.keys() & {"delta", "initial_weight"}:
        given[key] = Fraction(float(given[key]))
    return simulate_exactly(instance, make_strategy(name, **given), steady=steady)


def taken_decisions(instance: Instance, text: str, *, steady: bool = True) -> Decisions:
    """Return time and rates of every decision of the policy in the engine."""
    policy = get_policy(text)
    twin = interpreted(policy.allocate)
    taken: Decisions = []

    def allocate(view: View, rates: Any) -> float:
        wake = float(twin(view, rates))
        active = [view.active[position] for position in range(view.n_active)]
        taken.append((view.now, {i: rates[i] for i in active}))
        return wake

    watched = replace(policy, function=allocate)
    simulate(instance, watched, compiled=False, validate=True, steady=steady)
    return taken


def events_by_application(run: Run | OracleRun) -> dict[int, list[tuple[str, Any]]]:
    """Return kind and time of the events of every application; -1: wake-ups.

    By application, as the order of the log within one instant means nothing.
    """
    if isinstance(run, OracleRun):
        rows: Any = [(application, kind, time) for time, kind, application in run.log]
    else:
        assert run.log is not None
        kinds = [KINDS[kind] for kind in run.log.kind.tolist()]
        rows = zip(
            run.log.application.tolist(), kinds, run.log.time.tolist(), strict=True
        )
    by_application = defaultdict(list)
    for application, kind, time in rows:
        by_application[application].append((kind, time))
    return dict(by_application)


def near(value: float, other: Fraction, tolerance: float) -> bool:
    """Return True if two numbers agree, relatively if they are large."""
    scale = max(abs(other), Fraction(1))
    return bool(abs(Fraction(value) - other) <= Fraction(tolerance) * scale)


def compare(instance: Instance, text: str, tolerance: float) -> OracleRun:
    """Assert that engine and oracle agree in everything; return the oracle's run."""
    exact = exactly(instance, text)
    run = simulate(instance, text, record=True, validate=True)
    compare_outcomes(run, exact, tolerance)
    decisions = taken_decisions(instance, text)
    assert len(decisions) == len(exact.decisions) == run.decisions
    for decision, exact_decision in zip(decisions, exact.decisions, strict=True):
        assert near(decision[0], exact_decision[0], tolerance)
        assert decision[1].keys() == exact_decision[1].keys()
        for i, rate in decision[1].items():
            assert near(rate, exact_decision[1][i], tolerance)
    return exact


def compare_outcomes(run: Run, exact: OracleRun, tolerance: float) -> None:
    """Assert that events, lost time, work and volume agree."""
    assert run.events == exact.events
    engine_events, oracle_events = (
        events_by_application(run),
        events_by_application(exact),
    )
    assert engine_events.keys() == oracle_events.keys()
    for application, events in oracle_events.items():
        assert [kind for kind, _ in engine_events[application]] == [
            kind for kind, _ in events
        ]
        for (_, time), (_, other) in zip(
            engine_events[application], events, strict=True
        ):
            assert near(time, other, tolerance)
    for i in range(len(exact.lost)):
        assert near(run.lost[i], exact.lost[i], tolerance)
        assert near(run.work[i], exact.work_in_window[i], tolerance)
        assert near(run.volume[i], exact.volume_in_window[i], tolerance)
        # The yield is a quotient: it may be off in the last bit.
        assert abs(run.yields[i] - exact.yields[i]) <= TOLERANCE


# --- The exact family ---------------------------------------------------------


@st.composite
def exact_instances(draw: st.DrawFn) -> Instance:
    """Draw 3 to 5 applications in eighths of a second.

    With all caps B or B/2, or all B/2 or B/4, or one cap for all, what is left
    over for the next in line is a power of two or nothing.
    """
    bandwidth, node = draw(st.sampled_from([(1, 1), (4, 2), (4, 1), (8, 2), (0.5, 2)]))
    eighths = st.integers(0, 40).map(lambda n: n / 8)
    begin = draw(st.integers(0, 6).map(lambda n: n / 2))
    applications = []
    for number in range(draw(st.integers(3, 5))):
        nodes = draw(st.integers(1, 2))
        cap = min(nodes * node, bandwidth)
        phases = []
        for _ in range(draw(st.integers(1, 5))):
            phases.append(("work", draw(eighths)))
            phases.append(("io", draw(eighths) * cap))
        phases.append(("work", 1000.0))
        start = draw(st.sampled_from([-1.0, 0.0, 0.0, 0.0, 1.5]))
        age, lost = draw(st.integers(0, 8)), draw(st.integers(0, 8))
        history = {
            "release": start - age,
            "start": start,
            "done_work": age * (8 - lost) / 16,
            "done_volume": cap * age * (8 - lost) / 16,
        }
        applications.append(
            Application.from_phases(f"a{number}", nodes, phases, **history)
        )
    end = begin + draw(st.integers(4, 100)) / 4
    platform = Platform(float(bandwidth), float(node))
    return Instance(platform, Window(begin, end), tuple(applications))


@pytest.mark.parametrize("text", EXACT_POLICIES)
@given(instance=exact_instances())
@settings(deadline=None, derandomize=True, max_examples=30)
def test_exact(text: str, instance: Instance) -> None:
    """Equality, ties included."""
    exact = exactly(instance, text)
    numbers = [time for time, _ in exact.decisions]
    numbers += [rate for _, rates in exact.decisions for rate in rates.values()]
    numbers += [time for time, _, _ in exact.log]
    # Halves of halves could outgrow 53 bits; they hardly ever do.
    assume(all(Fraction(float(number)) == number for number in numbers))
    compare(instance, text, 0.0)


# --- The generic family -------------------------------------------------------


def generic_instance(seed: int, *, count: int | None = None) -> Instance:
    """Draw 3 to 5 applications of different size, speed and history."""
    rng = seeded(seed)
    bandwidth = rng.choice([1.0, 4.0, 8.0, 5.0])
    node = rng.choice([0.5, 1.0, 2.0])
    applications = []
    for number in range(count or rng.randint(3, 5)):
        nodes = rng.randint(1, 8)
        cap = min(nodes * node, bandwidth)
        mean = 10.0 ** rng.uniform(-0.5, 1.5)
        phases = [("work", rng.choice([0.0, mean])), ("io", mean * cap / 4)]
        phases += [("work", rng.uniform(0.2, 1.8) * mean), ("io", mean * cap / 8)]
        for _ in range(int(80 / mean) + 2):
            work = rng.uniform(0.2, 1.8) * mean
            volume = rng.uniform(0.1, 1.2) * mean * cap / 2
            phases.append(("work", 0.0 if rng.random() < 0.08 else work))
            phases.append(("io", 0.0 if rng.random() < 0.05 else volume))
        phases.append(("work", 1e4))
        start = float(rng.choice([-2, 0, 0, 0, 3]))
        age = rng.choice([0, 0, rng.randint(1, 50)])
        done = age * rng.randint(0, 8) / 8
        applications.append(
            Application.from_phases(
                f"a{number}",
                nodes,
                phases,
                release=start - age,
                start=start,
                done_work=done,
                done_volume=rng.choice([0.0, (age - done) / 2]) * min(cap, 1.0),
                period=rng.choice([0.0, mean]),
            )
        )
    begin = rng.choice([0.0, rng.uniform(0.0, 10.0)])
    window = Window(begin, begin + rng.uniform(5.0, 60.0))
    return Instance(Platform(bandwidth, node), window, tuple(applications))


@pytest.mark.parametrize("text", POLICIES)
@given(seed=st.integers(0, 2**32))
@settings(deadline=None, derandomize=True, max_examples=8)
def test_generic(text: str, seed: int) -> None:
    """Agreement to 1e-9, on short windows."""
    compare(generic_instance(seed), text, TOLERANCE)


@pytest.mark.parametrize("text", POLICIES)
@pytest.mark.parametrize("index", range(2))
def test_synthetic(text: str, index: int) -> None:
    """Ten applications of the synthetic workload, some hundred events."""
    drawn = Synthetic(applications=10, horizon=60_000.0).instance(7, index)
    window = Window(500.0, 45_000.0)
    instance = Instance(drawn.platform, window, drawn.applications)
    exact = compare(instance, text, TOLERANCE)
    assert exact.events > 200


# --- Corners ------------------------------------------------------------------


def ends_inside() -> Instance:
    """Return a and b, who share the storage from 1 on, and c, who ends at 4."""
    a = Application.from_phases(
        "a", 1, [("io", 8), ("work", 99)], release=-2.0, start=0.0, done_work=2.0
    )
    b = Application.from_phases("b", 1, [("work", 1), ("io", 8), ("work", 99)])
    c = Application.from_phases("c", 1, [("work", 4)])
    return Instance(Platform(1.0, 1.0), Window(0.0, 12.0), (a, b, c))


@pytest.mark.parametrize("text", ["fcfs", "greedy-com", "set-10"])
def test_open_run(text: str) -> None:
    """An application may end, and the others are not touched."""
    instance = ends_inside()
    run = simulate(instance, text, steady=False, record=True, validate=True)
    compare_outcomes(run, exactly(instance, text, steady=False), 0.0)


def test_open_run_decides_at_events_only() -> None:
    """The end of an application is neither a post nor a completion."""
    instance = ends_inside()
    exact = exactly(instance, "greedy-yield", steady=False)
    decisions = taken_decisions(instance, "greedy-yield", steady=False)
    assert [time for time, _ in decisions] == [time for time, _ in exact.decisions]


@pytest.mark.parametrize("update", ["completion", "post", "strict"])
def test_second_operation_without_work(update: str) -> None:
    """The second operation ends an iteration, also without work before it."""
    a = Application.from_phases("a", 1, [("io", 0), ("io", 8), ("work", 99)])
    b = Application.from_phases("b", 1, [("work", 1), ("io", 1), ("work", 99)])
    instance = Instance(Platform(1.0, 1.0), Window(0.0, 9.0), (a, b))
    compare(instance, f"set-10:update={update}", TOLERANCE)


@pytest.mark.parametrize("update", ["completion", "post", "strict"])
@pytest.mark.parametrize("name", ["set-10", "set-fair-share", "share-priority"])
@pytest.mark.parametrize("seed", range(3))
def test_every_rule_for_the_period(name: str, update: str, seed: int) -> None:
    """The rules for the first operations, on applications with offset and history."""
    compare(generic_instance(seed), f"{name}:update={update}", TOLERANCE)
