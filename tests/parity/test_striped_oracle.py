# SPDX-License-Identifier: MIT
"""The engine over many storage targets against the exact oracle `oracle.striped`.

Two families of instances, as in `test_oracle_agreement`:

*exact*
    small dyadic numbers: times and rates are doubles without rounding, ties are
    many, and agreement is equality;
*generic*
    lengths and volumes of 53 random bits: nothing ties but what must. Agreement
    to 1e-9, on short runs, as fair share is chaotic on long ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from oracle import make_strategy
from oracle.striped import StripedRun
from oracle.striped import simulate as simulate_exactly
from penstock.model import Application, Instance, Platform, Sharing, Window
from penstock.placement import get_allocation, get_placement
from penstock.sim import Run, simulate
from penstock.sim.state import COMPLETION, POST
from penstock.workloads.striped import Striped
from support import seeded

#: Policies of the exact family.
EXACT_POLICIES = (
    "fair-share",
    "fcfs",
    "greedy-yield",
    "greedy-com",
    "look-ahead-greedy-yield",
    "periodic-greedy-yield:delta=0.75",
)
#: Policies of the generic family: these, and those that learn.
POLICIES = (*EXACT_POLICIES, "exclusive-fcfs", "set-10", "share-priority")
SHARING = (Sharing.TIME, Sharing.BANDWIDTH)
TOLERANCE = 1e-9
KINDS = {COMPLETION: "completion", POST: "post"}
#: Work that outlasts every window.
REST = ("work", 1e4)
EXAMPLES = settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=30,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)

Events = dict[int, list[tuple[str, Any]]]


# --- Both sides in one form ---------------------------------------------------


def exactly(instance: Instance, text: str, *, until_first_end: bool) -> StripedRun:
    """Return the run of the oracle for the policy ``name:key=value,...``."""
    name, _, rest = text.partition(":")
    given = dict(item.split("=") for item in rest.split(",") if item)
    strategy = make_strategy(name, **{k: Fraction(v) for k, v in given.items()})
    return simulate_exactly(
        instance, strategy, steady=False, until_first_end=until_first_end
    )


def by_application(rows: Iterable[tuple[Any, str, int]]) -> Events:
    """Return kind and time of the events of every application.

    By application, as the order of the log within one instant means nothing.
    """
    events_of = defaultdict(list)
    for time, kind, application in rows:
        events_of[application].append((kind, time))
    return dict(events_of)


def logged(run: Run) -> Events:
    """Return the posts and completions of a run."""
    assert run.log is not None
    kinds = [KINDS.get(kind, "wake") for kind in run.log.kind.tolist()]
    rows = zip(run.log.time.tolist(), kinds, run.log.application.tolist(), strict=True)
    return by_application(row for row in rows if row[1] != "wake")


def near(value: float, other: Fraction, tolerance: float) -> bool:
    """Return True if two numbers agree, relatively if they are large."""
    scale = max(abs(other), Fraction(1))
    return abs(Fraction(value) - other) <= Fraction(tolerance) * scale


def all_near(values: Any, others: list[Fraction], tolerance: float) -> bool:
    """Return True if two columns agree."""
    pairs = zip(values.tolist(), others, strict=True)
    return all(near(value, other, tolerance) for value, other in pairs)


def compare(run: Run, exact: StripedRun, tolerance: float) -> None:
    """Assert that engine and oracle agree in everything."""
    assert near(run.instance.window.end, exact.end, tolerance)
    engine_events, oracle_events = logged(run), by_application(exact.log)
    assert engine_events.keys() == oracle_events.keys()
    for application, events in oracle_events.items():
        assert [kind for kind, _ in engine_events[application]] == [
            kind for kind, _ in events
        ]
        for (_, time), (_, other) in zip(
            engine_events[application], events, strict=True
        ):
            assert near(time, other, tolerance)
    assert run.events == len(exact.log)
    assert run.operations.tolist() == exact.operations
    for column in ("lost", "work", "volume", "occupied"):
        values = getattr(run, column)
        assert all_near(values, getattr(exact, column), tolerance), column
    # The yield is a quotient: it may be off in the last bit.
    assert all_near(run.yields, exact.yields, TOLERANCE)


def simulated(instance: Instance, text: str, *, until_first_end: bool) -> Run:
    """Return the run of the engine, with all its checks."""
    return simulate(
        instance,
        text,
        steady=False,
        until_first_end=until_first_end,
        validate=True,
        record=True,
    )


# --- The exact family ---------------------------------------------------------


def targets_of(count: int, widths: tuple[int, ...]) -> Any:
    """Return a strategy for as many of `count` targets as `widths` allow."""
    return st.sampled_from([w for w in widths if w <= count]).flatmap(
        lambda width: st.permutations(range(count)).map(lambda p: tuple(p[:width]))
    )


@st.composite
def exact_applications(
    draw: st.DrawFn, name: str, count: int, sharing: Sharing
) -> Application:
    """Draw an application in eighths of a second, alone at 1/2 to 8 bytes/s.

    It uses 1, 2 or 4 targets, so that means over its flows are exact.
    """
    eighths = st.integers(0, 24).map(lambda n: n / 8)
    targets = draw(targets_of(count, (1, 2, 4)))
    speeds = [0.5, 1.0, 2.0, 8.0] if sharing is Sharing.TIME else [1.0, 2.0]
    cap = draw(st.sampled_from(speeds)) * len(targets)
    phases = []
    for _ in range(draw(st.integers(1, 5))):
        phases.append(("work", draw(eighths)))
        phases.append(("io", draw(eighths) * cap))
    start = draw(st.sampled_from([0.0, 0.0, 0.0, 0.5]))
    age, lost = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    return Application.from_phases(
        name,
        1,
        [*phases, draw(st.sampled_from([("work", 0.0), ("work", 1.5), REST]))],
        release=start - age,
        start=start,
        done_work=age * (4 - lost) / 4,
        profile=[cap] * len(targets),
        targets=targets,
    )


@st.composite
def exact_instances(draw: st.DrawFn, sharing: Sharing) -> Instance:
    """Draw 1 to 6 applications on 1 to 4 targets."""
    count = draw(st.integers(1, 4))
    applications = tuple(
        draw(exact_applications(f"a{n}", count, sharing))
        for n in range(draw(st.integers(1, 6)))
    )
    begin = draw(st.sampled_from([-1.0, 0.0, 0.0, 2.0]))
    window = Window(begin, max(begin, 0.5) + draw(st.integers(1, 80)) / 4)
    platform = Platform(2.0 * count, 1.0, targets=count, sharing=sharing)
    return Instance(platform, window, applications)


def without_rounding(exact: StripedRun) -> bool:
    """Return True if all times and rates of a run are doubles without rounding."""
    numbers = [time for time, _, _ in [*exact.log, *exact.flow_ends]]
    numbers += [rate for _, _, rates in exact.decisions for rate in rates.values()]
    numbers += exact.lost
    return all(Fraction(float(number)) == number for number in numbers)


@pytest.mark.parametrize("text", EXACT_POLICIES)
@pytest.mark.parametrize("sharing", SHARING)
@EXAMPLES
@given(data=st.data(), until_first_end=st.booleans())
def test_exact(
    sharing: Sharing, text: str, data: st.DataObject, until_first_end: bool
) -> None:
    """Equality, ties included."""
    instance = data.draw(exact_instances(sharing))
    exact = exactly(instance, text, until_first_end=until_first_end)
    assume(exact.end > max(instance.window.begin, 0.5))
    assume(without_rounding(exact))
    compare(simulated(instance, text, until_first_end=until_first_end), exact, 0.0)


# --- The generic family -------------------------------------------------------


def generic_application(seed: int, name: str, count: int) -> Application:
    """Draw an application of any width, speed and history; it may end at once."""
    rng = seeded(seed)
    width = rng.randint(1, count)
    cap = rng.uniform(0.3, 1.5) * width
    mean = 10.0 ** rng.uniform(-0.5, 1.0)
    phases = [("work", rng.choice([0.0, mean])), ("io", mean * cap / 3)]
    for _ in range(rng.randint(2, 12)):
        work, volume = rng.uniform(0.2, 1.8) * mean, rng.uniform(0.1, 1.0) * mean * cap
        phases.append(("work", 0.0 if rng.random() < 0.08 else work))
        phases.append(("io", 0.0 if rng.random() < 0.05 else volume))
    phases.append(("work", rng.choice([0.0, mean, 1e4])))
    start = rng.choice([0.0, 0.0, 0.5])
    age = rng.choice([0.0, 0.0, rng.uniform(1.0, 50.0)])
    return Application.from_phases(
        name,
        rng.randint(1, 9),
        phases,
        release=start - age,
        start=start,
        done_work=age * rng.random(),
        period=rng.choice([0.0, mean]),
        profile=[] if rng.random() < 0.2 else [cap] * width,
        targets=tuple(rng.sample(range(count), width)),
    )


def generic_instance(seed: int, sharing: Sharing) -> Instance:
    """Draw 1 to 6 applications on 1 to 4 targets.

    The bandwidth of a target has few bits, so that a flow that could use all of it
    loses nothing by rounding: then its yield is 1 on both sides, and ties.
    """
    rng = seeded(seed)
    count = rng.randint(1, 4)
    applications = tuple(
        generic_application(rng.getrandbits(32), f"a{number}", count)
        for number in range(rng.randint(1, 6))
    )
    begin = rng.choice([0.0, rng.uniform(0.0, 0.4)])
    window = Window(begin, begin + rng.uniform(5.0, 40.0))
    platform = Platform(rng.randint(90, 166) / 128 * count, 0.4, count, sharing)
    return Instance(platform, window, applications)


@pytest.mark.parametrize("text", POLICIES)
@pytest.mark.parametrize("sharing", SHARING)
@EXAMPLES
@given(seed=st.integers(0, 2**32), until_first_end=st.booleans())
def test_generic(sharing: Sharing, text: str, seed: int, until_first_end: bool) -> None:
    """Agreement to 1e-9, on short windows."""
    instance = generic_instance(seed, sharing)
    exact = exactly(instance, text, until_first_end=until_first_end)
    assume(len(exact.decisions) < 300)
    run = simulated(instance, text, until_first_end=until_first_end)
    compare(run, exact, TOLERANCE)


@pytest.mark.parametrize("text", ["fair-share", "greedy-yield", "set-10"])
@pytest.mark.parametrize("index", range(3))
def test_section_5_3(text: str, index: int) -> None:
    """Compare on small problems of target allocation, section 5.3."""
    drawn = Striped(applications=6, targets=4, compute_nodes=48, horizon=100.0)
    problem = drawn.problem(1, index)
    widths = get_allocation("best-bandwidth").allocate(problem)
    placement = get_placement("greedy-clairvoyant").place(problem, widths)
    instance = problem.instance(placement, Window(0.0, 10_000.0))
    exact = exactly(instance, text, until_first_end=True)
    compare(simulated(instance, text, until_first_end=True), exact, TOLERANCE)
    assert max(map(len, placement)) > 1
    assert any(lost > 0 for lost in exact.lost)


@pytest.mark.parametrize("text", ["fair-share", "greedy-com"])
@pytest.mark.parametrize("sharing", SHARING)
@pytest.mark.parametrize("seed", range(6))
def test_interpreted(sharing: Sharing, text: str, seed: int) -> None:
    """Interpreted, the engine does the same to the last bit."""
    instance = generic_instance(seed, sharing)
    options = {"steady": False, "until_first_end": seed % 2 == 0}
    compiled_run = simulate(instance, text, **options)
    interpreted_run = simulate(instance, text, compiled=False, **options)
    assert compiled_run.instance.window == interpreted_run.instance.window
    for column in ("lost", "work", "volume", "occupied", "operations", "ended"):
        assert (
            getattr(compiled_run, column).tolist()
            == getattr(interpreted_run, column).tolist()
        )


# --- Ties that round ----------------------------------------------------------


@st.composite
def alike_applications(draw: st.DrawFn, name: str, count: int) -> Application:
    """Draw an application of which there may be more, in sevenths of a second."""
    targets = draw(targets_of(count, (1, 2, 3, 4)))
    cap = draw(st.sampled_from([1 / 3, 2 / 3]))
    sevenths = st.sampled_from([0, 1, 2, 4]).map(lambda n: n / 7)
    phases = draw(st.lists(st.tuples(sevenths, sevenths), min_size=1, max_size=4))
    return Application.from_phases(
        name,
        1,
        [*(p for w, v in phases for p in (("work", w), ("io", v * cap))), REST],
        profile=[cap] * len(targets),
        targets=targets,
    )


@pytest.mark.parametrize("sharing", SHARING)
@EXAMPLES
@given(data=st.data())
def test_ties_that_round(sharing: Sharing, data: st.DataObject) -> None:
    """Sharing by 3, 5 and 6 separates ties by no more than a rounding error."""
    count = data.draw(st.integers(1, 4))
    applications = tuple(
        data.draw(alike_applications(f"a{n}", count))
        for n in range(data.draw(st.integers(1, 6)))
    )
    platform = Platform(0.4 * count, 1.0, count, sharing)
    # The window ends between events: they lie on no such lattice.
    end = data.draw(st.integers(1, 9)) + 0.123456789
    instance = Instance(platform, Window(0.0, end), applications)
    exact = exactly(instance, "fair-share", until_first_end=False)
    run = simulated(instance, "fair-share", until_first_end=False)
    compare(run, exact, TOLERANCE)
