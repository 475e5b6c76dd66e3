# SPDX-License-Identifier: MIT
"""A run has the same bits compiled, interpreted, and with the policy called back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import inf
from typing import Any

import numpy as np
import pytest

from penstock.kernels import interpreted
from penstock.model import Application, Instance, Platform, Window
from penstock.policies import POLICIES, get_policy
from penstock.policies.view import View
from penstock.sim import Run, simulate
from penstock.workloads import IOSets, Synthetic
from support import ALL_POLICIES, seeded


def synthetic() -> Instance:
    """Return a small instance of the synthetic workload."""
    return Synthetic(horizon=30_000.0).instance(3, 0)


def io_sets() -> Instance:
    """Return the beginning of an IO-SETS instance with known periods."""
    drawn = IOSets(noise=0.3).instance(3, 1)
    return Instance(drawn.platform, Window(50.0, 250.0), drawn.applications)


def unequal(*, history: bool = False, zeros: bool = False) -> Instance:
    """Return ten applications of 1 to 8 nodes, on a storage of 7.3 nodes' bandwidth."""
    rng = seeded(5)
    platform = Platform(7.3 * 1.1, 1.1)
    applications = []
    for number in range(10):
        nodes = rng.randint(1, 8)
        cap = platform.cap(nodes)
        mean = 10.0 ** rng.uniform(0, 2.5)
        phases = []
        for _ in range(int(600 / mean) + 2):
            # Always drawn, so that the instances differ in nothing else.
            work, volume = rng.uniform(0.5, 1.5), rng.uniform(0.1, 0.5)
            no_work, no_volume = rng.random() < 0.3, rng.random() < 0.3
            phases.append(("work", 0.0 if zeros and no_work else work * mean))
            phases.append(("io", 0.0 if zeros and no_volume else volume * mean * cap))
        phases.append(("work", 1e6))
        age, done = rng.uniform(10.0, 900.0), rng.random()
        start = rng.choice([-20.0, 0.0, 0.0, 15.5])
        past: dict[str, Any] = {
            "release": start - age,
            "start": start,
            "done_work": age * done * 0.6,
            "done_volume": age * done * 0.4 * cap,
            "period": rng.choice([0.0, mean]),
        }
        applications.append(
            Application.from_phases(
                f"a{number}", nodes, phases, **(past if history else {})
            )
        )
    return Instance(platform, Window(100.0, 600.0), tuple(applications))


INSTANCES: dict[str, Callable[[], Instance]] = {
    "synthetic": synthetic,
    "io-sets": io_sets,
    "unequal caps": unequal,
    "histories": lambda: unequal(history=True),
    "zero phases": lambda: unequal(history=True, zeros=True),
}


@cache
def instance_of(name: str) -> Instance:
    """Return the instance of that name."""
    return INSTANCES[name]()


def columns(run: Run) -> dict[str, Any]:
    """Return all columns of a run except the computing time."""
    assert run.log is not None
    assert run.grants is not None
    return {
        "counts": np.array([run.events, run.decisions]),
        **{name: getattr(run, name) for name in ("lost", "ended", "work", "volume")},
        **{f"log.{k}": getattr(run.log, k) for k in ("time", "kind", "application")},
        **{f"grants.{k}": getattr(run.grants, k) for k in ("time", "application")},
        "grants.rate": run.grants.rate,
    }


def assert_same_bits(run: Run, other: Run) -> None:
    """Assert that two runs are equal bit by bit."""
    first_columns, second_columns = columns(run), columns(other)
    for name, column in first_columns.items():
        assert column.dtype == second_columns[name].dtype, name
        assert column.tobytes() == second_columns[name].tobytes(), name


def test_instances_are_what_they_say() -> None:
    """The instances have contention, histories and zeros."""
    for name in INSTANCES:
        instance = instance_of(name)
        assert instance.caps.sum() > instance.platform.bandwidth
    assert len(set(instance_of("unequal caps").caps)) > 4
    assert any(a.release < a.start for a in instance_of("histories").applications)
    zeros = instance_of("zero phases").applications
    assert any((a.work[:-1] == 0).any() for a in zeros)
    assert any((a.volume == 0).any() for a in zeros)
    assert any(a.period > 0 for a in instance_of("io-sets").applications)


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("policy", ALL_POLICIES)
def test_compiled_and_interpreted(policy: str, name: str) -> None:
    """One source, two ways to run it."""
    instance = instance_of(name)
    compiled = simulate(instance, policy, record=True, validate=True)
    plain = simulate(instance, policy, compiled=False, record=True, validate=True)
    assert compiled.events > 100
    assert compiled.lost.max() > 0
    assert_same_bits(compiled, plain)


@pytest.mark.parametrize("name", POLICIES)
def test_called_back(name: str) -> None:
    """The plain-Python twin, called by the compiled engine, decides the same."""
    policy = get_policy(name)
    twin = replace(policy, function=interpreted(policy.allocate))
    instance = instance_of("histories")
    compiled = simulate(instance, policy, record=True, validate=True)
    assert_same_bits(compiled, simulate(instance, twin, record=True, validate=True))


def write_fcfs(view: View, rates: Any) -> float:
    """Serve in the order of posting, in plain Python."""
    active = [view.active[position] for position in range(view.n_active)]
    left = view.capacity
    for i in sorted(active, key=lambda i: (view.posted[i], i)):
        rates[i] = min(view.cap[i], left)
        left -= rates[i]
    return inf


@pytest.mark.parametrize("name", ["unequal caps", "zero phases"])
def test_written_in_plain_python(name: str) -> None:
    """A policy in plain Python equals the kernel, with both engines."""
    policy = get_policy("fcfs")
    own = replace(policy, function=write_fcfs)
    instance = instance_of(name)
    compiled = simulate(instance, policy, record=True, validate=True)
    for how in (True, False):
        other = simulate(instance, own, compiled=how, record=True, validate=True)
        assert_same_bits(compiled, other)


def test_recording_and_validating_change_nothing() -> None:
    """Recording, validation and checks leave the results unchanged."""
    instance = instance_of("histories")
    bare = simulate(instance, "greedy-yield")
    full = simulate(instance, "greedy-yield", record=True, validate=True)
    assert bare.log is None
    assert bare.grants is None
    for name in ("lost", "work", "volume"):
        assert getattr(bare, name).tobytes() == getattr(full, name).tobytes()
