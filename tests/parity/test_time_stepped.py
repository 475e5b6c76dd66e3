# SPDX-License-Identifier: MIT
"""The exact engine against the time-stepped method of target allocation.

In steps, every phase may last too long: by up to one step, and a transfer by up to
one turn of all who collide with it. An application of p phases among K is therefore
late by some 2 p K steps at most, and this is how far the two may be apart. As the step
goes to 0 the method tends to fair share, and they must meet.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import baseline_time_stepped
from penstock.errors import InputError
from penstock.model import Application, Instance, Platform, Sharing, Window
from penstock.placement import get_allocation, get_placement
from penstock.sim import Run, simulate
from penstock.workloads.striped import Striped

K, N = 6, 4
STEPS = (1 / 4, 1 / 16, 1 / 64)


def application(name: str, targets: tuple[int, ...], *phases: float) -> Application:
    """Return an application of work and I/O in turn, 1 byte/s alone."""
    kinds = ("work", "io") * len(phases)
    return Application.from_phases(
        name,
        1,
        list(zip(kinds, phases, strict=False)),
        profile=[1.0] * len(targets),
        targets=targets,
    )


def case(*applications: Application, targets: int, end: float = 100.0) -> Instance:
    """Return an instance with targets shared by time."""
    platform = Platform(float(targets), 1.0, targets, Sharing.TIME)
    return Instance(platform, Window(0.0, end), applications)


# --- The baseline by hand -----------------------------------------------------


def test_colliding_applications_alternate() -> None:
    """Both need 4 units of I/O from 1 on: a gets 1, 3, 5, 7 and b gets 2, 4, 6, 8."""
    pair = [application(name, (0,), 1, 4, 9) for name in "ab"]
    run = baseline_time_stepped.simulate(case(*pair, targets=1))
    # a works from 8 on, to 17.
    assert (run.end, run.steps) == (17.0, 17)
    assert run.work == [10.0, 9.0]
    assert run.volume == [4.0, 4.0]
    assert run.io_time == [7.0, 8.0]
    assert run.operations == [1, 1]
    assert run.occupied == [8.0]
    assert run.yields == [14 / 17, 13 / 17]


def test_one_congested_target_does_not_slow_the_other() -> None:
    """Figure 4 of target allocation: a ends on target 0 at 4 s, on target 1 at 7 s."""
    a, b = application("a", (0, 1), 0, 4, 9), application("b", (1,), 0, 4, 9)
    run = baseline_time_stepped.simulate(case(a, b, targets=2, end=10.0))
    assert run.io_time == [7.0, 8.0]
    assert run.occupied == [4.0, 8.0]
    assert run.volume == [4.0, 4.0]


def test_the_rest_of_a_step_is_wasted() -> None:
    """1.5 s of work and 0.25 s of I/O take 2 + 1 units, but count as 1.5 and 0.25 s."""
    run = baseline_time_stepped.simulate(
        case(application("a", (0,), 1.5, 0.25), targets=1)
    )
    assert run.end == 3.0
    assert run.work == [1.5]
    assert run.volume == [0.25]


def test_unsupported_settings_are_refused() -> None:
    """Other ways of sharing, other starts, and invalid steps are refused."""
    a = application("a", (0,), 1, 4)
    with pytest.raises(InputError, match="unit of time"):
        baseline_time_stepped.simulate(case(a, targets=1), 0.0)
    with pytest.raises(InputError, match="by time only"):
        baseline_time_stepped.simulate(Instance(Platform(1, 1), Window(0, 9), (a,)))
    late = Application.from_phases("late", 1, [("work", 1)], release=1.0)
    with pytest.raises(InputError, match="does not start at 0"):
        baseline_time_stepped.simulate(case(late, targets=1))


# --- Against the engine -------------------------------------------------------


@cache
def problem(index: int) -> tuple[Instance, Run]:
    """Return a small problem of section 5.3, placed, and its exact outcome."""
    drawn = Striped(applications=K, targets=N, compute_nodes=48, horizon=200.0).problem(
        3, index
    )
    widths = get_allocation("best-bandwidth").allocate(drawn)
    placement = get_placement("greedy-non-clairvoyant").place(drawn, widths)
    instance = drawn.instance(placement, Window(0.0, 10_000.0))
    return instance, simulate(instance, "fair-share", until_first_end=True)


@cache
def errors(index: int, step: float) -> dict[str, float]:
    """Return the largest difference of the two results (s)."""
    instance, exact = problem(index)
    stepped = baseline_time_stepped.simulate(instance, step)
    end = exact.instance.window.end
    volume = np.abs(np.array(stepped.volume) - exact.volume) / instance.caps
    return {
        "end": abs(stepped.end - end),
        "yields": end * float(np.max(np.abs(stepped.yields - exact.yields))),
        "work": float(np.max(np.abs(stepped.work - exact.work))),
        "volume": float(np.max(volume)),
        "occupied": float(np.max(np.abs(stepped.occupied - exact.occupied))),
    }


@pytest.mark.parametrize("index", range(8))
@pytest.mark.parametrize("step", STEPS)
def test_within_the_step_error(index: int, step: float) -> None:
    """The difference is at most the possible lateness of the phases."""
    phases = max(len(a.volume) for a in problem(index)[0].applications)
    error = errors(index, step)
    assert max(error.values()) <= 2 * phases * K * step


@pytest.mark.parametrize("name", ["end", "yields", "work", "volume", "occupied"])
def test_the_error_shrinks_with_the_step(name: str) -> None:
    """A sixteenth of the step leaves less than a quarter of the mean error."""
    first, second, third = (
        np.mean([errors(index, step)[name] for index in range(8)]) for step in STEPS
    )
    assert third < second < first
    assert third < first / 4
    assert third < 1.0
