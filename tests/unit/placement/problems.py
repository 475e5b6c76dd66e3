# SPDX-License-Identifier: MIT
"""Small placement problems, and strategies that draw random ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st

from penstock.model import Application
from penstock.model.problem import Problem
from penstock.placement import Allocation, Placement, get_allocation, get_placement

__all__ = [
    "allocate",
    "application",
    "place",
    "problem",
    "problems",
    "some_allocation",
    "unaware",
]


def application(
    name: str,
    profile: Sequence[float] = (),
    *,
    work: float = 10.0,
    volume: float = 60.0,
    nodes: int = 1,
) -> Application:
    """Return an application with one work phase and one operation."""
    phases = [("work", work), ("io", volume)] if work or volume else []
    return Application.from_phases(name, nodes, phases, profile=profile)


def problem(resources: int, *applications: Application, **rest: Any) -> Problem:
    """Return a problem whose compute nodes are those of the applications."""
    nodes = sum(a.nodes for a in applications)
    return Problem(resources, rest.pop("compute_nodes", nodes), applications, **rest)


#: Few different values, so that ties are frequent.
_coarse = st.integers(1, 6).map(float)
_fine = st.floats(0.01, 100.0)
_bandwidth = _coarse | _fine


@st.composite
def problems(
    draw: Any,
    *,
    most_applications: int = 5,
    most_resources: int = 5,
    most_measured: int = 6,
) -> Problem:
    """Draw a problem of which everything is known."""
    count = draw(st.integers(1, most_applications))
    applications = [
        application(
            f"app {j}",
            draw(st.lists(_bandwidth, min_size=1, max_size=most_measured)),
            work=draw(st.just(0.0) | _coarse | _fine),
            volume=draw(_coarse | _fine),
            nodes=draw(st.integers(1, 20)),
        )
        for j in range(count)
    ]
    spare = draw(st.integers(0, 10))
    return Problem(
        draw(st.integers(1, most_resources)),
        sum(a.nodes for a in applications) + spare,
        tuple(applications),
    )


def unaware(known: Problem, *needed: str) -> Problem:
    """Return `known` with other values for all inputs but the `needed` ones.

    The number of measurements stays: it says what an application may be given.
    """
    applications = []
    for j, a in enumerate(known.applications):
        profile: Any = a.profile
        if "b_j" not in needed:
            peak = known.n_perf(j) if "n_perf" in needed else 1 + (j + 1) % len(profile)
            profile = [9.0 if n + 1 == peak else 3.0 for n in range(len(profile))]
        applications.append(
            replace(
                a,
                nodes=a.nodes if "Q_j" in needed else 1,
                work=a.work if "T_cpu" in needed else a.work + 7.0 + j,
                volume=a.volume if "V_io" in needed else a.volume * (3.0 + j),
                profile=profile,
            )
        )
    return Problem(known.resources, known.compute_nodes, tuple(applications))


def allocate(text: str, task: Problem) -> Allocation:
    """Return the allocation that the algorithm `text` chooses."""
    return get_allocation(text).allocate(task)


def place(text: str, task: Problem, allocation: Sequence[int]) -> Placement:
    """Return the placement that the algorithm `text` chooses."""
    return get_placement(text).place(task, allocation)


def some_allocation(task: Problem, seed: int) -> tuple[int, ...]:
    """Return any lawful allocation."""
    return tuple(
        1 + (seed >> 4 * j) % task.most_targets(j)
        for j in range(len(task.applications))
    )
