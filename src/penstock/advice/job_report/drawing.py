# SPDX-License-Identifier: MIT
"""What happened to a past job, drawn beside what another policy would have given.

Three panels: the job with its operations, grants and rates; what it and the jobs that
cost it time moved; and the same in a simulation under another policy.

Times are in seconds since the job joined, rates in bytes per second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from penstock.advice.job_report.rates import (
    OTHERS,
    Band,
    bands_of,
    grant_steps,
    length_of,
    moved_between,
    recorded_shares,
    shared_bandwidth,
)
from penstock.advice.job_report.simulation import runs_of_report
from penstock.analysis.shares import shares_between
from penstock.experiments.output.plots import STACK_COLOURS, legend_name
from penstock.live.wire.messages import JobReport, RunWithOperations
from penstock.sim import Run
from penstock.units import format_instant, format_time

__all__ = ["drawing"]

_Floats = NDArray[np.float64]
_COLUMNS: Final = 800
#: Units of the axes of rates: the largest that is not above the bandwidth.
_UNITS: Final = (
    *((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")),
)


def drawing(report: JobReport, simulated: Run | None) -> Figure:
    """Draw the job, what all jobs moved, and the same under another policy.

    `simulated` is a recorded run of `instance_of_report` under the other policy; None:
    without. If the reader sees no other job, what all jobs moved is not drawn.
    """
    bandwidth = shared_bandwidth(runs_of_report(report))
    rows = 1 + bool(report.others) + (simulated is not None)
    figure = Figure(figsize=(12, 2.1 * rows + 0.8), layout="constrained")
    panels = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0].tolist()
    bands = bands_of(report)
    end_s = length_of(report)
    if simulated is not None:
        shift_s = _shift_s(report)
        end_s = max(end_s, float(simulated.ended[0]) - shift_s)
        edges = np.linspace(0.0, end_s, _COLUMNS + 1)
        reached = float(simulated.yields[0])
        title = f"simulated under {simulated.policy}: yield {reached:.3f}"
        shares = shares_between(simulated, edges + shift_s)
        _draw_bands(panels.pop(), title, bands, edges, shares)
    edges = np.linspace(0.0, end_s, _COLUMNS + 1)
    if report.others:
        reached = report.job.progress_yield
        under = ", ".join(report.job.policy_names)
        title = f"what happened, under {under}: yield {reached:.3f}"
        shares = recorded_shares(report, edges, bandwidth)
        _draw_bands(panels.pop(), title, bands, edges, shares)
    _draw_job(panels.pop(), report, edges, bandwidth)
    figure.axes[-1].set_xlabel(
        f"time since {format_instant(report.job.joined_s)}, when {_name(report)} "
        "joined (s)"
    )
    figure.axes[-1].set_xlim(0.0, end_s)
    return figure


def _name(report: JobReport) -> str:
    return legend_name(report.job.job_name)


def _shift_s(report: JobReport) -> float:
    """Return when the job joined on the clock of the instance (s)."""
    first_s = min(run.job.joined_s for run in runs_of_report(report))
    return report.job.joined_s - first_s


def _draw_job(panel: Any, report: JobReport, edges: _Floats, bandwidth: float) -> None:
    """Draw the operations of the job, its grants, and the rate at which it moved."""
    size, unit = next(
        ((size, unit) for size, unit in _UNITS if bandwidth >= size), _UNITS[-1]
    )
    own = RunWithOperations(report.job, report.operations)
    rates = moved_between(own, edges + report.job.joined_s) / np.diff(edges) / size
    panel.stairs(rates, edges, fill=True, color=STACK_COLOURS[0], label="moved")
    joined_s = report.job.joined_s
    times, grants = [], []
    for operation in report.operations:
        panel.axvspan(
            *(operation.begin_s - joined_s, operation.end_s - joined_s),
            color="#f4d9d0" if operation.lost_s > 0.0 else "#eeeeee",
            zorder=0,
            lw=0,
        )
        now_s = operation.begin_s - joined_s
        for length_s, grant in grant_steps(operation):
            shown = min(grant, bandwidth) / size
            times += [now_s, now_s + length_s]
            grants += [shown, shown]
            now_s += length_s
        times.append(now_s)
        grants.append(np.nan)
    panel.plot(times, grants, color="#222222", lw=1.2, label="granted")
    panel.fill_between([], [], color="#f4d9d0", label="operation that lost time")
    panel.fill_between([], [], color="#eeeeee", label="operation")
    panel.set_ylim(0.0, 1.05 * bandwidth / size)
    panel.set_ylabel(unit)
    panel.set_title(
        f"{_name(report)}: lost {format_time(report.job.lost_s)}",
        loc="left",
        fontsize=10,
    )
    panel.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, frameon=False)


def _draw_bands(
    panel: Any, title: str, bands: Sequence[Band], edges: _Floats, shares: _Floats
) -> None:
    """Draw the shares of the bands, one above the other."""
    heights = np.array([shares[band.places].sum(axis=0) for band in bands])
    ends = np.column_stack((heights, heights[:, -1]))
    colours: list[Any] = [*STACK_COLOURS[: len(bands)]]
    if bands[-1].name == OTHERS:
        colours[-1] = "#bbbbbb"
    areas = panel.stackplot(edges, ends, colors=colours, step="post")
    panel.set_ylim(0.0, 1.0)
    panel.set_ylabel("share of bandwidth")
    panel.set_title(title, loc="left", fontsize=10)
    panel.legend(
        areas,
        [legend_name(band.name) for band in bands],
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        fontsize=8,
        frameon=False,
    )
