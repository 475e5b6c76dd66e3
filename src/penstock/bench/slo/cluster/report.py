# SPDX-License-Identifier: MIT
"""Write the scenes as JSON, as a table and as a plot, live beside simulated.

The plot shows the experiment of two-level scheduling over time (rates and 95th
percentiles per window), and below it, by scene, the share of the first application and
the 95th percentiles of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogFormatter

from penstock.bench import Measurement
from penstock.bench.slo.cluster.results import SceneResult, SceneRun
from penstock.bench.slo.cluster.scenes import WINDOW_S
from penstock.files import replacing

__all__ = ["goal_table", "save", "table"]

#: First and second application of a scene.
_COLOURS: Final = ("#0072b2", "#d55e00")
_OVERLOAD_COLOUR: Final = "#eeeeee"
_ROW_INCHES: Final = 0.28
_HEADER: Final = (
    "| scene | application | promised | live | simulated | p95 live | p95 simulated |"
)
_GOAL_HEADER: Final = "| measured | value | goal | outcome |"


def save(
    folder: Path,
    results: Sequence[SceneResult],
    measurements: Sequence[Measurement],
    provenance: Mapping[str, Any],
) -> None:
    """Write ``slo-cluster.json``, ``slo-cluster.md`` and ``slo-cluster.svg``."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "penstock": 1,
        "provenance": dict(provenance),
        "window_s": WINDOW_S,
        "scenes": [_document(result) for result in results],
    }
    data = msgspec.json.format(msgspec.json.encode(document), indent=1)
    with replacing(folder / "slo-cluster.json") as stream:
        stream.write(data + b"\n")
    with replacing(folder / "slo-cluster.md") as stream:
        stream.write(f"{table(results)}\n{goal_table(measurements)}".encode())
    with replacing(folder / "slo-cluster.svg") as stream:
        _plot(results).savefig(stream, format="svg")


def _document(result: SceneResult) -> dict[str, Any]:
    scene = result.scene
    return {
        "name": scene.name,
        "setting": scene.setting,
        "capacity_bytes_per_s": result.capacity_bytes_per_s,
        "measured_s": scene.end_s - scene.warm_s,
        "promises": {
            name: {
                "bytes_per_s": result.promised(name),
                "latency_s": promise.latency_s,
            }
            for name, promise in scene.promises.items()
        },
        "groups": [
            {
                "application": group.application,
                "node": group.node,
                "processes": group.processes,
                "kind": group.kind,
                "size_bytes": group.size_bytes,
            }
            for group in scene.groups
        ],
        "live": asdict(result.live),
        "simulated": asdict(result.simulated),
    }


def table(results: Sequence[SceneResult]) -> str:
    """Return all scenes as a table (Markdown); MB/s and ms."""
    lines = [_HEADER, "|---" * (_HEADER.count("|") - 1) + "|"]
    for result in results:
        for name in result.scene.promises:
            live = result.live.applications[name]
            simulated = result.simulated.applications[name]
            rates = (result.promised(name), live.bytes_per_s, simulated.bytes_per_s)
            cells = [
                *(result.scene.name, name),
                *(f"{rate / 1e6:.2f}" for rate in rates),
                *map(_milliseconds, (live.p95_s, simulated.p95_s)),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def goal_table(measurements: Sequence[Measurement]) -> str:
    """Return all measurements with a goal as a table (Markdown), and how many miss.

    Return an empty text if none has a goal.
    """
    aimed = [measurement for measurement in measurements if measurement.has_goal]
    if not aimed:
        return ""
    missed = sum(not measurement.is_reached for measurement in aimed)
    lines = [_GOAL_HEADER, "|---" * (_GOAL_HEADER.count("|") - 1) + "|"]
    for measurement in aimed:
        value = f"{measurement.value:.4g} {measurement.unit}".strip()
        outcome = "reached" if measurement.is_reached else "missed"
        lines.append(
            f"| {measurement.name} | {value} | {measurement.goal} | {outcome} |"
        )
    lines += ["", f"{len(aimed) - missed} of {len(aimed)} goals are reached."]
    return "\n".join(lines) + "\n"


def _milliseconds(time_s: float | None) -> str:
    return "-" if time_s is None else f"{1e3 * time_s:.0f}"


def _plot(results: Sequence[SceneResult]) -> Figure:
    rows_inches = 1.4 + _ROW_INCHES * len(results)
    figure = Figure(figsize=(11, 4.6 + rows_inches), layout="constrained")
    FigureCanvasAgg(figure)
    parts = figure.subfigures(2, 1, squeeze=False, height_ratios=(4.6, rows_inches))
    over_time, by_scene = parts.flat
    rates, times = over_time.subplots(2, 1, sharex=True)
    _draw_experiment(rates, times, results[0])
    shares, p95s = by_scene.subplots(1, 2, sharey=True)
    for row, result in enumerate(results):
        _draw_scene(shares, p95s, row, result)
    shares.set_yticks(range(len(results)), [result.scene.name for result in results])
    shares.set_ylim(len(results) - 0.5, -0.5)
    shares.set_xlim(0.0, 1.0)
    shares.set_xlabel("share of the first application")
    p95s.set_xscale("log")
    _label_plainly(p95s.xaxis)
    p95s.set_xlabel("p95, ms")
    by_scene.legend(
        handles=_legend(), loc="outside upper center", ncols=5, frameon=False
    )
    for panel in (shares, p95s):
        panel.grid(axis="y", color=_OVERLOAD_COLOUR)
    return figure


def _label_plainly(axis: Axis) -> None:
    """Label a logarithmic axis with 100, not with 10 to the power of 2."""
    axis.set_major_formatter(LogFormatter())
    axis.set_minor_formatter(LogFormatter())


def _legend() -> list[Line2D]:
    def mark(marker: str, colour: str, label: str, fill: str = "full") -> Line2D:
        return Line2D(
            *([], []),
            linestyle="",
            marker=marker,
            color=colour,
            fillstyle=fill,  # type: ignore[arg-type]
            label=label,
        )

    return [
        mark("|", "black", "agreed, or bound"),
        mark("o", "black", "live"),
        mark("o", "black", "simulated", "none"),
        mark("s", _COLOURS[0], "first application"),
        mark("s", _COLOURS[1], "second application"),
    ]


def _draw_scene(shares: Axes, p95s: Axes, row: int, result: SceneResult) -> None:
    """Draw a scene in one row: agreed, live and simulated."""
    first, *_ = result.scene.promises
    if result.scene.is_saturated:
        agreed = result.agreed_share(first)
        shares.plot(agreed, row, "|", color="black", markersize=14)
        shares.plot(result.simulated.share(first), row, "o", **_open(_COLOURS[0]))
        shares.plot(result.live.share(first), row, "o", color=_COLOURS[0], markersize=5)
    for colour, (name, promise) in zip(
        _COLOURS, result.scene.promises.items(), strict=True
    ):
        if not result.scene.is_saturated:
            p95s.plot(1e3 * promise.latency_s, row, "|", color=colour, markersize=14)
        for run, style in (
            (result.simulated, _open(colour)),
            (result.live, {"color": colour, "markersize": 5}),
        ):
            p95_s = run.applications[name].p95_s
            if p95_s is not None:
                p95s.plot(1e3 * p95_s, row, "o", **style)


def _open(colour: str) -> dict[str, Any]:
    """Return the style of an open circle."""
    return {"color": colour, "fillstyle": "none", "markersize": 9}


def _draw_experiment(rates: Axes, times: Axes, result: SceneResult) -> None:
    """Draw the windows of a scene over time."""
    for window in result.live.windows:
        if window.overloaded:
            for panel in (rates, times):
                end = window.begin + WINDOW_S
                panel.axvspan(window.begin, end, color=_OVERLOAD_COLOUR)
    sizes = {group.application: group.size_bytes for group in result.scene.groups}
    for colour, (name, promise) in zip(
        _COLOURS, result.scene.promises.items(), strict=True
    ):
        per_s = sizes[name] / WINDOW_S / 1e6
        for run, label, line in (
            (result.live, name, "-"),
            (result.simulated, f"{name}, simulated", "--"),
        ):
            answered = [window.groups[name].answered * per_s for window in run.windows]
            rates.stairs(
                answered, _edges(run), color=colour, linestyle=line, label=label
            )
        times.plot(*_p95s(result.live, name), "o", color=colour, markersize=4)
        times.plot(*_p95s(result.simulated, name), "o", **_open(colour))
        bound_ms = 1e3 * promise.latency_s
        times.axhline(bound_ms, color=colour, linewidth=0.7, linestyle=":")
    rates.set_title(f"{result.scene.name} (grey: overloaded)", fontsize="medium")
    rates.set_ylabel("answered, MB/s")
    # Room above the highest line, so that the legend hides nothing.
    rates.set_ylim(0.0, 1.25 * rates.get_ylim()[1])
    rates.legend(frameon=False, fontsize="small", ncols=4, loc="upper left")
    times.set_yscale("log")
    _label_plainly(times.yaxis)
    times.set_ylabel("p95, ms")
    times.set_xlabel("time, s")


def _edges(run: SceneRun) -> list[float]:
    """Return the begins of all windows, and the end of the last (s)."""
    return [number * WINDOW_S for number in range(len(run.windows) + 1)]


def _p95s(run: SceneRun, name: str) -> tuple[list[float], list[float]]:
    """Return the middles of the windows with answers, and their 95th percentiles."""
    measured = [
        (window.begin + WINDOW_S / 2, 1e3 * p95_s)
        for window in run.windows
        if (p95_s := window.groups[name].p95_s) is not None
    ]
    return [time for time, _ in measured], [p95 for _, p95 in measured]
