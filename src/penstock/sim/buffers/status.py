# SPDX-License-Identifier: MIT
"""What a staging strategy is shown of a simulated application.

Times in seconds, volumes in bytes.
"""

from __future__ import annotations

from math import inf

from penstock.sim.buffers.state import PhaseTable, WriterState
from penstock.staging import ApplicationStatus

__all__ = ["status_of"]


def status_of(
    app: WriterState,
    table: PhaseTable,
    now: float,
    *,
    targets: tuple[int, ...],
    is_full: bool,
    alone: float,
) -> ApplicationStatus:
    """Return the status of an application.

    Parameters
    ----------
    table
        The I/O phases of the application.
    targets
        Targets of the last order that it was given.
    is_full
        True if a request waits for room in its buffer.
    alone
        What it draws alone on all targets (bytes/s).
    """
    writer, first = app.writer, app.groups[0]
    phase = table.at(first.position)
    is_first = writer.open_phase is not None and not app.phases
    before = writer.open_phase.written_bytes if writer.open_phase and is_first else 0.0
    under_way = _under_way(app, now)
    written = app.written
    if under_way and first.write:
        written += first.write.volume - under_way
    open_targets = first.targets if writer.keeps_targets else ()
    return ApplicationStatus(
        writer.name,
        phase_began_s=app.phase_began,
        phase_bytes=before + phase.volume,
        processes=writer.processes,
        nodes=writer.nodes,
        targets=targets,
        priority=writer.priority,
        staged_bytes=app.staged(now),
        is_blocked=app.syncing > 0 or is_full,
        turn_began_s=app.turn_began,
        turn_ended_s=app.turn_ended,
        mean_request_bytes=phase.request,
        mean_pause_s=phase.pause,
        dedicated_bytes_per_s=alone,
        written_bytes=written,
        under_way_bytes=under_way,
        open_targets=open_targets or (first.write_targets if under_way else ()),
        redirects=writer.redirects,
        merges=writer.merges,
        next_phase_s=_next_phase_s(app, table),
        work_s=table.work_after_phase(first.position),
    )


def _under_way(app: WriterState, now: float) -> float:
    """Return what is left of a request that goes to the storage (bytes).

    With many groups of processes requests are small: they count as not begun.
    """
    write = app.groups[0].write
    if write is None or write.staged or len(app.groups) > 1:
        return 0.0
    return write.remaining(now)


def _next_phase_s(app: WriterState, table: PhaseTable) -> float:
    """Return when the next I/O phase begins, as the steps say (s)."""
    first = app.groups[0]
    if first.in_phase or not (app.phases or app.writer.foreseen):
        return inf
    return first.work_ends_s + table.work_before_write(first.position)
