# SPDX-License-Identifier: MIT
"""What happened to a past job as lines of text: one line for every job."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock.advice.job_report.rates import (
    bands_of,
    length_of,
    recorded_shares,
    shared_bandwidth,
)
from penstock.advice.job_report.simulation import runs_of_report
from penstock.live.wire.messages import JobReport, RunWithOperations
from penstock.units import format_bandwidth, format_time

__all__ = ["text_drawing"]

_COLUMNS: Final = 64
#: A job that moves at less than this part of the bandwidth is shown as waiting.
_WAITS: Final = 0.02
_HALF: Final = 0.5


def text_drawing(report: JobReport) -> list[str]:
    """Return what happened as lines of text, one for every job."""
    bandwidth = shared_bandwidth(runs_of_report(report))
    length_s = length_of(report)
    edges = np.linspace(0.0, length_s, _COLUMNS + 1)
    shares = recorded_shares(report, edges, bandwidth)
    runs = runs_of_report(report)
    bands = bands_of(report)
    width = max(len(band.name) for band in bands)
    lines = []
    for band in bands:
        share = shares[band.places].sum(axis=0)
        busy = np.any([_busy(runs[place], report, edges) for place in band.places], 0)
        signs = [_sign(*cell) for cell in zip(share, busy, strict=True)]
        lines.append(f"{band.name:{width}}  |{''.join(signs)}|")
    return [
        *lines,
        f"One sign is {format_time(length_s / _COLUMNS)}: # moves at more than half of "
        f"{format_bandwidth(bandwidth)}, + at less, . waits.",
    ]


def _sign(share: float, is_busy: bool) -> str:  # noqa: FBT001 - a cell of a row
    if share > _HALF:
        return "#"
    if share > _WAITS:
        return "+"
    return "." if is_busy else " "


def _busy(
    run: RunWithOperations, report: JobReport, edges: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return for every interval whether the job had an operation in it."""
    busy = np.zeros(len(edges) - 1, dtype=bool)
    instants = edges + report.job.joined_s
    for operation in run.operations:
        first = np.searchsorted(instants, operation.begin_s, side="right") - 1
        last = np.searchsorted(instants, operation.end_s, side="left")
        busy[max(first, 0) : max(last, 0)] = True
    return busy
