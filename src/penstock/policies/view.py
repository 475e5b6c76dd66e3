# SPDX-License-Identifier: MIT
"""What a policy is shown: the active applications, and nothing of their future.

An application is *active* from the post of an I/O operation to its completion.
Columns are indexed by application; only the entries of the active applications,
``active[0] < active[1] < ... < active[n_active - 1]``, have a meaning.

Where storage has several targets, a policy decides for one target at a time, and
what it sees as an application is an application's *flow* to that target: cap,
remaining volume and capacity are those of the flow and of the target (in seconds
at full speed, cap and capacity 1, if the target is shared by time); release, lost
time and iterations, hence the yield, are those of the application as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from penstock.kernels import Floats, Ints

__all__ = ["Allocate", "View"]


class View(NamedTuple):
    """State of the shared storage at one instant, as a policy sees it.

    Progress of application i is ``now - release[i] - lost[i]`` seconds, its
    yield (papers/1, eq. 6) is ``1 - lost[i] / (now - release[i])``.
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
    """E of papers/1 eq. 5: posts and completions in dedicated mode; 0 if unknown."""
    entries: int
    """How many entries the columns have: applications (flows), active or not."""
    n_active: int
    """How many of them are active."""
    parameters: Floats
    """Values of the policy's parameters, in the order it declares them."""
    active: Ints
    """Indices of the active applications, ascending (ties: lowest index first)."""
    cap: Floats
    """b_i = min(nodes x node bandwidth, B): most bandwidth i can use (bytes/s)."""
    remaining: Floats
    """V_i: volume still to transfer in the current operation (bytes)."""
    volume: Floats
    """Volume of the current operation when it was posted (bytes)."""
    posted: Floats
    """R_i: instant at which the current operation was posted (s)."""
    release: Floats
    """tau_i: instant from which the age of the application counts (s)."""
    lost: Floats
    """Time lost so far to waiting and slow I/O (s); exactly 0 until delayed."""
    nodes: Ints
    """p_i: compute nodes of the application."""
    iterations: Ints
    """Completed iterations (work, then I/O; I/O before any work is not one)."""
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
#: for active i; returns when to ask again if nothing happens (``inf``: never).
Allocate: TypeAlias = Callable[[View, Floats], float]
