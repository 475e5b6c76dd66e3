# SPDX-License-Identifier: MIT
"""Write the windows of all schedulers as JSON and as a plot.

The plot has one column per scheduler, with the rates (Figure 3 of two-level
scheduling), the 95th percentiles of the response times (Figure 5) and the depth
(Figure 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penstock.bench.slo.windows import ClientWindow

__all__ = ["SchedulerRun", "save"]

_COLOURS: Final = ("#0072b2", "#d55e00")
_OVERLOAD_COLOUR: Final = "#eeeeee"
#: An infinite depth is drawn as this value, as in the paper.
_INFINITE: Final = 100.0


@dataclass(frozen=True)
class SchedulerRun:
    """The windows of one scheduler."""

    windows: Sequence[ClientWindow]
    depths: Sequence[float | None]
    """Depth in each window; None: no maximum."""


def save(
    folder: Path,
    runs: Mapping[str, SchedulerRun],
    window_s: float,
    request_bytes: int,
    bounds: Mapping[str, float],
    provenance: Mapping[str, Any],
) -> None:
    """Write ``slo.json`` and ``slo.svg``."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "penstock": 1,
        "provenance": dict(provenance),
        "window_s": window_s,
        "request_bytes": request_bytes,
        "bounds_s": dict(bounds),
        "runs": {name: _document(run) for name, run in runs.items()},
    }
    data = msgspec.json.format(msgspec.json.encode(document), indent=1)
    (folder / "slo.json").write_bytes(data + b"\n")
    _plot(runs, window_s, request_bytes, bounds).savefig(folder / "slo.svg")


def _document(run: SchedulerRun) -> dict[str, Any]:
    return {"windows": [asdict(w) for w in run.windows], "depths": list(run.depths)}


def _plot(
    runs: Mapping[str, SchedulerRun],
    window_s: float,
    request_bytes: int,
    bounds: Mapping[str, float],
) -> Figure:
    figure = Figure(figsize=(3.2 * len(runs), 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(3, len(runs), sharex=True, sharey="row", squeeze=False)
    for column, (name, run) in enumerate(runs.items()):
        rates, times, depths = axes[:, column]
        rates.set_title(name)
        _shade(rates, run, window_s)
        _shade(times, run, window_s)
        for colour, group in zip(_COLOURS, bounds, strict=False):
            _draw_group(rates, times, run, group, colour, request_bytes / window_s)
            times.axhline(
                bounds[group] * 1e3, color=colour, linewidth=0.7, linestyle=":"
            )
        times.set_yscale("log")
        _draw_depths(depths, run, window_s)
    for axis, text in zip(
        axes[:, 0], ("answered, MB/s", "p95, ms", "depth"), strict=True
    ):
        axis.set_ylabel(text)
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure


def _draw_group(
    rates: Axes, times: Axes, run: SchedulerRun, group: str, colour: str, per_s: float
) -> None:
    begins = [w.begin for w in run.windows]
    answered = [w.groups[group].answered * per_s / 1e6 for w in run.windows]
    rates.step(begins, answered, where="post", color=colour, label=group)
    measured = [(w.begin, w.groups[group].p95_s) for w in run.windows]
    points = [(begin, p95 * 1e3) for begin, p95 in measured if p95 is not None]
    times.plot(*zip(*points, strict=True), ".", color=colour)


def _draw_depths(axis: Axes, run: SchedulerRun, window_s: float) -> None:
    depths = [_INFINITE if d is None else min(d, _INFINITE) for d in run.depths]
    begins = [number * window_s for number in range(len(depths))]
    axis.step(begins, depths, where="post", color="black")
    axis.set_xlabel("time, s")
    axis.set_yscale("log")


def _shade(axis: Axes, run: SchedulerRun, window_s: float) -> None:
    """Shade the windows in which the mount was overloaded."""
    for window in run.windows:
        if window.overloaded:
            axis.axvspan(window.begin, window.begin + window_s, color=_OVERLOAD_COLOUR)
