# SPDX-License-Identifier: MIT
"""Write delta-graphs as JSON and as a plot: live (dots) and simulated (lines)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, Final

import msgspec
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.sim.buffers.delta import DeltaPoint

__all__ = ["Graph", "as_ordered", "save"]

#: Live points and simulated points.
Graph = tuple[Sequence[DeltaPoint], Sequence[DeltaPoint]]

_COLOURS: Final = ("#0072b2", "#d55e00")
#: The second line is dashed, so that both are visible where they coincide.
_LINES: Final = ("-", "--")
_COLUMNS: Final = 4


def save(folder: Path, graphs: Mapping[str, Graph], facts: Mapping[str, Any]) -> None:
    """Write ``delta.json`` and ``delta.svg``."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "penstock": 1,
        **facts,
        "graphs": {
            name: {
                "live": [_record(point) for point in live],
                "simulated": [_record(point) for point in simulated],
            }
            for name, (live, simulated) in graphs.items()
        },
    }
    data = msgspec.json.format(msgspec.json.encode(document), indent=1)
    (folder / "delta.json").write_bytes(data + b"\n")
    _plot(graphs).savefig(folder / "delta.svg")


def _record(point: DeltaPoint) -> dict[str, Any]:
    """Return a point under the keys of ``delta.json``; times in s."""
    return {
        "offset": point.offset_s,
        "factors": point.factors,
        "io_times": point.io_times_s,
        "alone": point.alone_s,
        "total": point.total_s,
    }


def _plot(graphs: Mapping[str, Graph]) -> Figure:
    rows = ceil(len(graphs) / _COLUMNS)
    figure = Figure(figsize=(12, 2.8 * rows), layout="constrained")
    panels = figure.subplots(rows, _COLUMNS, sharex=True, sharey=True, squeeze=False)
    for panel, (name, graph) in zip(panels.flat, graphs.items(), strict=False):
        _plot_panel(panel, *graph)
        panel.set_title(name)
    for panel in list(panels.flat)[len(graphs) :]:
        panel.set_visible(False)
    for panel in panels[:, 0]:
        panel.set_ylabel("interference factor")
    # Without a margin the lines at 1 would lie on the edge.
    panels[0, 0].margins(y=0.1)
    panels[0, 0].legend(fontsize="small")
    figure.supxlabel("D: B starts after A (s)")
    return figure


def _plot_panel(
    panel: Axes, live: Sequence[DeltaPoint], simulated: Sequence[DeltaPoint]
) -> None:
    for number, colour in enumerate(_COLOURS):
        name = "AB"[number]
        panel.plot(
            [point.offset_s for point in simulated],
            [point.factors[number] for point in simulated],
            _LINES[number],
            color=colour,
            label=f"{name}, simulated",
        )
        panel.plot(
            [point.offset_s for point in live],
            [
                as_ordered(real, ideal)[number]
                for real, ideal in zip(live, simulated, strict=True)
            ],
            "o",
            color=colour,
            label=f"{name}, real",
        )
    panel.grid(color="#dddddd")


def as_ordered(real: DeltaPoint, ideal: DeltaPoint) -> Sequence[float]:
    """Return the live factors in the order of the simulated ones.

    If both groups start together (D = 0), either may be the favoured one.
    """
    if real.offset_s:
        return real.factors
    first, second = ideal.factors
    return sorted(real.factors, reverse=first > second)
