# SPDX-License-Identifier: MIT
"""What the engine reads (`Program`) and what it changes (`State`).

Both are structs of columns; see `penstock.kernels` for what a struct is. A column
has one entry per application, per flow (what an application sends to one of its
storage targets) or per target. Flows are numbered application by application, so
that with one target flow and application have the same number.

On targets that are shared by time (papers/2) the volume of a flow is counted in
seconds at its full speed, so that its cap and the capacity of the target are 1:
the engine and the policies know no other difference.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

import numpy as np

from penstock.kernels import Floats, Ints, kinds
from penstock.model import Instance, Sharing
from penstock.policies.ask import LAWFUL

__all__ = [
    "COMPLETION",
    "END_OF_APPLICATION",
    "POST",
    "WAKE_UP",
    "Program",
    "State",
    "new_program",
    "new_state",
]

#: Volume that marks the end of an application in the column of volumes.
END_OF_APPLICATION: Final = -1.0

# Entries of `State.clock` (s).
NOW: Final = 0
# Entries of `State.counter`.
ACTIVE: Final = 0
WORKING: Final = 1
EVENTS: Final = 2
DECISIONS: Final = 3
WINDOW_OPEN: Final = 4
CULPRIT: Final = 5
LOGGED: Final = 6
GRANTED: Final = 7
TOUCHED: Final = 8
ENDED: Final = 9

#: Entries of the event log, or of the grants, at which the engine pauses.
RECORD_LIMIT: Final = 1 << 16

# Why the engine returned; 2 to 5 are the breaches in `penstock.policies.ask`.
PAUSED: Final = LAWFUL
DONE: Final = 1
APPLICATION_ENDED: Final = 6
TIME_WENT_BACK: Final = 7
PROGRESS_NOT_CONSERVED: Final = 8

# Kinds of events.
COMPLETION: Final = 0
POST: Final = 1
WAKE_UP: Final = 2


class Program(NamedTuple):
    """An instance as the engine reads it."""

    applications: int
    entries: int
    """How many flows there are."""
    targets: int
    leaves: int
    """Least power of 2 that is not below `targets`."""
    capacity: float
    """Of every target (bytes/s, or 1 if it is shared by time)."""
    window_begin: float
    window_end: float
    ends_before: float
    """An application that ends before this instant (s) breaks steadiness."""
    until_first_end: int
    """1 to end the window when the first application ends."""
    dedicated_events: float
    work: Floats
    """All work phases (s), application after application: w0 w1 ... wn."""
    volume: Floats
    """All operations (bytes), in step with `work`; v after w; the last entry of
    each application is `END_OF_APPLICATION`."""
    first: Ints
    """By application: where it begins in `work` and `volume`."""
    start: Floats
    """By application (s)."""
    bandwidth: Floats
    """By application: b_i (bytes/s)."""
    first_flow: Ints
    """By application: its first flow; one more entry ends the last one's."""
    owner: Ints
    """By flow: its application."""
    target: Ints
    """By flow: its target."""
    portion: Floats
    """By flow: its volume as a multiple of that of the operation."""
    unit: Floats
    """By flow: bytes in one unit of its volume; 1 but on time-shared targets."""
    cap: Floats
    """By flow, as the next five: most it can draw."""
    release: Floats
    nodes: Ints
    period: Floats
    user: Ints
    group: Ints
    first_user: Ints
    """By target: where its list of flows begins in `State.flow`."""
    parameters: Floats
    """Values of the policy's parameters."""
    record: int
    """1 to keep the event log and the grants."""
    validate: int
    """1 to check every invariant at every instant."""


class State(NamedTuple):
    """Everything that changes during a run.

    Remaining volume and lost time are kept lazily: their values at the instant
    `since` of the last change of rate, from which `remaining` and `lost` follow.
    """

    clock: Floats
    counter: Ints
    # By application.
    position: Ints
    """Current entry of `Program.work` and `Program.volume`."""
    working: Ints
    """Heap of the applications in a work phase, by (work_end, index)."""
    work_end: Floats
    """End of the current work phase (s)."""
    unfinished: Ints
    """Flows of the current operation that are not done."""
    operations: Ints
    """Completed operations."""
    work_done: Floats
    """Work of completed work phases, history included (s)."""
    transferred: Floats
    """Volume of completed operations, history included (bytes)."""
    finished: Floats
    """When the application ended (s); inf while it has not."""
    begin_work: Floats
    """`work_done`, pro rata, at the begin of the window (s)."""
    begin_transferred: Floats
    """`transferred`, pro rata, at the begin of the window (bytes)."""
    # By target.
    users: Ints
    """Flows that it has to serve."""
    wake: Floats
    """When the policy wants to be asked again (s)."""
    next_completion: Floats
    """When the first flow is done at the rates held (s)."""
    occupied: Floats
    """How long it had flows to serve inside the window (s)."""
    occupied_since: Floats
    """When it last began to have some (s)."""
    is_touched: Ints
    """1 if a decision is due now."""
    touched: Ints
    """The targets for which it is."""
    due: Floats
    """Tree of minima over min(wake, next_completion); see `touch_due_targets`."""
    # By flow.
    flow: Ints
    """Flows to serve, ascending, target after target; see `Program.first_user`."""
    active: Ints
    """Those of the target that decides now."""
    rate: Floats
    """Bandwidth held now (bytes/s)."""
    share: Floats
    """alpha: `rate` as a fraction of the cap."""
    wanted: Floats
    """Bandwidth the policy has just asked for (bytes/s)."""
    since: Floats
    remaining_then: Floats
    lost_then: Floats
    """Of the flow alone; see `engine.loss`."""
    completion: Floats
    """When the flow is done at the rate held (s)."""
    remaining: Floats
    lost: Floats
    """Of the application."""
    posted: Floats
    volume: Floats
    work_before: Floats
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


_BY_APPLICATION: Final = (
    *("position", "working", "work_end", "unfinished", "operations", "work_done"),
    *("transferred", "finished", "begin_work", "begin_transferred"),
)
_BY_TARGET: Final = (
    *("users", "wake", "next_completion", "occupied", "occupied_since"),
    *("is_touched", "touched"),
)


def new_program(
    instance: Instance,
    parameters: np.ndarray[Any, Any],
    *,
    steady: bool,
    until_first_end: bool = False,
    record: bool,
    validate: bool,
) -> Program:
    """Return `instance` in the engine's form, for a policy with `parameters`."""
    window = instance.window
    slack = 1e-9 * (window.end - min(a.start for a in instance.applications))
    steady = steady and not until_first_end
    return _program(instance)._replace(
        ends_before=window.end - slack if steady else -np.inf,
        until_first_end=int(until_first_end),
        parameters=_column(parameters, np.float64),
        record=int(record),
        validate=int(validate),
    )


@lru_cache(maxsize=1)
def _program(instance: Instance) -> Program:
    """Return what does not depend on the policy; kept for the next policy."""
    applications = instance.applications
    platform = instance.platform
    lengths = np.array([len(a.work) for a in applications], dtype=np.int64)
    volumes = [np.append(a.volume, END_OF_APPLICATION) for a in applications]
    widths = np.array([len(a.targets) for a in applications], dtype=np.int64)
    target = np.concatenate([a.targets for a in applications]).astype(np.int64)
    flow_cap = np.repeat(instance.caps / widths, widths)
    portion = np.repeat(1.0 / widths, widths)
    by_time = platform.sharing is Sharing.TIME
    users = np.bincount(target, minlength=platform.targets)

    def by_flow(values: list[Any], kind: type[Any]) -> Any:
        return _column(np.repeat(np.array(values, dtype=kind), widths))

    return Program(
        applications=len(applications),
        entries=len(target),
        targets=platform.targets,
        leaves=1 << (platform.targets - 1).bit_length(),
        capacity=1.0 if by_time else platform.target_bandwidth,
        window_begin=instance.window.begin,
        window_end=instance.window.end,
        ends_before=-np.inf,
        until_first_end=0,
        dedicated_events=float(instance.dedicated_events()),
        work=_column(np.concatenate([a.work for a in applications])),
        volume=_column(np.concatenate(volumes)),
        first=_column(np.cumsum(lengths) - lengths),
        start=_column([a.start for a in applications], np.float64),
        bandwidth=_column(instance.caps),
        first_flow=_column(np.concatenate([[0], np.cumsum(widths)]), np.int64),
        owner=by_flow(list(range(len(applications))), np.int64),
        target=_column(target),
        portion=_column(portion / flow_cap if by_time else portion),
        unit=_column(flow_cap if by_time else np.ones(len(target))),
        cap=_column(np.ones(len(target)) if by_time else flow_cap),
        release=by_flow([a.release for a in applications], np.float64),
        nodes=by_flow([a.nodes for a in applications], np.int64),
        period=by_flow([a.period for a in applications], np.float64),
        user=by_flow(_numbered([a.user for a in applications]), np.int64),
        group=by_flow(_numbered([a.group for a in applications]), np.int64),
        first_user=_column(np.cumsum(users) - users),
        parameters=_column([], np.float64),
        record=0,
        validate=0,
    )


def _numbered(names: list[str]) -> list[int]:
    """Return equal numbers for equal names, from 0 in the order of appearance."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return [numbers[name] for name in names]


def new_state(instance: Instance, program: Program) -> State:
    """Return the state before the first event.

    The record is emptied by the caller whenever it holds `RECORD_LIMIT` entries;
    beyond that there is room for all that one instant can add.
    """
    sizes = dict.fromkeys(_BY_APPLICATION, program.applications)
    sizes |= dict.fromkeys(_BY_TARGET, program.targets)
    sizes |= {"counter": ENDED + 1, "clock": NOW + 1, "due": 2 * program.leaves}
    sizes["scratch"] = 8 * program.entries
    operations = sum(len(a.volume) for a in instance.applications)
    for prefix, most in (("log_", 2 * operations), ("grant_", 2 * program.entries)):
        size = RECORD_LIMIT + most + program.targets if program.record else 1
        sizes |= {n: size for n in State._fields if n.startswith(prefix)}
    columns: dict[str, np.ndarray[Any, Any]] = {
        name: np.zeros(
            sizes.get(name, program.entries),
            dtype=np.int64 if kind == "Ints" else np.float64,
        )
        for name, kind in kinds(State).items()
    }
    columns["clock"][NOW] = min(a.start for a in instance.applications)
    columns["counter"][CULPRIT] = -1
    for name in ("finished", "wake", "next_completion", "due"):
        columns[name][:] = np.inf
    lost = [a.lost_at_start(c) for a, c in instance.with_caps()]
    columns["lost"][:] = np.array(lost)[cast(Any, program.owner)]
    columns["work_done"][:] = [a.done_work for a in instance.applications]
    columns["transferred"][:] = [a.done_volume for a in instance.applications]
    return State(**cast(Any, columns))


def _column(values: Any, kind: type[Any] | None = None) -> Any:
    """Return `values` as a column; never empty, for it must have an address."""
    array = np.ascontiguousarray(values, dtype=kind)
    return array if array.size else np.zeros(1, dtype=array.dtype)
