# SPDX-License-Identifier: MIT
"""The bound: closed forms, agreement of the methods, and no policy above it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from penstock.analysis import bound as bound_module
from penstock.analysis.bound import StorageDemand, bisect_target, min_yield_bound
from penstock.errors import InputError
from penstock.model import Application, Instance, Platform, Sharing, Window
from penstock.sim import simulate
from penstock.workloads import get_workload

TIGHT = 1e-11


def instance_of(
    *applications: tuple[int, list[tuple[str, float]], dict[str, Any]],
    end: float = 10.0,
    bandwidth: float = 1.0,
) -> Instance:
    """Return an instance of (nodes, phases, history), b = 1, window [0, end]."""
    made = tuple(
        Application.from_phases(f"app{number}", nodes, phases, **history)
        for number, (nodes, phases, history) in enumerate(applications)
    )
    return Instance(Platform(bandwidth, 1.0), Window(0.0, end), made)


def plain(*phases: tuple[str, float], nodes: int = 1) -> Any:
    return nodes, list(phases), {}


def value(instance: Instance) -> float:
    return min_yield_bound(instance, tolerance=TIGHT).min_yield


amounts = st.integers(0, 24).map(lambda quarters: quarters / 4)


@st.composite
def instances(
    draw: st.DrawFn, *, equal_caps: bool, most: int = 5, operations: int = 6
) -> Instance:
    """Small instances with history; some applications finish inside the window."""
    count = draw(st.integers(1, most))
    bandwidth = 1.0 if equal_caps else float(draw(st.integers(2, 5)))
    applications = []
    for _ in range(count):
        pairs = draw(st.lists(st.tuples(amounts, amounts), max_size=operations))
        nodes = 1 if equal_caps else draw(st.integers(1, 5))
        phases = [
            phase
            for work, io in pairs
            for phase in (("work", work), ("io", io * min(nodes, bandwidth)))
        ]
        if draw(st.booleans()):
            phases.append(("work", 40.0))
        age, done = draw(amounts), draw(st.floats(0.0, 1.0))
        history = {"release": -age, "start": 0.0, "done_work": done * age}
        applications.append((nodes, phases, history))
    end = draw(st.integers(1, 20))
    return instance_of(*applications, end=float(end), bandwidth=bandwidth)


class TestClosedForms:
    def test_alone(self) -> None:
        alone = instance_of(plain(("io", 2), ("work", 3), ("io", 20)))
        assert min_yield_bound(alone) == bound_module.Bound(1.0, "edf")

    @pytest.mark.parametrize("count", [2, 3, 7])
    def test_all_post_at_once_then_work(self, count: int) -> None:
        # The last one to complete waits for the others: count - 1 seconds of 10.
        together = instance_of(*[plain(("io", 1), ("work", 20))] * count)
        assert value(together) == pytest.approx(1 - (count - 1) / 10, abs=1e-9)

    def test_operations_cut_by_the_end(self) -> None:
        # Progress 8 + x each, and both x share the 2 s that are left.
        late = instance_of(*[plain(("work", 8), ("io", 4))] * 2)
        assert value(late) == pytest.approx(0.9, abs=1e-9)

    def test_work_after_the_last_operation_sets_the_deadline(self) -> None:
        # 1 s of I/O each, posted at 8: complete at 9 and at 10, and 1 s of 12 is lost.
        phases = ("work", 8), ("io", 1), ("work", 9)
        late = instance_of(*[plain(*phases)] * 2, end=12.0)
        assert value(late) == pytest.approx(11 / 12, abs=1e-9)

    @pytest.mark.parametrize("count", [2, 5])
    def test_saturated(self, count: int) -> None:
        endless = instance_of(*[plain(("io", 100))] * count)
        assert value(endless) == pytest.approx(1 / count, abs=1e-9)

    def test_saturated_with_unequal_caps(self) -> None:
        nodes = (1, 2, 4)
        endless = instance_of(
            *[plain(("io", 100), nodes=n) for n in nodes], bandwidth=4.0
        )
        bound = min_yield_bound(endless)
        assert bound.method == "flow"
        assert bound.min_yield == pytest.approx(4 / 7, abs=1e-8)

    def test_history_alone(self) -> None:
        # 5 s of progress in 10 s before the start, then 10 s at full speed.
        history = {"release": -10.0, "start": 0.0, "done_work": 5.0}
        late = instance_of((1, [("work", 3), ("io", 20)], history))
        assert value(late) == pytest.approx(0.75, abs=1e-12)

    def test_history_and_contention(self) -> None:
        # 2 s lost before the start, 1 s more for the one that waits: 3 s of 20.
        history = {"release": -10.0, "start": 0.0, "done_work": 8.0}
        both = instance_of(*[(1, [("io", 1.0), ("work", 20.0)], history)] * 2)
        assert value(both) == pytest.approx(0.85, abs=1e-9)

    @pytest.mark.parametrize("count", [2, 6])
    def test_history_against_a_fresh_application(self, count: int) -> None:
        # Table 2 of bandwidth sharing, line 1: one new application, the others
        # were never delayed.
        # for L seconds; y + (m - 1)(y (L + 1) - L) = 1.
        length = 4.0
        old = (
            1,
            [("io", 2.0)],
            {"release": -length, "start": 0.0, "done_work": length},
        )
        mixed = instance_of(plain(("io", 2)), *[old] * (count - 1), end=1.0)
        others = count - 1
        expected = (1 + others * length) / (1 + others * (length + 1))
        assert value(mixed) == pytest.approx(expected, abs=1e-9)

    def test_caps_bind(self) -> None:
        # Narrow (cap 1) is alone for 1 s and cannot use both units; then 3 units of
        # volume wait for 2 per second: half a second is lost. EDF without caps sees
        # nothing lost at all.
        narrow = plain(("io", 2), ("work", 20))
        wide = plain(("work", 1), ("io", 2), ("work", 20), nodes=2)
        instance = instance_of(narrow, wide, bandwidth=2.0)
        assert value(instance) == pytest.approx(0.95, abs=1e-9)
        demand = StorageDemand.of(instance)
        assert demand.lateness(demand.best_yield()) <= 0

    def test_finished_inside_the_window(self) -> None:
        # Both end with the operation: at best at 2, with yield 1/2.
        short = instance_of(*[plain(("io", 1))] * 2)
        assert value(short) == pytest.approx(0.5, abs=1e-9)

    def test_nothing_needed_below_the_limit(self) -> None:
        # Progress 99 s each, and one second of I/O left for the two of them.
        history = {"release": -99.0, "start": 0.0, "done_work": 99.0}
        both = instance_of(*[(1, [("io", 2.0)], history)] * 2, end=1.0)
        assert value(both) == pytest.approx(0.995, abs=1e-9)

    def test_zero_volumes_and_empty_applications_ask_nothing(self) -> None:
        idle = instance_of(plain(("io", 0), ("io", 0)), plain(), plain(("work", 99)))
        assert value(idle) == 1.0


def needs(instance: Instance, target: float) -> list[tuple[float, float, float]]:
    """Return release, deadline, volume / B of every operation, by the definition."""
    operations = []
    end = instance.window.end
    for application, cap in instance.with_caps():
        history = application.done_work + application.done_volume / cap
        total = history + application.work.sum() + application.volume.sum() / cap
        judged = min(end, application.release + total / target)
        required = target * (judged - application.release)
        alone = 0.0
        for work, volume in zip(application.work, application.volume, strict=False):
            alone += work
            release = application.start + alone
            part = min(volume / cap, required - history - alone)
            alone += volume / cap
            deadline = judged - max(required - history - alone, 0.0)
            if release < end:
                needed = max(part, 0.0) * cap / instance.platform.bandwidth
                operations.append((release, deadline, needed))
    return operations


@settings(max_examples=150, deadline=None)
@given(instances(equal_caps=False), st.floats(0.05, 1.0))
def test_demand_is_its_definition(instance: Instance, fraction: float) -> None:
    demand = StorageDemand.of(instance)
    target = fraction * demand.best_yield()
    assume(target > 1e-3)
    order = np.argsort(demand.application, kind="stable")
    computed = np.transpose((demand.release, *demand.at(target)))[order]
    expected = np.array(needs(instance, target)).reshape(-1, 3)
    assert np.allclose(computed, expected, rtol=0, atol=1e-9)


@settings(max_examples=150, deadline=None)
@given(instances(equal_caps=True))
def test_flow_agrees_with_edf(instance: Instance) -> None:
    demand = StorageDemand.of(instance)
    top = demand.best_yield()
    edf = bisect_target(lambda y: demand.lateness(y) <= 0, top, TIGHT)
    flow = bisect_target(demand.flow_feasible, top, TIGHT)
    assert flow == pytest.approx(edf, abs=1e-9)


def test_flow_agrees_with_edf_on_the_synthetic_workload() -> None:
    workload = get_workload("synthetic", ["W=1.1", "m=9", "h=20000"])
    demand = StorageDemand.of(workload.instance(1, 0))
    top = demand.best_yield()
    edf = bisect_target(lambda y: demand.lateness(y) <= 0, top, TIGHT)
    assert edf < top
    assert bisect_target(demand.flow_feasible, top, TIGHT) == pytest.approx(edf)


def shortfall(demand: StorageDemand, target: float) -> float:
    """Volume that the best fluid schedule leaves, by a linear programme."""
    deadline, needed = demand.at(target)
    kept = np.flatnonzero(needed > 0)
    dates = np.unique(np.concatenate((demand.release[kept], deadline[kept])))
    length, count = np.diff(dates), len(dates) - 1
    pieces = [
        (row, k)
        for row, j in enumerate(kept)
        for k in range(count)
        if demand.release[j] <= dates[k] and dates[k + 1] <= deadline[j]
    ]
    if not pieces:
        return float(needed.sum())
    total = np.zeros((count, len(pieces)))
    own = np.zeros((len(demand.share), count, len(pieces)))
    served = np.zeros((len(kept), len(pieces)))
    for column, (row, k) in enumerate(pieces):
        total[k, column] = 1
        own[demand.application[kept[row]], k, column] = 1
        served[row, column] = 1
    result = linprog(
        -np.ones(len(pieces)),
        A_ub=np.vstack((total, own.reshape(-1, len(pieces)), served)),
        b_ub=np.concatenate(
            (length, np.outer(demand.share, length).ravel(), needed[kept])
        ),
        method="highs",
    )
    return float(needed.sum() + result.fun)


@settings(max_examples=80, deadline=None)
@given(instances(equal_caps=False, most=4, operations=3))
def test_flow_is_the_linear_programme(instance: Instance) -> None:
    demand = StorageDemand.of(instance)
    top = demand.best_yield()
    assume(top > 1e-3)
    limit = bisect_target(demand.flow_feasible, top, TIGHT)
    # The programme's own tolerance (1e-7 of a volume) blurs it near the limit.
    if limit < top - 2e-5:
        assert shortfall(demand, limit + 2e-5) > 1e-7
    if limit > 1e-3:
        assert shortfall(demand, limit - 1e-5) < 1e-6


@settings(max_examples=80, deadline=None)
@given(instances(equal_caps=False))
def test_ignoring_the_caps_is_a_relaxation(instance: Instance) -> None:
    demand = StorageDemand.of(instance)
    relaxed = bisect_target(
        lambda y: demand.lateness(y) <= 0, demand.best_yield(), TIGHT
    )
    assert relaxed >= value(instance) - TIGHT


@pytest.mark.parametrize("policy", ["fair-share", "fcfs", "greedy-yield"])
@pytest.mark.parametrize("equal_caps", [True, False])
def test_no_policy_is_above(policy: str, equal_caps: bool) -> None:
    @settings(max_examples=60, deadline=None)
    @given(instances(equal_caps=equal_caps))
    def check(instance: Instance) -> None:
        # Without any phase and any age there is no yield to speak of.
        assume(all(len(a.volume) or a.start > a.release for a in instance.applications))
        assume(all(a.work.sum() + a.volume.sum() > 0 for a in instance.applications))
        yields = simulate(instance, policy, steady=False).yields
        assert yields.min() <= min_yield_bound(instance).min_yield + 1e-12

    check()


@settings(max_examples=60, deadline=None)
@given(instances(equal_caps=False), st.floats(1.0, 3.0))
def test_more_bandwidth_never_lowers_the_bound(
    instance: Instance, factor: float
) -> None:
    # The node bandwidth is such that no cap depends on B.
    slim = replace(
        instance,
        applications=tuple(replace(a, nodes=1) for a in instance.applications),
    )
    richer = replace(slim, platform=Platform(slim.platform.bandwidth * factor, 1.0))
    assert value(richer) >= value(slim) - 1e-9


@settings(max_examples=60, deadline=None)
@given(instances(equal_caps=False), st.floats(1e-3, 1e6), st.floats(1e-3, 1e9))
def test_units_do_not_matter(instance: Instance, time: float, volume: float) -> None:
    platform = instance.platform
    scaled = Instance(
        Platform(
            platform.bandwidth * volume / time, platform.node_bandwidth * volume / time
        ),
        Window(instance.window.begin * time, instance.window.end * time),
        tuple(
            replace(
                a,
                work=a.work * time,
                volume=a.volume * volume,
                release=a.release * time,
                start=a.start * time,
                done_work=a.done_work * time,
            )
            for a in instance.applications
        ),
    )
    assert value(scaled) == pytest.approx(value(instance), abs=1e-8)


def test_relaxed_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = plain(("work", 1), ("io", 2), ("work", 20), nodes=2)
    instance = instance_of(plain(("io", 2), ("work", 20)), wide, bandwidth=2.0)
    monkeypatch.setattr(bound_module, "FLOW_LIMIT", 3)
    assert min_yield_bound(instance) == bound_module.Bound(1.0, "edf-relaxed")


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5])
def test_a_coarse_tolerance_errs_upwards(tolerance: float) -> None:
    instance = instance_of(*[plain(("io", 1), ("work", 20))] * 4)
    bound = min_yield_bound(instance, tolerance=tolerance).min_yield
    assert 0.7 <= bound <= 0.7 + tolerance + 1e-12


@pytest.mark.parametrize("tolerance", [0.0, -1.0, float("nan")])
def test_tolerance_must_be_positive(tolerance: float) -> None:
    with pytest.raises(InputError, match="tolerance"):
        min_yield_bound(instance_of(plain(("io", 1))), tolerance=tolerance)


def test_synthetic_workload() -> None:
    # Mean over ten instances of h = 400,000 s at W = 0.8, known as .984.
    workload = get_workload("synthetic", ["W=0.8", "h=400000"])
    bounds = [min_yield_bound(workload.instance(1, k)).min_yield for k in range(10)]
    assert np.mean(bounds) == pytest.approx(0.984, abs=0.004)


def striped(sharing: Sharing, *layout: tuple[int, ...]) -> Instance:
    """Applications on 3 targets that repeat 1 s of work and 1 s of I/O alone."""
    phases = [("work", 1.0), ("io", 6.0)] * 6
    applications = tuple(
        Application.from_phases(
            f"app{number}", 1, phases, targets=targets, profile=[6.0, 6.0, 6.0]
        )
        for number, targets in enumerate(layout)
    )
    platform = Platform(18.0, 18.0, targets=3, sharing=sharing)
    return Instance(platform, Window(0.0, 10.0), applications)


@pytest.mark.parametrize("sharing", list(Sharing))
@pytest.mark.parametrize("policy", ["fair-share", "greedy-yield", "fcfs"])
def test_no_policy_is_above_the_bound_on_many_targets(
    sharing: Sharing, policy: str
) -> None:
    crowded = striped(sharing, (0, 1), (1, 2), (2, 0), (0, 1, 2), (1,), (2,))
    best = float(simulate(crowded, policy).yields.min())
    assert best < 0.95
    assert best <= value(crowded) + 1e-9


def test_targets_shared_by_time_are_seconds() -> None:
    alone = striped(Sharing.TIME, (0,), (1,), (2,))
    assert value(alone) == 1.0
    # Four applications that need all three targets for half of the time.
    crowded = striped(Sharing.TIME, *[(0, 1, 2)] * 4)
    assert value(crowded) == pytest.approx(value(_one_pipe()), abs=1e-9)


def _one_pipe() -> Instance:
    phases = [("work", 1.0), ("io", 1.0)] * 6
    return instance_of(*[plain(*phases)] * 4)
