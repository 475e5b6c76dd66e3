# SPDX-License-Identifier: MIT
"""The view of a policy: the active applications, without their future.

An application is *active* from the post of an I/O operation to its completion. Columns
are indexed by application. Only the entries of the active applications,
``active[0] < active[1] < ... < active[n_active - 1]``, have a meaning.

With several storage targets, a policy decides for one target at a time. Each entry is
then the *flow* of an application to that target. Cap and remaining volume are those of
the flow, the capacity is that of the target. If the target is shared by time, volumes
are in seconds at full speed, and caps and capacity are 1. Release, lost time and
iterations, hence the yield, are those of the whole application.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from penstock.kernels import Floats, Ints

__all__ = ["HORIZON_S", "Allocate", "View"]

#: Live control has no window: policies see one that ends this long after now (s).
HORIZON_S: Final = 3600.0


class View(NamedTuple):
    """State of the shared storage at one instant, as a policy sees it.

    Progress of application i is ``now - release[i] - lost[i]`` seconds, its
    yield (bandwidth sharing, equation 6) is ``1 - lost[i] / (now - release[i])``.
    """

    now: float
    """This instant (s)."""
    capacity: float
    """Total bandwidth B (bytes/s)."""
    window_begin: float
    """Begin of the measured window (s)."""
    window_end: float
    """End of the measured window (s); no decision matters after it."""
    dedicated_events: float
    """E (bandwidth sharing, equation 5): number of posts and completions in dedicated
    mode; 0 if unknown."""
    entries: int
    """Number of entries of a column: all applications (flows), active or not."""
    n_active: int
    """Number of active applications (flows)."""
    parameters: Floats
    """Values of the policy's parameters, in the order it declares them."""
    active: Ints
    """Indices of the active applications, ascending (ties: lowest index first)."""
    cap: Floats
    """b_i = min(nodes x node bandwidth, B): the most that i can use (bytes/s)."""
    remaining: Floats
    """V_i: volume still to transfer in the current operation (bytes)."""
    volume: Floats
    """Volume of the current operation when it was posted (bytes)."""
    posted: Floats
    """R_i: when the current operation was posted (s)."""
    release: Floats
    """tau_i: instant from which the age of the application counts (s)."""
    lost: Floats
    """Time lost so far to waiting and slow I/O (s); exactly 0 until delayed."""
    nodes: Ints
    """p_i: compute nodes of the application."""
    operations: Ints
    """Operations completed since the start; 0 during the first one."""
    iterations: Ints
    """Completed iterations: work, then an operation, from the second operation on.
    What precedes the first operation is not an iteration: it may be an offset, or
    the rest of a phase that began before the start."""
    iteration_time: Floats
    """Sum over completed iterations of work + volume / cap (s)."""
    work_before: Floats
    """Work between the previous operation and the current one (s)."""
    period: Floats
    """Length of an iteration if known beforehand (s); 0 if not."""
    user: Ints
    """Number of the user who owns the application."""
    group: Ints
    """Number of the group the application belongs to."""
    key: Floats
    """Working memory, one entry per application; not kept between calls."""
    order: Ints
    """Working memory, one entry per application; not kept between calls."""
    scratch: Floats
    """Working memory, eight entries per application; not kept between calls."""


#: ``allocate(view, rates) -> wake``: sets ``rates[i]`` (bytes/s, all 0 on entry)
#: for active i; returns when to decide again if nothing happens (``inf``: never).
Allocate: TypeAlias = Callable[[View, Floats], float]
