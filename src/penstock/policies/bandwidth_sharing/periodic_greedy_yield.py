# SPDX-License-Identifier: MIT
"""Serve the lowest yield first, and decide again at regular intervals.

Rule
    As `greedy_yield`, but also decide at wake-ups, so that a bad decision does not last
    until the end of a long operation.

Parameters
    delta (s)
        Time between wake-ups; 0 (default): (T_end - T_begin) / E, where E is the
        number of posts and completions in dedicated mode (bandwidth sharing,
        equation 5). At least 1 ns, and at least 2^-40 of the clock.
    clock
        ``window`` (default): wake-ups at T_begin + k delta; ``event``: delta after
        the last event, as in the authors' program.

Properties
    Work-conserving. The default of delta needs the dedicated mode to be known.
    O(k) per decision.

Source
    Bandwidth sharing, section 4.1, PeriodicGreedyYield.
"""

from __future__ import annotations

from math import floor, inf
from typing import Final

from penstock.kernels import Floats, kernel
from penstock.policies.bandwidth_sharing.greedy_yield import serve_lowest_yield
from penstock.policies.policy import Knowledge, Parameter
from penstock.policies.rounding import GRAIN
from penstock.policies.view import View

__all__ = ["NEEDS", "PARAMETERS", "allocate"]

PARAMETERS: Final = (
    Parameter(
        "delta",
        "time between wake-ups; 0: window length / E",
        0.0,
        unit="s",
        least=1e-9,
    ),
    Parameter(
        "clock",
        "count wake-ups from the beginning of the window, or from the last event",
        "window",
        choices=("window", "event"),
    ),
)
#: The default of delta is derived from the dedicated mode.
NEEDS: Final = {Knowledge.DEDICATED_EVENTS: ("delta", 0.0)}


@kernel
def allocate(view: View, rates: Floats) -> float:
    """Serve the lowest yield first; wake up after delta."""
    serve_lowest_yield(view, rates)
    delta = view.parameters[0]
    if delta == 0.0:
        if view.dedicated_events == 0.0:
            return inf
        delta = (view.window_end - view.window_begin) / view.dedicated_events
    grain = max(abs(view.now), abs(view.window_begin)) * GRAIN
    delta = max(delta, 2.0 * grain)
    if view.parameters[1] == 1.0:
        return view.now + delta
    elapsed = floor((view.now - view.window_begin) / delta)
    tick = max(elapsed + 1.0, 0.0)
    wake = view.window_begin + tick * delta
    if wake <= view.now + grain:
        # Rounding: `now` is itself this tick.
        wake = view.window_begin + (tick + 1.0) * delta
    return wake if wake > view.now else view.now + delta
