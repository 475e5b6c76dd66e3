# SPDX-License-Identifier: MIT
"""Many storage targets: cases worked out by hand, and general properties.

The engine and the oracle that tests it both run every case by hand. All numbers are
exact in binary, and so is the comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oracle import make_strategy
from oracle.simulator import simulate as simulate_one_target
from oracle.striped import StripedRun
from oracle.striped import simulate as simulate_exactly
from penstock.model import Application, Instance, Platform, Sharing, Window
from penstock.policies import POLICIES
from penstock.sim import Run, simulate
from penstock.sim.state import COMPLETION
from support import ALL_POLICIES

Simulator: TypeAlias = Callable[..., Run | StripedRun]

TIME, BANDWIDTH = Sharing.TIME, Sharing.BANDWIDTH
#: Work that lasts to the end of every window below.
REST = ("work", 1000.0)
#: Every policy; the periodic one with a period that does not depend on the instance.
SETTINGS = (
    *(name for name in POLICIES if name != "periodic-greedy-yield"),
    "periodic-greedy-yield:delta=0.75",
    "set-10:initial=weight,update=post",
)
EXAMPLES = settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)


def engine(instance: Instance, policy: str, **options: Any) -> Run:
    """Simulate with the engine, all checks and an event log."""
    return simulate(instance, policy, validate=True, record=True, **options)


def oracle(instance: Instance, policy: str, **options: Any) -> StripedRun:
    """Simulate with the oracle."""
    return simulate_exactly(instance, make_strategy(policy), **options)


both = pytest.mark.parametrize("simulator", [engine, oracle])


def app(name: str, targets: tuple[int, ...], *phases: Any, **rest: Any) -> Application:
    """Return an application with 1 byte/s on its targets by default."""
    given = {"profile": [1.0] * len(targets), "targets": targets}
    return Application.from_phases(name, 1, phases, **(given | rest))


def case(
    *applications: Application,
    end: float,
    targets: int,
    sharing: Sharing = TIME,
    bandwidth: float = 1.0,
    begin: float = 0.0,
) -> Instance:
    """Return an instance with targets of `bandwidth` each."""
    platform = Platform(bandwidth * targets, bandwidth, targets, sharing)
    return Instance(platform, Window(begin, end), applications)


def completions(run: Run | StripedRun) -> list[list[float]]:
    """Return the completion times of the operations of every application."""
    times: list[list[float]] = [[] for _ in run.lost]
    if isinstance(run, StripedRun):
        rows = [
            (t, application) for t, kind, application in run.log if kind == "completion"
        ]
    else:
        log = run.log
        assert log is not None
        done = log.kind == COMPLETION
        rows = list(zip(log.time[done], log.application[done], strict=True))
    for time, application in rows:
        times[application].append(float(time))
    return times


def end_of(run: Run | StripedRun) -> float:
    """Return the end of the window."""
    return float(run.end if isinstance(run, StripedRun) else run.instance.window.end)


# --- By hand: one target ------------------------------------------------------


@both
def test_two_equal_applications_share_the_time(simulator: Simulator) -> None:
    """Both need 4 s alone and post at 1: at half speed both are done at 9.

    Each has lost (9 - 1) / 2 = 4 s of 16; the target had work from 1 to 9.
    """
    pair = [app(name, (0,), ("work", 1), ("io", 4), REST) for name in "ab"]
    run = simulator(case(*pair, end=16, targets=1), "fair-share")
    assert completions(run) == [[9.0], [9.0]]
    assert list(run.lost) == [4, 4]
    assert list(run.yields) == [0.75, 0.75]
    assert list(run.occupied) == [8]
    assert list(run.work) == [8, 8]
    assert list(run.volume) == [4, 4]


@both
@pytest.mark.parametrize("policy", ["fcfs", "greedy-yield", "greedy-com"])
def test_two_equal_applications_one_after_the_other(
    simulator: Simulator, policy: str
) -> None:
    """Served in order a is done at 5, b at 9: b has lost 4 s, a none.

    Post times, yields (1) and lengths tie: the lowest index is first.
    """
    pair = [app(name, (0,), ("work", 1), ("io", 4), REST) for name in "ab"]
    run = simulator(case(*pair, end=16, targets=1), policy)
    assert completions(run) == [[5.0], [9.0]]
    assert list(run.yields) == [1, 0.75]
    assert list(run.occupied) == [8]


@both
def test_time_is_shared_not_bandwidth(simulator: Simulator) -> None:
    """A fast and a slow one (8 and 1 bytes/s alone) each get half of their own speed.

    Both need 4 s alone, so both are done at 8, whatever the volumes 32 and 4. By
    bandwidth, of which the target has 8, all that the caps add up to is 9: each gets
    8/9 of its cap, and both are done at 4.5.
    """
    pair = (
        app("fast", (0,), ("io", 32), REST, profile=[8.0]),
        app("slow", (0,), ("io", 4), REST, profile=[1.0]),
    )
    by_time = case(*pair, end=16, targets=1, bandwidth=8.0)
    assert completions(simulator(by_time, "fair-share")) == [[8.0], [8.0]]
    by_bandwidth = replace(by_time, platform=Platform(8.0, 8.0))
    assert completions(simulator(by_bandwidth, "fair-share")) == [[4.5], [4.5]]


# --- By hand: several targets -------------------------------------------------


@both
def test_one_of_two_targets_is_congested(simulator: Simulator) -> None:
    """One slow transfer does not slow the other (target allocation, Figure 4).

    a stripes 4 s over targets 0 and 1, b has 4 s on 1; both post at 0. On 0 a is alone
    and done at 4; on 1 both have half the time, done at 8, and a's operation with it.
    a has lost 8 - 4 s: on 0 the 4 s from 4 to 8, on 1 half of 8 s, 4 in the mean. The
    volume of a, 4, went in halves through both targets.
    """
    a = app("a", (0, 1), ("io", 4), REST)
    b = app("b", (1,), ("io", 4), REST)
    run = simulator(case(a, b, end=16, targets=2), "fair-share")
    assert completions(run) == [[8.0], [8.0]]
    assert list(run.lost) == [4, 4]
    assert list(run.occupied) == [4, 8]
    assert list(run.work) == [8, 8]
    assert list(run.volume) == [4, 4]


@both
def test_a_partial_operation_counts_pro_rata(simulator: Simulator) -> None:
    """The case of Figure 4, cut at 6: a has moved all on target 0, 3/4 on target 1.

    Hence 2 + 3/2 bytes, and 6 - 3.5 s are lost. From 2 on: 2/2 + 1/2 x 2 on 0 and 1.
    """
    a = app("a", (0, 1), ("io", 4), REST)
    b = app("b", (1,), ("io", 4), REST)
    whole = case(a, b, end=6, targets=2)
    run = simulator(whole, "fair-share")
    assert list(run.volume) == [3.5, 3]
    assert list(run.lost) == [2.5, 3]
    assert list(run.occupied) == [4, 6]
    run = simulator(replace(whole, window=Window(2, 6)), "fair-share")
    assert list(run.volume) == [2, 2]
    assert list(run.lost) == [2.5, 3]
    assert list(run.occupied) == [2, 4]


@both
def test_bandwidth_of_each_target_is_shared(simulator: Simulator) -> None:
    """Targets of 2 bytes/s; a has flows of cap 2 on both, b one of cap 2 on 1.

    a has 2 x 8 bytes, b 8. On 0 a is done at 4; on 1 each has 1 byte/s, done at 8.
    With a cap of 1 per flow instead (a: 2 in all) no flow waits on target 0; on 1 the
    caps 1 and 2 make alpha 2/3. a's 6 bytes there need 9 s at 2/3, b's 12 bytes 9 s at
    4/3: a has lost 9 - 12/2 = 3 s.
    """
    a = app("a", (0, 1), ("io", 16), REST, profile=[4.0, 4.0])
    b = app("b", (1,), ("io", 8), REST, profile=[2.0])
    full = case(a, b, end=16, targets=2, sharing=BANDWIDTH, bandwidth=2.0)
    run = simulator(full, "fair-share")
    assert completions(run) == [[8.0], [8.0]]
    assert list(run.occupied) == [4, 8]
    a = app("a", (0, 1), ("io", 12), REST, profile=[2.0, 2.0])
    b = app("b", (1,), ("io", 12), REST, profile=[2.0])
    run = simulator(replace(full, applications=(a, b)), "fair-share")
    assert completions(run) == [[pytest.approx(9)], [pytest.approx(9)]]
    assert [float(x) for x in run.lost] == pytest.approx([3, 3])


@both
def test_an_event_touches_only_its_own_targets(simulator: Simulator) -> None:
    """b keeps target 1, although c's post on 0 finds it with the higher yield.

    a (targets 0, 1) and b (target 1) are both one second old at time 0. a has lost
    nothing before, b half a second: b is served on 1, and a on 0 alone. At 1 the ages
    are 2: a has lost 1/2 (one of its two flows waits), b 1/2; at 2 the ages are 3: a
    has lost 1 and b 1/2, so that greedy-yield would now serve a. But c posts at 2 on
    target 0 only, and b goes on to 4. On target 0 a has 6 s of 8 left at 2 and a lower
    yield than c, which never waited: a goes on to 8, and then c. On 1 a is served from
    4 to 12.
    """
    past = {"release": -1.0, "start": 0.0}
    a = app("a", (0, 1), ("io", 8), REST, done_work=1.0, **past)
    b = app("b", (1,), ("io", 4), REST, done_work=0.5, **past)
    c = app("c", (0,), ("work", 2), ("io", 1), REST)
    instance = case(a, b, c, end=15, targets=2)
    run = simulator(instance, "greedy-yield")
    assert completions(run) == [[12.0], [4.0], [9.0]]
    assert list(run.lost) == [4, 0.5, 6]
    # A post on target 1, even one without volume, makes that target decide anew.
    d = app("d", (1,), ("work", 2), ("io", 0), REST)
    again = replace(instance, applications=(a, b, c, d))
    assert completions(simulator(again, "greedy-yield"))[:2] == [[10.0], [12.0]]


@both
def test_the_yield_is_that_of_the_application(simulator: Simulator) -> None:
    """Waiting on target 1, a goes before c on target 0.

    b (target 1) and a (targets 0, 1) post 4 s at 0, where all yields are 0: on 1 b is
    first by its index, up to 4. On 0 a is alone. At 1 c, never delayed, posts 2 s on
    0: a, half of which waits, has lost 1/2 and stays, up to 4. Then c has 0 up to 6,
    and a has 1 up to 8.

    Without its flow on 1 a has lost nothing at 1 either: a tie, c has the lower index
    and is served up to 3, then a up to 6.
    """
    b = app("b", (1,), ("io", 4), REST)
    c = app("c", (0,), ("work", 1), ("io", 2), REST)
    a = app("a", (0, 1), ("io", 4), REST)
    run = simulator(case(b, c, a, end=16, targets=2), "greedy-yield")
    assert completions(run) == [[4.0], [6.0], [8.0]]
    alone = replace(a, targets=(0,), profile=np.ones(1))
    run = simulator(case(b, c, alone, end=16, targets=2), "greedy-yield")
    assert completions(run) == [[4.0], [3.0], [6.0]]


@both
def test_greedy_com_ranks_flows(simulator: Simulator) -> None:
    """A target ranks its flows by the time that each needs there.

    a stripes 6 s over 0 and 1, b has 4 s on 1, both from 0: on 1 b is first, on 0 a is
    alone. At 3 c posts 4 s on 0, where a has 3 s left (but 6 s on 1): a stays, up to 6,
    then c up to 10. On 1 a is served from 4 to 10.
    """
    a = app("a", (0, 1), ("io", 6), REST)
    b = app("b", (1,), ("io", 4), REST)
    c = app("c", (0,), ("work", 3), ("io", 4), REST)
    run = simulator(case(a, b, c, end=16, targets=2), "greedy-com")
    assert completions(run) == [[10.0], [4.0], [10.0]]


@both
def test_an_empty_operation_completes_at_once(simulator: Simulator) -> None:
    """It needs no target, and counts as an operation."""
    a = app("a", (0, 1), ("work", 1), ("io", 0), ("work", 1), ("io", 0), REST)
    b = app("b", (0, 1), ("io", 8), REST)
    run = simulator(case(a, b, end=4, targets=2), "fcfs")
    assert completions(run) == [[1.0, 2.0], []]
    assert list(run.operations) == [2, 0]
    assert list(run.lost) == [0, 0]
    assert list(run.occupied) == [4, 4]


# --- The first end ------------------------------------------------------------


@both
def test_the_window_ends_with_the_first_application(simulator: Simulator) -> None:
    """In the case of Figure 4, a ends at 8, while b is still working.

    a's only operation lasts to 8, and no work follows. b, from 8 of 12 s on, has
    completed its operation at 8 too, which counts. c has worked all the time.
    """
    a = app("a", (0, 1), ("io", 4))
    b = app("b", (1,), ("io", 4), ("work", 4))
    c = app("c", (1,), ("work", 100))
    run = simulator(
        case(a, b, c, end=50, targets=2), "fair-share", until_first_end=True
    )
    assert end_of(run) == 8.0
    assert list(run.operations) == [1, 1, 0]
    assert list(run.work) == [0, 0, 8]
    assert list(run.volume) == [4, 4, 0]
    assert list(run.yields) == [0.5, 0.5, 1]
    assert list(run.occupied) == [4, 8]


@both
def test_the_window_may_end_before_any_application(simulator: Simulator) -> None:
    """The end of the window then stays the same."""
    a = app("a", (0,), ("io", 4), ("work", 9))
    run = simulator(case(a, end=6, targets=1), "fcfs", until_first_end=True)
    assert end_of(run) == 6.0
    assert list(run.work) == [2]


# --- General properties -------------------------------------------------------

amounts = st.integers(0, 24).map(lambda n: n / 8)
POWERS = st.sampled_from([0.5, 1.0, 2.0, 4.0])


@st.composite
def applications(draw: st.DrawFn, name: str, targets: int) -> Application:
    """Draw an application on 1, 2 or 4 of `targets`, all its numbers dyadic."""
    width = draw(st.sampled_from([w for w in (1, 2, 4) if w <= targets]))
    cap = draw(POWERS) * width
    phases = draw(st.lists(st.tuples(amounts, amounts), max_size=5))
    age = draw(st.integers(0, 4))
    return app(
        name,
        tuple(draw(st.permutations(range(targets)))[:width]),
        *(p for w, v in phases for p in (("work", w), ("io", v * cap))),
        REST,
        profile=[cap] * width,
        release=float(-age),
        start=0.0,
        done_work=age * draw(st.integers(0, 4)) / 4,
        period=draw(st.sampled_from([0.0, 0.5, 30.0])),
    )


@st.composite
def instances(
    draw: st.DrawFn, *, targets: int | None = None, sharing: Sharing | None = None
) -> Instance:
    """Draw 1 to 5 applications on 1 to 4 targets; none ends in the window."""
    count = targets or draw(st.integers(1, 4))
    drawn = tuple(
        draw(applications(f"a{i}", count)) for i in range(draw(st.integers(1, 5)))
    )
    begin = draw(st.integers(-2, 8)) / 2
    end = max(begin, 0.0) + draw(st.integers(1, 100)) / 4
    way = sharing or draw(st.sampled_from(list(Sharing)))
    platform = Platform(4.0 * count, 1.0, count, way)
    return Instance(platform, Window(begin, end), drawn)


def columns(run: Run, *, places: list[int] | None = None) -> dict[str, list[Any]]:
    """Return the columns by application, or those of some applications."""
    names = ("lost", "ended", "work", "volume", "operations", "yields")
    whole = {name: getattr(run, name).tolist() for name in names}
    if places is None:
        return whole
    return {name: [column[i] for i in places] for name, column in whole.items()}


@pytest.mark.parametrize("policy", SETTINGS)
@EXAMPLES
@given(instance=instances())
def test_age_is_work_transfer_or_lost(policy: str, instance: Instance) -> None:
    """Age = work + volume / b + lost for every application, however striped."""
    whole = replace(instance, window=Window(-100.0, instance.window.end))
    run = engine(whole, policy)
    for i, (application, cap) in enumerate(whole.with_caps()):
        age = whole.window.end - application.release
        progress = application.done_work + run.work[i] + run.volume[i] / cap
        assert progress + run.lost[i] == pytest.approx(age, rel=1e-12)


@pytest.mark.parametrize("policy", ["fair-share", "fcfs", "greedy-yield", "greedy-com"])
@EXAMPLES
@given(instance=instances(sharing=TIME))
def test_a_target_shared_by_time_never_idles(policy: str, instance: Instance) -> None:
    """A target is occupied for the sum of the times that its flows need alone.

    The fractions on a target that has work add up to 1, and all flows end: the time
    is the sum of volume / b over the applications on it.
    """
    run = engine(replace(instance, window=Window(-100.0, 900.0)), policy)
    needed = [0.0] * instance.platform.targets
    for application, cap in instance.with_caps():
        for target in application.targets:
            needed[target] += float(application.volume.sum()) / cap
    assert run.occupied.tolist() == pytest.approx(needed, rel=1e-12, abs=1e-12)
    assert run.volume.tolist() == pytest.approx(
        [float(a.volume.sum()) for a in instance.applications], rel=1e-12
    )


@pytest.mark.parametrize("policy", SETTINGS)
@EXAMPLES
@given(instance=instances())
def test_grants_keep_to_every_target(policy: str, instance: Instance) -> None:
    """Rates never exceed a cap or a target, and their integral is the volume."""
    whole = replace(instance, window=Window(-100.0, 900.0))
    run = engine(whole, policy)
    moved = _moved(run)
    for i, application in enumerate(whole.applications):
        share = float(application.volume.sum()) / len(application.targets)
        for target in application.targets:
            assert moved[i, target] == pytest.approx(share, rel=1e-9, abs=1e-9)


def _moved(run: Run) -> dict[tuple[int, int], float]:
    """Integrate the grants; return the volume of every application on every target."""
    grants = run.grants
    assert grants is not None
    rows = list(
        zip(grants.time, grants.target, grants.application, grants.rate, strict=True)
    )
    rates: dict[tuple[int, int], float] = {}
    moved = {
        (i, r): 0.0 for i, a in enumerate(run.instance.applications) for r in a.targets
    }
    now = rows[0][0] if rows else 0.0
    for time, target, application, rate in rows:
        if time > now:
            _check_shares(run.instance, rates)
            for place, held in rates.items():
                moved[place] += held * float(time - now)
        rates[int(application), int(target)] = float(rate)
        now = time
    assert not any(rates.values())
    return moved


def _check_shares(instance: Instance, rates: dict[tuple[int, int], float]) -> None:
    """Assert that no flow exceeds its cap and no target its capacity."""
    by_time = instance.platform.sharing is TIME
    capacity = 1.0 if by_time else instance.platform.target_bandwidth
    used = [0.0] * instance.platform.targets
    for (application, target), rate in rates.items():
        cap = instance.caps[application] / len(
            instance.applications[application].targets
        )
        assert 0.0 <= rate <= cap * (1 + 1e-12)
        used[target] += rate / cap if by_time else rate
    assert max(used) <= capacity * (1 + 1e-12)


# --- Many targets as one, and one as many -------------------------------------


@pytest.mark.parametrize("policy", SETTINGS)
@EXAMPLES
@given(instance=instances(targets=1), copies=st.integers(2, 4))
def test_instances_side_by_side(policy: str, instance: Instance, copies: int) -> None:
    """Copies of an instance on separate targets do not affect one another."""
    platform = replace(
        instance.platform,
        bandwidth=copies * instance.platform.bandwidth,
        targets=copies,
    )
    many = tuple(
        replace(a, name=f"{a.name}-{copy}", targets=(copy,))
        for a in instance.applications
        for copy in range(copies)
    )
    together = engine(replace(instance, platform=platform, applications=many), policy)
    alone = engine(instance, policy)
    for copy in range(copies):
        places = list(range(copy, len(many), copies))
        assert columns(together, places=places) == columns(alone)
    assert together.occupied.tolist() == alone.occupied.tolist() * copies


@pytest.mark.parametrize("policy", ALL_POLICIES)
@EXAMPLES
@given(instance=instances(targets=1), unused=st.integers(1, 5), data=st.data())
def test_one_target_of_many(
    policy: str, instance: Instance, unused: int, data: st.DataObject
) -> None:
    """One target of many is equal, to the last bit, to a storage of that size."""
    count = unused + 1
    chosen = data.draw(st.integers(0, unused))
    platform = replace(
        instance.platform, bandwidth=count * instance.platform.bandwidth, targets=count
    )
    moved = tuple(replace(a, targets=(chosen,)) for a in instance.applications)
    run = engine(replace(instance, platform=platform, applications=moved), policy)
    alone = engine(instance, policy)
    assert columns(run) == columns(alone)
    assert run.events == alone.events
    assert run.decisions == alone.decisions
    occupied = [0.0] * count
    occupied[chosen] = alone.occupied[0]
    assert run.occupied.tolist() == occupied


@pytest.mark.parametrize("policy", SETTINGS)
@EXAMPLES
@given(instance=instances(targets=1, sharing=TIME))
def test_time_sharing_is_bandwidth_sharing_in_seconds(
    policy: str, instance: Instance
) -> None:
    """A target shared by time is bandwidth sharing with b_i = B = 1, in seconds."""
    seconds = tuple(
        replace(a, volume=a.volume / cap, profile=np.ones(1))
        for a, cap in instance.with_caps()
    )
    in_seconds = Instance(Platform(1.0, 1.0), instance.window, seconds)
    by_time, in_seconds_run = engine(instance, policy), engine(in_seconds, policy)
    volume = (by_time.volume / instance.caps).tolist()
    assert columns(by_time) | {"volume": volume} == columns(in_seconds_run)
    assert by_time.occupied.tolist() == in_seconds_run.occupied.tolist()


@pytest.mark.parametrize("policy", ["fcfs", "greedy-yield", "greedy-com", "set-10"])
@EXAMPLES
@given(instance=instances(targets=4), data=st.data())
def test_the_numbers_of_targets_have_no_effect(
    policy: str, instance: Instance, data: st.DataObject
) -> None:
    """Permuting the numbers permutes the results of the targets only."""
    new = data.draw(st.permutations(range(4)))
    moved = tuple(
        replace(a, targets=tuple(new[r] for r in a.targets))
        for a in instance.applications
    )
    original, permuted_run = (
        engine(instance, policy),
        engine(replace(instance, applications=moved), policy),
    )
    assert columns(original) == columns(permuted_run)
    assert original.occupied.tolist() == [
        permuted_run.occupied[new[r]] for r in range(4)
    ]


@pytest.mark.parametrize("policy", ["fcfs", "greedy-yield", "greedy-com", "fair-share"])
@EXAMPLES
@given(instance=instances(targets=1, sharing=BANDWIDTH))
def test_the_two_oracles_agree_on_one_target(policy: str, instance: Instance) -> None:
    """Both oracles, written separately, decide the same at the same times."""
    # The older oracle has no profiles: caps come from the nodes.
    plain = tuple(
        replace(a, nodes=int(2 * cap), profile=np.empty(0))
        for a, cap in instance.with_caps()
    )
    instance = Instance(Platform(4.0, 0.5), instance.window, plain)
    striped_run = simulate_exactly(instance, make_strategy(policy))
    one_target_run = simulate_one_target(instance, make_strategy(policy))
    assert [
        (t, rates) for t, _, rates in striped_run.decisions
    ] == one_target_run.decisions
    assert striped_run.log == one_target_run.log
    assert (striped_run.lost, striped_run.yields) == (
        one_target_run.lost,
        one_target_run.yields,
    )
    assert striped_run.work == one_target_run.work_in_window
    assert striped_run.volume == one_target_run.volume_in_window
    assert all(isinstance(lost, Fraction) for lost in striped_run.lost)
