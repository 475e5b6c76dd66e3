# SPDX-License-Identifier: MIT
"""The controller, fed with the events of a simulation, gives the same grants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from math import isinf

import numpy as np
import pytest

from parity.test_compiled_interpreted import INSTANCES, instance_of
from penstock.kernels import interpreted
from penstock.live.control.rates.controller import Controller
from penstock.live.control.rates.jobs import JobHistory
from penstock.model import Instance
from penstock.policies import get_policy
from penstock.policies.policy import Policy
from penstock.sim import Run, simulate
from penstock.sim.state import COMPLETION, POST, WAKE_UP
from support import ALL_POLICIES

Event = tuple[float, int, int]
Grant = tuple[float, int, float]


def controller_for(
    instance: Instance, policy: Policy | str, *, compiled: bool
) -> Controller:
    """Return a controller in the state of the engine before the first event."""
    window = instance.window
    controller = Controller(
        policy,
        instance.platform.bandwidth,
        instance.platform.node_bandwidth,
        window=(window.begin, window.end),
        dedicated_events=float(instance.dedicated_events()),
        compiled=compiled,
    )
    for number, (application, cap) in enumerate(instance.with_caps()):
        controller.register(
            str(number),
            application.start,
            nodes=application.nodes,
            period=application.period,
            user=application.user,
            group=application.group,
            history=JobHistory(application.release, application.lost_at_start(cap)),
        )
    return controller


def events_of(run: Run) -> list[Event]:
    """Return the event log, in the order in which the engine applied it."""
    assert run.log is not None
    columns = (run.log.time, run.log.kind, run.log.application)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def grants_of(run: Run) -> list[Grant]:
    """Return all grants of the engine."""
    assert run.grants is not None
    columns = (run.grants.time, run.grants.application, run.grants.rate)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def replayed(run: Run, controller: Controller) -> Iterator[Grant]:
    """Yield the grants of the controller for the same events.

    An operation granted so much that it is complete at once, for the clock cannot
    show how short it takes, completes after a decision at the same time.
    """
    volumes = [iter(a.volume.tolist()) for a in run.instance.applications]
    for now, instant in groupby(events_of(run), key=lambda event: event[0]):
        for _, kind, i in instant:
            if kind == POST:
                controller.post(str(i), now, next(volumes[i]))
            elif kind == COMPLETION:
                if controller.job(str(i)).volume_bytes > 0.0:
                    if isinf(controller.job(str(i)).completion_s):
                        yield from decided(controller, now)
                    yield now, i, 0.0
                controller.complete(str(i), now)
            else:
                assert kind == WAKE_UP
                controller.wake(now)
        yield from decided(controller, now)


def decided(controller: Controller, now: float) -> Iterator[Grant]:
    """Yield the changed grants."""
    decision = controller.decide(now)
    assert not decision.fault
    yield from ((now, int(job), rate) for job, rate in decision.rates.items())


def assert_same_grants(
    instance: Instance, policy: Policy | str, *, compiled: bool
) -> None:
    """Assert that every single grant is the same, bit by bit, and in order."""
    run = simulate(instance, policy, record=True)
    controller = controller_for(instance, policy, compiled=compiled)
    expected, granted = grants_of(run), list(replayed(run, controller))
    assert len(expected) > 100
    for live_grant, simulated_grant in zip(granted, expected, strict=False):
        assert live_grant == simulated_grant
    assert len(granted) == len(expected)


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("policy", ALL_POLICIES)
def test_same_grants(policy: str, name: str) -> None:
    """Every policy on every instance, compiled."""
    assert_same_grants(instance_of(name), policy, compiled=True)


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize(
    "policy",
    [
        *("set-10:update=post", "set-10:update=strict", "share-priority:update=post"),
        "look-ahead-greedy-yield:horizon=window",
    ],
)
def test_same_grants_with_other_rules(policy: str, name: str) -> None:
    """Rules that need to know which operation is the first one, or the window."""
    assert_same_grants(instance_of(name), policy, compiled=True)


@pytest.mark.parametrize("policy", ALL_POLICIES)
def test_same_grants_interpreted(policy: str) -> None:
    """Every policy on every instance, interpreted."""
    assert_same_grants(instance_of("histories"), policy, compiled=False)


def test_same_grants_of_a_policy_in_plain_python() -> None:
    """A policy in plain Python."""
    policy = get_policy("greedy-yield")
    plain = replace(policy, function=interpreted(policy.allocate))
    assert_same_grants(instance_of("zero phases"), plain, compiled=True)


def test_the_columns_agree_at_the_end() -> None:
    """Lost time and iterations agree as well."""
    instance = instance_of("histories")
    run = simulate(instance, "look-ahead-greedy-yield", record=True)
    controller = controller_for(instance, run.policy, compiled=True)
    assert list(replayed(run, controller))
    end = instance.window.end
    jobs = controller.jobs()
    assert [job.lost_s(end) for job in jobs] == run.lost.tolist()
    yields = [job.progress_yield(end) for job in jobs]
    assert np.allclose(yields, run.yields, rtol=1e-12)
    # What precedes the first operation is no iteration.
    assert [job.iterations + 1 for job in jobs] == run.operations.tolist()
