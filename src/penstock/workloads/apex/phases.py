# SPDX-License-Identifier: MIT
"""The phases of an APEX job (bandwidth sharing, section 6.3.1).

Rule
    A job reads its input. Then it writes a checkpoint after every 3,600 s of work,
    does the rest of its work, and writes its output. Volumes are fractions of the
    memory of the job (nodes x memory of a node); the table gives the fractions.

Readings
    - The duration of a job includes its I/O in dedicated mode: work = duration -
      volumes / b_i, with as many checkpoints as fit. A job that is never delayed
      therefore ends as scheduled, and no job ends inside a window of its schedule.
    - When a window begins, a job has made the progress of dedicated mode. The current
      phase continues; of a current operation, the remaining volume is posted.
    - Where the table has no volume (the input of CESM, the checkpoints of MILC), there
      is no operation.

Inferred from the windows that the authors published (the text does not say it)
    - An operation that takes less than 1 s in dedicated mode is carried to the next
      operation of its job: work and volume are added to those of the next one, again
      and again until it takes 1 s. What the begin of the window leaves of an operation
      is such an operation too. The last operation of a job has no next one and stays
      as it is.
    - A job that only works inside the window is dropped from it: no operation, after
      short ones have been carried, spends 1 s inside the window in dedicated mode. The
      end of the window cuts an operation only for this test.

Checkpoints that ended long before the window, or that no run can reach inside it, are
left out (`phases_around`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.model import Column
from penstock.workloads.apex.table import JobClass, Machine

__all__ = [
    "SHORTEST_S",
    "carry_short",
    "is_busy",
    "job_phases",
    "may_do_io",
    "phases_around",
    "phases_left",
]

#: Shortest operation that stands by itself (s, in dedicated mode).
SHORTEST_S: Final = 1.0


class _Cycles(NamedTuple):
    """A job in dedicated mode: input, `times` x (period, checkpoint), rest, output."""

    read: float
    """Volume of the input (bytes)."""
    period_s: float
    checkpoint: float
    """Volume of a checkpoint (bytes)."""
    times: int
    """Number of checkpoints."""
    rest: float
    """Work after the last checkpoint (s)."""
    written: float
    """Volume of the output (bytes)."""

    def phases(self) -> tuple[Column, Column]:
        """Return works (s) and volumes (bytes)."""
        first = [0.0] if self.read > 0 else []
        input_volume = [self.read] if self.read > 0 else []
        work = [*first, *[self.period_s] * self.times, self.rest, 0.0]
        volume = [*input_volume, *[self.checkpoint] * self.times, self.written]
        return np.array(work), np.array(volume)


def _cycles(
    job_class: JobClass, nodes: int, duration: float, machine: Machine
) -> _Cycles:
    """Return a job that takes `duration` seconds in dedicated mode."""
    memory = nodes * machine.memory
    cap = machine.platform.cap(nodes)
    read, written = job_class.input * memory, job_class.output * memory
    checkpoint = job_class.checkpoint * memory
    rest = duration - (read + written) / cap
    count = 0
    if checkpoint > 0:
        cycle = job_class.period_s + checkpoint / cap
        count = int(rest // cycle)
        rest -= count * cycle
    return _Cycles(read, job_class.period_s, checkpoint, count, rest, written)


def job_phases(
    job_class: JobClass, nodes: int, duration: float, machine: Machine
) -> tuple[Column, Column]:
    """Return works (s) and volumes (bytes) of a job.

    Together they take `duration` seconds in dedicated mode.
    """
    return _cycles(job_class, nodes, duration, machine).phases()


def phases_around(
    job_class: JobClass,
    nodes: int,
    duration: float,
    machine: Machine,
    span: tuple[float, float],
) -> tuple[Column, Column]:
    """Return the phases left when a window begins, as far as the window needs them.

    The `span` of the window is given in the time of the job in dedicated mode (s). No
    run is faster than dedicated mode, so the checkpoints that begin more than a period
    after the window are left out. `phases_left` of `job_phases` gives the same inside
    the window, but has to go through all checkpoints of the job.
    """
    begin, end = span
    cap = machine.platform.cap(nodes)
    cycles = _cycles(job_class, nodes, duration, machine)
    cycle = cycles.period_s + cycles.checkpoint / cap
    passed = int((begin - cycles.read / cap) // cycle)
    before = min(max(passed, 0), cycles.times)
    needed = math.ceil((end - begin) / cycle) + 2
    kept = min(cycles.times - before, needed)
    shorter = cycles._replace(times=kept)
    return phases_left(*shorter.phases(), cap, begin - before * cycle)


def phases_left(
    work: Column, volume: Column, cap: float, elapsed: float
) -> tuple[Column, Column]:
    """Return the phases that remain after `elapsed` seconds in dedicated mode."""
    lengths = np.empty(2 * len(volume) + 1)
    lengths[0::2] = work
    lengths[1::2] = volume / cap
    ends = np.cumsum(lengths)
    phase = int(np.searchsorted(ends, elapsed, side="right"))
    done = elapsed - (float(ends[phase - 1]) if phase else 0.0)
    number, in_operation = divmod(phase, 2)
    work, volume = work[number:].copy(), volume[number:].copy()
    if in_operation:
        work[0] = 0.0
        volume[0] = max(volume[0] - done * cap, 0.0)
    else:
        work[0] = max(work[0] - done, 0.0)
    return work, volume


def may_do_io(
    classes: Sequence[JobClass],
    job_class: NDArray[np.int64],
    seconds: Column,
    duration: Column,
    span: tuple[Column, Column],
) -> NDArray[np.bool_]:
    """Return which jobs have I/O in the `span` of their time in dedicated mode.

    In `seconds` a job can transfer as much as its memory holds.
    It is a cheap filter before `is_busy`: rounding may add or miss an operation with
    far less than 1 s in the span.
    """
    read, written, checkpoint, period = (
        np.array([getattr(c, name) for c in classes])[job_class]
        for name in ("input", "output", "checkpoint", "period_s")
    )
    first, last = span
    input_end, output_begin = read * seconds, duration - written * seconds
    cycle = period + checkpoint * seconds
    count = np.where(checkpoint > 0, (output_begin - input_end) // cycle, 0.0)
    # Ends of checkpoints passed by the begin of the span, and begins by its end.
    ended = np.clip((first - input_end) // cycle, 0.0, count)
    begun = np.clip((last - input_end - period) // cycle + 1.0, 0.0, count)
    result: NDArray[np.bool_] = (
        (first < input_end) | (last > output_begin) | (begun > ended)
    )
    return result


def carry_short(work: Column, volume: Column, cap: float) -> tuple[Column, Column]:
    """Return the phases with every operation under 1 s carried to the next one."""
    if not np.any(volume[:-1] < SHORTEST_S * cap):
        return work, volume
    carried_work, carried_volume = [0.0], [0.0]
    for number, (w, v) in enumerate(zip(work[:-1], volume, strict=True)):
        carried_work[-1] += w
        carried_volume[-1] += v
        if carried_volume[-1] >= SHORTEST_S * cap and number < len(volume) - 1:
            carried_work.append(0.0)
            carried_volume.append(0.0)
    return np.array([*carried_work, work[-1]]), np.array(carried_volume)


def is_busy(work: Column, volume: Column, cap: float, length: float) -> bool:
    """Return True if an operation spends 1 s in the first `length` seconds.

    The phases run in dedicated mode.
    """
    lengths = np.empty(2 * len(volume))
    lengths[0::2] = work[:-1]
    lengths[1::2] = volume / cap
    times = np.minimum(np.cumsum(lengths), length)
    return bool(np.any(times[1::2] - times[0::2] >= SHORTEST_S))
