# SPDX-License-Identifier: MIT
"""Views made by hand from plain lists.

A `Scene` holds one decision in plain lists; `make_view` makes it the `View` that
the policy sees, and `decide` asks the policy::

    rates, wake = decide("fcfs", Scene(cap=[1.0, 1.0], posted=[3.0, 2.0]))
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf
from typing import Any

from penstock.kernels import interpreted, kinds
from penstock.policies import get_policy
from penstock.policies.policy import Policy
from penstock.policies.view import View
from support import seeded

__all__ = [
    "Scene",
    "decide",
    "make_view",
    "permuted",
    "random_scene",
    "scaled",
    "tied_scene",
    "used_memory",
]

#: Fields of `View` that are working memory, with their entries per application.
_WORKING = {"key": 1, "order": 1, "scratch": 8}
_CODES = {"Floats": "d", "Ints": "q"}


@dataclass(frozen=True)
class Scene:
    """One decision: a `View` in lists; empty columns get a harmless value."""

    cap: list[float]
    remaining: list[float] = field(default_factory=list)
    """By default enough for ten seconds at the cap."""
    volume: list[float] = field(default_factory=list)
    """By default `remaining`."""
    posted: list[float] = field(default_factory=list)
    """By default all now."""
    release: list[float] = field(default_factory=list)
    """By default 100 s ago."""
    lost: list[float] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    operations: list[int] = field(default_factory=list)
    """By default one more than `iterations` if there are any, else 0."""
    iterations: list[int] = field(default_factory=list)
    iteration_time: list[float] = field(default_factory=list)
    work_before: list[float] = field(default_factory=list)
    period: list[float] = field(default_factory=list)
    user: list[int] = field(default_factory=list)
    group: list[int] = field(default_factory=list)
    active: list[int] | None = None
    """By default all."""
    now: float = 0.0
    capacity: float = 1.0
    window_begin: float = 0.0
    window_end: float = 1000.0
    dedicated_events: float = 0.0

    @property
    def active_indices(self) -> list[int]:
        """The active applications."""
        return list(range(len(self.cap))) if self.active is None else self.active


def make_view(scene: Scene, parameters: Sequence[float] = (), *, dirt: int = 0) -> View:
    """Return `scene` as a view whose columns cannot be written to.

    Working memory can, and holds garbage that depends on `dirt`.
    """
    m = len(scene.cap)
    default: dict[str, list[Any]] = {
        "remaining": [10.0 * cap for cap in scene.cap],
        "volume": scene.remaining or [10.0 * cap for cap in scene.cap],
        "posted": [scene.now] * m,
        "release": [scene.now - 100.0] * m,
        "nodes": [1] * m,
        "operations": [n + 1 if n else 0 for n in scene.iterations],
    }
    special: dict[str, Any] = {
        "entries": m,
        "n_active": len(scene.active_indices),
        # The engine's column has room for all, and old entries behind the last one.
        "active": scene.active_indices + [-1] * (m - len(scene.active_indices)),
        "parameters": list(parameters),
    }
    garbage = seeded(dirt)
    values: dict[str, Any] = {}
    for name, kind in kinds(View).items():
        if name in _WORKING:
            size = _WORKING[name] * m
            dirty = _garbage(garbage, kind, size)
            values[name] = memoryview(array(_CODES[kind], dirty))
        elif kind in _CODES:
            given = special.get(name) or getattr(scene, name, None)
            column = given or default.get(name) or [0] * m
            values[name] = memoryview(array(_CODES[kind], column)).toreadonly()
        else:
            values[name] = special.get(name, getattr(scene, name, None))
    return View(**values)


def _garbage(rng: random.Random, kind: str, size: int) -> list[Any]:
    """Return values that a column of working memory may hold from an earlier call."""
    if kind == "Ints":
        return [rng.choice([-1, 0, 2**62, -(2**62)]) for _ in range(size)]
    return [rng.choice([float("nan"), inf, -inf, 0.0, 1e300]) for _ in range(size)]


def decide(
    policy: Policy | str, scene: Scene, *, view: View | None = None, dirt: int = 0
) -> tuple[list[float], float]:
    """Return the rates that `policy` gives in `scene`, and its wake-up."""
    if isinstance(policy, str):
        policy = get_policy(policy)
    if view is None:
        view = make_view(scene, policy.parameters.tolist(), dirt=dirt)
    rates: Any = memoryview(array("d", [0.0] * view.entries))
    wake = interpreted(policy.allocate)(view, rates)
    return list(map(float, rates)), wake


def used_memory(view: View, other: View) -> View:
    """Return `other` with the working memory that `view` leaves behind."""
    return other._replace(**{name: getattr(view, name) for name in _WORKING})


# --- Scenes -------------------------------------------------------------------


def random_scene(
    seed: int, *, most: int = 8, grid: float | None = None, idle: bool = True
) -> Scene:
    """Return a scene of random numbers without ties, and with unequal caps.

    With `grid`, numbers are multiples of it, and small: ties in plenty, and sums
    without rounding errors.
    """
    rng = seeded(seed)

    def draw(low: float, high: float) -> float:
        value = rng.uniform(low, high)
        return value if grid is None else max(round(value / grid), 1) * grid

    m = rng.randint(1, most)
    active = sorted(rng.sample(range(m), rng.randint(1, m))) if idle else None
    capacity = draw(2.0, 8.0)
    now = draw(1.0, 500.0)
    begin = now - draw(-100.0, 100.0)
    volume = [draw(1.0, 40.0) for _ in range(m)]
    age = [draw(1.0, 1000.0) for _ in range(m)]
    iterations = [rng.randint(0, 3) for _ in range(m)]
    return Scene(
        cap=[min(draw(0.25, 10.0), capacity) for _ in range(m)],
        remaining=[min(draw(1.0, 40.0), v) for v in volume],
        volume=volume,
        posted=[now - draw(0.0, 50.0) for _ in range(m)],
        release=[now - a for a in age],
        lost=[min(draw(0.0, a), a) for a in age],
        nodes=[rng.randint(1, 8) for _ in range(m)],
        iterations=iterations,
        iteration_time=[n * 10.0 ** rng.uniform(-1, 4) for n in iterations],
        work_before=[rng.choice([0.0, draw(0.0, 900.0)]) for _ in range(m)],
        period=[rng.choice([0.0, 10.0 ** rng.uniform(-1, 4)]) for _ in range(m)],
        user=[rng.randint(0, 2) for _ in range(m)],
        group=[rng.randint(0, 2) for _ in range(m)],
        active=active,
        now=now,
        capacity=capacity,
        window_begin=begin,
        window_end=max(now, begin) + draw(1.0, 1000.0),
        dedicated_events=float(rng.randint(0, 50)),
    )


def tied_scene(count: int, cap: float = 1.0, capacity: float = 2.5) -> Scene:
    """Return a scene of `count` equal applications."""
    return Scene(
        cap=[cap] * count,
        lost=[5.0] * count,
        iterations=[2] * count,
        iteration_time=[20.0] * count,
        work_before=[1.0] * count,
        period=[10.0] * count,
        capacity=capacity,
    )


def permuted(scene: Scene, order: Sequence[int]) -> Scene:
    """Return `scene` with application ``order[i]`` in the place of `i`."""
    changed: dict[str, Any] = {}
    for item in fields(Scene):
        column = getattr(scene, item.name)
        if item.name != "active" and isinstance(column, list) and column:
            changed[item.name] = [column[i] for i in order]
    changed["active"] = sorted(order.index(i) for i in scene.active_indices)
    return replace(scene, **changed)


#: Powers of time and of volume in the unit of every field.
_UNITS = {
    "cap": (-1, 1),
    "capacity": (-1, 1),
    "remaining": (0, 1),
    "volume": (0, 1),
    "posted": (1, 0),
    "release": (1, 0),
    "lost": (1, 0),
    "iteration_time": (1, 0),
    "work_before": (1, 0),
    "period": (1, 0),
    "now": (1, 0),
    "window_begin": (1, 0),
    "window_end": (1, 0),
}


def scaled(scene: Scene, *, time: float = 1.0, volume: float = 1.0) -> Scene:
    """Return `scene` in other units: all seconds and all bytes times a factor."""
    changed: dict[str, Any] = {}
    for name, (times, volumes) in _UNITS.items():
        factor = time**times * volume**volumes
        value = getattr(scene, name)
        changed[name] = (
            [factor * x for x in value] if isinstance(value, list) else factor * value
        )
    return replace(scene, **changed)
