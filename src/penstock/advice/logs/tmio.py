# SPDX-License-Identifier: MIT
"""TMIO traces, as FTIO reads them: JSON lines, one job per file.

Each line is an object whose keys name a kind of I/O (``read_sync``, ``write_sync``,
``read_async_t``, ``write_async_t``); the value has, under ``bandwidth``, the lists
``b_ind`` (bytes/s), ``t_ind_s`` and ``t_ind_e`` (s since the program began): one entry
per I/O phase of a process. TMIO appends lines while the program runs.

Keys that end in ``_async_b`` are the bandwidth that asynchronous I/O would need; they
are no I/O of their own. A trace has no wall-clock time and no names of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from penstock.advice.logs.bursts import interval_record
from penstock.advice.logs.record import (
    LoggedJob,
    Skipped,
    plain_name,
    skipped_line,
)

__all__ = ["KINDS", "read_tmio"]

#: Keys of a line that hold transfers.
KINDS: Final = ("read_sync", "write_sync", "read_async_t", "write_async_t")


def read_tmio(path: Path, gap_s: float) -> Iterator[LoggedJob | Skipped]:
    """Yield the job of a trace."""
    rows: list[tuple[float, float, int]] = []
    ranks = 1
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                found, processes = _line(msgspec.json.decode(line))
            except (
                msgspec.DecodeError,
                AttributeError,
                TypeError,
                ValueError,
            ) as error:
                yield skipped_line(path, number, f"not a line of TMIO: {error}")
                continue
            rows += found
            ranks = max(ranks, processes)
    if not rows:
        yield Skipped(source=str(path), reason="the job has no I/O")
        return
    # The program began at 0, before its first transfer.
    record = interval_record(str(path), [(0.0, 0.0, 0), *rows], gap_s)
    if isinstance(record, LoggedJob):
        note = "the trace does not name its nodes: one node per process is assumed"
        record = msgspec.structs.replace(
            record,
            name=plain_name([path.name.split(".")[0]]),
            clock=str(path),
            nodes=ranks,
            knows_nodes=ranks == 1,
            notes=(note,) if ranks > 1 else (),
        )
    yield record


def _line(document: dict[str, Any]) -> tuple[list[tuple[float, float, int]], int]:
    """Return the transfers of a line, and the number of processes."""
    rows: list[tuple[float, float, int]] = []
    ranks = 1
    for kind in KINDS:
        part = document.get(kind) or {}
        ranks = max(ranks, int(part.get("number_of_ranks") or 1))
        rows += _transfers(part.get("bandwidth") or {})
    return rows, ranks


def _transfers(bandwidth: dict[str, Any]) -> Iterator[tuple[float, float, int]]:
    columns = (bandwidth.get(key) or () for key in ("t_ind_s", "t_ind_e", "b_ind"))
    for begin, end, rate in zip(*columns, strict=True):
        yield float(begin), float(end), round(float(rate) * (float(end) - float(begin)))
