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
"""

from __future__ import annotations

import numpy as np

from penstock.model import Column
from penstock.workloads.apex.table import JobClass, Machine

__all__ = ["job_phases", "phases_left"]


def job_phases(
    kind: JobClass, nodes: int, duration: float, host: Machine
) -> tuple[Column, Column]:
    """Return works (s) and volumes (bytes) of a job.

    Together they take `duration` seconds in dedicated mode.
    """
    memory = nodes * host.memory
    cap = host.platform.cap(nodes)
    read, written = kind.input * memory, kind.output * memory
    checkpoint = kind.checkpoint * memory
    rest = duration - (read + written) / cap
    count = 0
    if checkpoint > 0:
        cycle = kind.period + checkpoint / cap
        count = int(rest // cycle)
        rest -= count * cycle
    work = [*([0.0] if read > 0 else []), *[kind.period] * count, rest, 0.0]
    volume = [*([read] if read > 0 else []), *[checkpoint] * count, written]
    return np.array(work), np.array(volume)


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
