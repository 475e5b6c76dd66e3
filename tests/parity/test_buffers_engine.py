# SPDX-License-Identifier: MIT
"""Without staging, the simulation with buffers gives the numbers of the engine."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from penstock.model import Application, Instance, Platform, Sharing, Window
from penstock.sim import simulate
from penstock.sim.buffers.simulation import simulate_buffers
from penstock.workloads.microbenchmark import Microbenchmark
from support.buffered import storage_of, writers_of

POLICIES = ("fair-share", "fcfs", "greedy-yield", "greedy-com", "set-10")
amounts = st.integers(1, 40).map(lambda n: n / 7)


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    """Draw applications on all targets, shared by bandwidth or by time."""
    targets = draw(st.integers(1, 3))
    by_time = draw(st.booleans())
    profile = np.arange(1, targets + 1) ** 0.5 * 3.0 if by_time else np.empty(0)
    applications = []
    for number in range(draw(st.integers(1, 4))):
        phases = []
        for _ in range(draw(st.integers(1, 4))):
            phases += [("work", draw(amounts)), ("io", draw(amounts))]
        # The age counts from the start in a simulation with buffers.
        start = draw(amounts)
        applications.append(
            Application.from_phases(
                f"a{number}",
                draw(st.integers(1, 3)),
                phases,
                start=start,
                release=start,
                profile=profile,
                targets=tuple(range(targets)),
            )
        )
    sharing = Sharing.TIME if by_time else Sharing.BANDWIDTH
    platform = Platform(3.0, 1.25, targets, sharing)
    return Instance(platform, Window(0.0, 1e4), tuple(applications))


@pytest.mark.parametrize("policy", POLICIES)
@given(instance=instances())
@settings(deadline=None, derandomize=True, max_examples=60, database=None)
def test_same_ends_and_same_losses(policy: str, instance: Instance) -> None:
    with_buffers = simulate_buffers(
        storage_of(instance), writers_of(instance), "none", sharing=policy
    )
    engine_run = simulate(instance, policy, steady=False)
    ends = [phases[-1][1] for phases in with_buffers.phases]
    assert ends == pytest.approx(engine_run.ended.tolist(), rel=1e-9)
    assert with_buffers.lost == pytest.approx(
        engine_run.lost.tolist(), rel=1e-9, abs=1e-9
    )
    assert with_buffers.through == pytest.approx(engine_run.volume.tolist(), rel=1e-9)


@pytest.mark.parametrize("offset", [0.0, 12.5, 40.0])
def test_the_microbenchmark(offset: float) -> None:
    workload = Microbenchmark(delay=0.25, offset=offset)
    instance = workload.instance(1, 0)
    with_buffers = simulate_buffers(storage_of(instance), writers_of(instance), "none")
    wide = Instance(instance.platform, Window(0.0, 1e4), instance.applications)
    engine_run = simulate(wide, "fair-share", steady=False)
    assert [p[-1][1] for p in with_buffers.phases] == pytest.approx(
        engine_run.ended.tolist()
    )


def test_posts_that_differ_by_rounding_are_one_instant() -> None:
    """Both post at 43/7: 2 + 29/7 and 4 + 15/7, which differ in doubles."""
    assert 2 + 29 / 7 > 4 + 15 / 7
    first = [("work", 2 + 29 / 7), ("io", 3.0)]
    second = [("work", 4 + 15 / 7), ("io", 3.0)]
    instance = Instance(
        Platform(1.0, 1.0),
        Window(0.0, 1e4),
        (
            Application.from_phases("a", 1, first),
            Application.from_phases("b", 1, second),
        ),
    )
    run = simulate_buffers(
        storage_of(instance), writers_of(instance), "none", sharing="fcfs"
    )
    # Of equal posts, the first application goes first.
    assert [phases[-1][1] for phases in run.phases] == pytest.approx(
        [43 / 7 + 3, 43 / 7 + 6]
    )
