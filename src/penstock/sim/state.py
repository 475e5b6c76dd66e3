# SPDX-License-Identifier: MIT
"""What the engine reads (`Program`) and what it changes (`State`).

Both are structs of columns, one entry per application unless stated otherwise;
see `penstock.kernels` for what a struct is. `Clock` and `Counter` number the
entries of the two columns that hold the engine's scalars.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

import numpy as np

from penstock.kernels import Floats, Ints, kinds
from penstock.model import Instance

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
WAKE: Final = 1
NEXT_COMPLETION: Final = 2
# Entries of `State.counter`.
ACTIVE: Final = 0
WORKING: Final = 1
EVENTS: Final = 2
DECISIONS: Final = 3
WINDOW_OPEN: Final = 4
CULPRIT: Final = 5
LOGGED: Final = 6
GRANTED: Final = 7

#: Entries of the event log, or of the grants, at which the engine pauses.
RECORD_LIMIT: Final = 1 << 16

# Why the engine returned.
PAUSED: Final = 0
DONE: Final = 1
RATE_OVER_CAP: Final = 2
RATE_NEGATIVE: Final = 3
CAPACITY_EXCEEDED: Final = 4
WAKE_IN_THE_PAST: Final = 5
APPLICATION_ENDED: Final = 6
TIME_WENT_BACK: Final = 7
PROGRESS_NOT_CONSERVED: Final = 8

# Kinds of events, in the order in which they are applied at one instant.
COMPLETION: Final = 0
POST: Final = 1
WAKE_UP: Final = 2


class Program(NamedTuple):
    """An instance as the engine reads it."""

    applications: int
    capacity: float
    window_begin: float
    window_end: float
    ends_before: float
    """An application that ends before this instant (s) breaks steadiness."""
    dedicated_events: float
    work: Floats
    """All work phases (s), application after application: w0 w1 ... wn."""
    volume: Floats
    """All operations (bytes), in step with `work`; v after w; the last entry of
    each application is `END_OF_APPLICATION`."""
    first: Ints
    """Where each application begins in `work` and `volume`."""
    cap: Floats
    release: Floats
    start: Floats
    nodes: Ints
    period: Floats
    user: Ints
    group: Ints
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
    position: Ints
    """Current entry of `Program.work` and `Program.volume`."""
    active: Ints
    """Applications with an operation under way, ascending."""
    working: Ints
    """Heap of the applications in a work phase, by (work_end, index)."""
    work_end: Floats
    """End of the current work phase (s)."""
    rate: Floats
    """Bandwidth held now (bytes/s)."""
    share: Floats
    """alpha: `rate` as a fraction of the cap."""
    wanted: Floats
    """Bandwidth the policy has just asked for (bytes/s)."""
    since: Floats
    remaining_then: Floats
    lost_then: Floats
    completion: Floats
    """When the operation completes at the rate held (s)."""
    remaining: Floats
    lost: Floats
    posted: Floats
    volume: Floats
    work_before: Floats
    iterations: Ints
    iteration_time: Floats
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
    key: Floats
    order: Ints
    scratch: Floats
    log_time: Floats
    log_kind: Ints
    log_application: Ints
    grant_time: Floats
    grant_application: Ints
    grant_rate: Floats


def new_program(
    instance: Instance,
    parameters: np.ndarray[Any, Any],
    *,
    steady: bool,
    record: bool,
    validate: bool,
) -> Program:
    """Return `instance` in the engine's form, for a policy with `parameters`."""
    window = instance.window
    slack = 1e-9 * (window.end - min(a.start for a in instance.applications))
    return _program(instance)._replace(
        ends_before=window.end - slack if steady else -np.inf,
        parameters=_column(parameters, np.float64),
        record=int(record),
        validate=int(validate),
    )


@lru_cache(maxsize=1)
def _program(instance: Instance) -> Program:
    """Return what does not depend on the policy; kept for the next policy."""
    applications = instance.applications
    lengths = np.array([len(a.work) for a in applications], dtype=np.int64)
    volumes = [np.append(a.volume, END_OF_APPLICATION) for a in applications]
    return Program(
        applications=len(applications),
        capacity=instance.platform.bandwidth,
        window_begin=instance.window.begin,
        window_end=instance.window.end,
        ends_before=-np.inf,
        dedicated_events=float(instance.dedicated_events()),
        work=_column(np.concatenate([a.work for a in applications])),
        volume=_column(np.concatenate(volumes)),
        first=_column(np.cumsum(lengths) - lengths),
        cap=_column(instance.caps),
        release=_column([a.release for a in applications], np.float64),
        start=_column([a.start for a in applications], np.float64),
        nodes=_column([a.nodes for a in applications], np.int64),
        period=_column([a.period for a in applications], np.float64),
        user=_numbered([a.user for a in applications]),
        group=_numbered([a.group for a in applications]),
        parameters=_column([], np.float64),
        record=0,
        validate=0,
    )


def _numbered(names: list[str]) -> Any:
    """Return equal numbers for equal names, from 0 in the order of appearance."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return _column([numbers[name] for name in names], np.int64)


def new_state(instance: Instance, *, record: bool) -> State:
    """Return the state before the first event.

    The record is emptied by the caller whenever it holds `RECORD_LIMIT` entries;
    beyond that there is room for all that one instant can add.
    """
    m = len(instance.applications)
    first_start = min(a.start for a in instance.applications)
    columns: dict[str, np.ndarray[Any, Any]] = {
        name: np.zeros(m, dtype=np.int64 if kind == "Ints" else np.float64)
        for name, kind in kinds(State).items()
    }
    columns["clock"] = np.array([first_start, np.inf, np.inf])
    columns["counter"] = np.zeros(GRANTED + 1, dtype=np.int64)
    columns["counter"][CULPRIT] = -1
    columns["finished"][:] = np.inf
    columns["lost"][:] = [a.lost_at_start(c) for a, c in instance.with_caps()]
    columns["work_done"][:] = [a.done_work for a in instance.applications]
    columns["transferred"][:] = [a.done_volume for a in instance.applications]
    columns["scratch"] = np.zeros(8 * m)
    operations = sum(len(a.volume) for a in instance.applications)
    for prefix, most in (("log_", 2 * operations + 1), ("grant_", 2 * m)):
        size = RECORD_LIMIT + most if record else 1
        for name in [n for n in columns if n.startswith(prefix)]:
            columns[name] = np.zeros(size, dtype=columns[name].dtype)
    return State(**cast(Any, columns))


def _column(values: Any, kind: type[Any] | None = None) -> Any:
    """Return `values` as a column; never empty, for it must have an address."""
    array = np.ascontiguousarray(values, dtype=kind)
    return array if array.size else np.zeros(1, dtype=array.dtype)
