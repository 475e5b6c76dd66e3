# SPDX-License-Identifier: MIT
"""The memory of the engine: its input (`EngineInput`) and its variables (`State`).

Both are structs of columns (see `penstock.kernels`). A column has one entry per
application, per flow, or per target. A flow is the part of an application's operation
that goes to one of its storage targets. Flows are numbered application by application;
so with one target, flow and application have the same number.

Targets can be shared by time (target allocation, section 3.2.2). The volume of a flow
is then counted in seconds at full speed, so that its cap and the capacity of the target
are 1. The engine and the policies need no other special case.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from penstock.kernels import Floats, Ints

__all__ = [
    "COMPLETION",
    "END_OF_APPLICATION",
    "POST",
    "WAKE_UP",
    "EngineInput",
    "State",
]

#: Marks the end of an application in the column of volumes.
END_OF_APPLICATION: Final = -1.0

# Entries of `State.clock` (s).
NOW: Final = 0
# Entries of `State.counter`.
ACTIVE: Final = 0  # flows on the target for which the policy decides
WORKING: Final = 1  # applications in a work phase
EVENTS: Final = 2  # posts and completions
DECISIONS: Final = 3  # calls of the policy
WINDOW_OPEN: Final = 4  # 1 from the beginning of the window on
FAULTY_INDEX: Final = 5  # application or flow that caused an error; -1: none
LOGGED: Final = 6  # entries of the event log
GRANTED: Final = 7  # entries of the log of rates
UNDECIDED: Final = 8  # targets that need a decision
ENDED: Final = 9  # applications that have ended

#: The engine pauses when a log has this many entries, for the caller to empty it.
RECORD_LIMIT: Final = 1 << 16

# Why the engine returned; 2 to 5 are the breaches in `penstock.policies.ask`.
PAUSED: Final = 0
DONE: Final = 1
APPLICATION_ENDED: Final = 6
TIME_WENT_BACK: Final = 7
PROGRESS_NOT_CONSERVED: Final = 8

# Kinds of events.
COMPLETION: Final = 0
POST: Final = 1
WAKE_UP: Final = 2


class EngineInput(NamedTuple):
    """An instance in the form that the engine reads. Times in s, volumes in bytes."""

    applications: int
    entries: int
    """How many flows there are."""
    targets: int
    leaves: int
    """Smallest power of 2 that is at least `targets`: leaves of `State.due`."""
    capacity: float
    """Capacity of every target (bytes/s, or 1 if it is shared by time)."""
    window_begin: float
    window_end: float
    ends_before: float
    """It is an error if an application ends before this instant (s)."""
    until_first_end: int
    """1 to end the window when the first application ends."""
    dedicated_events: float
    origin: float
    """When the first application starts (s)."""
    work: Floats
    """All work phases (s), application after application: w0 w1 ... wn."""
    volume: Floats
    """All operations (bytes): entry k follows the work phase in entry k of `work`.
    The last entry of each application is `END_OF_APPLICATION`."""
    first: Ints
    """By application: its first entry in `work` and `volume`."""
    start: Floats
    """By application: when its first work phase begins (s)."""
    bandwidth: Floats
    """By application: b_i, the most that it can draw (bytes/s)."""
    first_flow: Ints
    """By application: its first flow; the additional last entry is `entries`."""
    owner: Ints
    """By flow: its application."""
    target: Ints
    """By flow: its target."""
    portion: Floats
    """By flow: its volume divided by the volume of the operation."""
    unit: Floats
    """By flow: bytes in one unit of its volume; 1 except on time-shared targets."""
    cap: Floats
    """By flow, like the next five columns: the most that it can draw (bytes/s)."""
    release: Floats
    nodes: Ints
    period: Floats
    user: Ints
    group: Ints
    first_entry: Ints
    """By target: first entry of its list in `State.flows_to_serve`."""
    parameters: Floats
    """Values of the policy's parameters."""
    record: int
    """1 to log events and rates."""
    validate: int
    """1 to check every invariant at every instant."""


class State(NamedTuple):
    """The variables of the engine. Times in s, volumes in bytes, rates in bytes/s.

    Remaining volume and lost time of a flow are stored as they were at the last change
    of its rate, at the instant `since`. `remaining` and `lost` are computed from them
    when a policy needs them.
    """

    clock: Floats
    counter: Ints
    # By application.
    position: Ints
    """Index of the current phases in `EngineInput.work` and `EngineInput.volume`."""
    working: Ints
    """Heap of the applications in a work phase, by (work_end, index)."""
    work_end: Floats
    """End of the current work phase (s)."""
    unfinished: Ints
    """Number of flows of the current operation that are not done."""
    work_done: Floats
    """Work of completed work phases, including that before the simulation (s)."""
    transferred: Floats
    """Volume of completed operations, including those before the simulation."""
    finished: Floats
    """When the application ended (s); inf before."""
    begin_work: Floats
    """`work_done` at the beginning of the window, pro rata (s)."""
    begin_transferred: Floats
    """`transferred` at the beginning of the window, pro rata (bytes)."""
    # By target.
    flow_count: Ints
    """Number of flows to serve."""
    wake: Floats
    """Wake-up that the policy has asked for (s)."""
    next_completion: Floats
    """When the first flow is done at the present rates (s)."""
    occupied: Floats
    """Time inside the window with at least one flow to serve (s)."""
    occupied_since: Floats
    """Beginning of the present time with flows to serve (s)."""
    is_undecided: Ints
    """1 if the target needs a decision."""
    undecided: Ints
    """The targets that need a decision; `UNDECIDED` of them."""
    due: Floats
    """Tree of minima of min(wake, next_completion); see `handle_due_targets`."""
    # By flow.
    flows_to_serve: Ints
    """Flows to serve, ascending, target after target; see `EngineInput.first_entry`."""
    active: Ints
    """Flows of the target for which the policy decides; `ACTIVE` of them."""
    rate: Floats
    """Present rate (bytes/s)."""
    share: Floats
    """alpha: `rate` as a fraction of the cap."""
    wanted: Floats
    """Rate that the policy has set (bytes/s)."""
    since: Floats
    """Last change of the rate (s)."""
    remaining_then: Floats
    """Remaining volume at `since` (bytes)."""
    lost_then: Floats
    """Lost time of the flow alone at `since` (s); see `engine.loss`."""
    completion: Floats
    """When the flow is done at its present rate (s)."""
    remaining: Floats
    lost: Floats
    """Time that the application has lost (s)."""
    posted: Floats
    volume: Floats
    work_before: Floats
    operations: Ints
    iterations: Ints
    iteration_time: Floats
    key: Floats
    order: Ints
    scratch: Floats
    log_time: Floats
    log_kind: Ints
    log_application: Ints
    grant_time: Floats
    grant_application: Ints
    grant_target: Ints
    grant_rate: Floats
