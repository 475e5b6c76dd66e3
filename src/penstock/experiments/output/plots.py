# SPDX-License-Identifier: MIT
"""Figures: one colour per policy everywhere; same data, same bytes."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from penstock.analysis.shares import share_edges, shares_between
from penstock.errors import InputError
from penstock.experiments.study import Row
from penstock.files import replacing
from penstock.model import Sharing
from penstock.model.application import shortened
from penstock.registry import name_in_label
from penstock.sim import Run

__all__ = [
    "STACK_COLOURS",
    "ShownFigure",
    "colour_of",
    "comparison_chart",
    "legend_name",
    "save_figure",
    "svg_text",
    "timeline",
]

# Paul Tol's "muted" scheme and Okabe and Ito's black: the colour-blind can
# distinguish them. A policy that is not listed takes the next free colour.
_COLOURS: Final = {
    "fair-share": "#332288",
    "fcfs": "#CC6677",
    "greedy-yield": "#117733",
    "greedy-com": "#DDCC77",
    "look-ahead-greedy-yield": "#88CCEE",
    "periodic-greedy-yield": "#44AA99",
    "set-10": "#882255",
    "best-next-event": "#AA4499",
    "exclusive-fcfs": "#E69F00",
    "set-fair-share": "#999933",
    "share-priority": "#661100",
    "soft-deadline": "#D55E00",
    "earliest-deadline": "#0072B2",
    "short-over-loss": "#777777",
}
_OTHER_COLOURS: Final = ("#009E73", "#56B4E9", "#F0E442")
_BOUND_COLOUR: Final = "#444444"

#: The x axis of a comparison begins at 1 - this x (1 - median MinYield) at the lowest,
#: so that one policy that is far behind does not squeeze all others into a corner.
_LOSS_SHOWN: Final = 3.0
#: Space before the lowest value and after 1, as parts of the x axis.
_MARGIN: Final = 0.03

#: With more applications than this, a timeline shows one row for each.
_MOST_STACKED: Final = 12
#: With more applications than this, not every row of a timeline is named.
_MOST_NAMED: Final = 60
_TIMELINE_COLUMNS: Final = 1200
#: Colours of stacked applications: ten hues, then two pale ones far from their hue.
STACK_COLOURS: Final = (
    *(mpl.colormaps["tab10"](n) for n in range(10)),
    *(mpl.colormaps["tab20"](n) for n in (3, 9)),
)


class ShownFigure(Figure):
    """A figure that a notebook shows, without any set-up."""

    def _repr_svg_(self) -> str:
        return svg_text(self)


def colour_of(policy: str) -> str:
    """Return the colour of the policy with this label."""
    name = name_in_label(policy)
    if policy in _COLOURS:
        return _COLOURS[policy]
    number = sum(policy.encode()) % len(_OTHER_COLOURS)
    return _OTHER_COLOURS[number] if name == policy else _COLOURS.get(name, "#000000")


def comparison_chart(rows: Sequence[Row]) -> Figure:
    """Draw the rows of a comparison: MinYield and Efficiency of every policy.

    One line per policy, the highest mean MinYield on top. A filled dot is the mean
    MinYield, the pale bar behind it reaches from the 10th to the 90th percentile of
    the instances; an open dot is the mean Efficiency. The dashed line is the mean bound
    on MinYield. An arrow at the left edge marks a MinYield that lies outside.
    """
    policies = _by_min_yield(rows)
    # Facts of the instances are the same for all policies: take those of the first.
    instances = [row for row in rows if row["policy"] == policies[0]]
    figure = ShownFigure(figsize=(9, 0.33 * len(policies) + 1.7), layout="constrained")
    panel = figure.subplots()
    low = _lowest_shown(rows, policies)
    for line, name in enumerate(policies):
        _draw_policy(panel, line, rows, name, low)
    bounds = [row["bound"].min_yield for row in instances if row["bound"]]
    if bounds:
        _draw_bound(panel, float(np.mean(bounds)))
    _draw_axes(panel, policies, low)
    _draw_legend(figure, panel, spread=len(instances) > 1)
    pressure = np.mean([row["pressure"] for row in instances])
    many = f"mean of {len(instances)} instances" if len(instances) > 1 else "1 instance"
    figure.suptitle(f"{many}, I/O pressure {pressure:.2f}", fontsize=11)
    return figure


def _by_min_yield(rows: Sequence[Row]) -> list[str]:
    """Return the names of the policies, the highest mean MinYield first."""
    names = list(dict.fromkeys(row["policy"] for row in rows))
    return sorted(names, key=lambda name: -np.mean(_values(rows, name, "min_yield")))


def _values(rows: Sequence[Row], policy: str, objective: str) -> list[float]:
    return [row[objective] for row in rows if row["policy"] == policy]


def _lowest_shown(rows: Sequence[Row], policies: Sequence[str]) -> float:
    """Return where the x axis begins, before its margin."""
    fairness = [np.mean(_values(rows, name, "min_yield")) for name in policies]
    efficiency = [np.mean(_values(rows, name, "efficiency")) for name in policies]
    low = max(min(fairness), 1.0 - _LOSS_SHOWN * (1.0 - np.median(fairness)))
    return float(min(low, *efficiency))


def _draw_policy(
    panel: Any, line: int, rows: Sequence[Row], name: str, low: float
) -> None:
    """Draw the two objectives of a policy, and write them beside it."""
    min_yields = _values(rows, name, "min_yield")
    fairness = float(np.mean(min_yields))
    efficiency = float(np.mean(_values(rows, name, "efficiency")))
    colour = colour_of(name)
    panel.hlines(line, max(fairness, low), efficiency, color="#bbbbbb", linewidth=1.2)
    if fairness >= low:
        tenth, ninetieth = np.percentile(min_yields, (10, 90))
        panel.barh(
            line, ninetieth - tenth, left=tenth, height=0.5, color=colour, alpha=0.25
        )
        panel.plot(fairness, line, "o", color=colour, markersize=7, zorder=3)
    else:
        panel.plot(low, line, "<", color=colour, markersize=8, zorder=3)
    panel.plot(
        efficiency,
        line,
        "o",
        markersize=7,
        markerfacecolor="white",
        markeredgecolor=colour,
        markeredgewidth=1.6,
        zorder=3,
    )
    for column, value in ((1.02, fairness), (1.14, efficiency)):
        panel.annotate(
            f"{value:.3f}",
            (column, line),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=9,
        )


def _draw_bound(panel: Any, bound: float) -> None:
    panel.axvline(bound, color=_BOUND_COLOUR, linestyle="--", linewidth=1.3)
    panel.annotate(
        f"no scheduler exceeds a MinYield of {bound:.3f}",
        (bound, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        fontsize=9,
        color=_BOUND_COLOUR,
    )


def _draw_axes(panel: Any, policies: Sequence[str], low: float) -> None:
    margin = _MARGIN * max(1.0 - low, 0.01)
    panel.set_xlim(low - margin, 1.0 + margin)
    panel.set_ylim(len(policies) - 0.4, -0.6)
    panel.set_yticks(range(len(policies)), policies)
    panel.tick_params(axis="y", length=0)
    panel.set_xlabel("MinYield and Efficiency (1: no application is ever delayed)")
    panel.grid(axis="x", color="#dddddd", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[["top", "right", "left"]].set_visible(False)
    for column, word in ((1.02, "MinYield"), (1.14, "Efficiency")):
        panel.annotate(
            word,
            (column, 1.0),
            xycoords="axes fraction",
            xytext=(0, 4),
            textcoords="offset points",
            fontsize=9,
            fontweight="bold",
        )


def _draw_legend(figure: Figure, panel: Any, *, spread: bool) -> None:
    """Explain the signs; with `spread`, also the bars of percentiles."""
    entries: list[Any] = [_sign("o", "MinYield")]
    if spread:
        entries.append(
            Patch(color="#555555", alpha=0.25, label="its 10th to 90th percentile")
        )
    entries.append(_sign("o", "Efficiency", markerfacecolor="white"))
    if any(line.get_marker() == "<" for line in panel.lines):
        entries.append(_sign("<", "MinYield further left"))
    figure.legend(
        handles=entries, loc="outside lower center", ncols=4, fontsize=9, frameon=False
    )


def _sign(marker: str, label: str, **rest: Any) -> Line2D:
    return Line2D(
        [], [], marker=marker, color="#555555", linestyle="", label=label, **rest
    )


def timeline(runs: Sequence[Run]) -> Figure:
    """Draw every application's share of the bandwidth over time, one panel per run.

    All runs are recorded runs of the same instance. If the targets are shared by time,
    the shares are those of the targets' time. The time axis ends with the window, or
    with the last application if that is earlier.
    """
    instance = runs[0].instance
    by_time = instance.platform.sharing is Sharing.TIME
    shared = "time of the targets" if by_time else "bandwidth"
    names = [legend_name(a.name) for a in instance.applications]
    stacked = len(names) <= _MOST_STACKED
    height = 1.6 if stacked else 0.12 * min(len(names), _MOST_NAMED) + 0.7
    figure = ShownFigure(figsize=(12, height * len(runs) + 1.1), layout="constrained")
    panels = figure.subplots(len(runs), 1, sharex=True, squeeze=False)[:, 0]
    drawn: Any = None
    end_s = max(float(run.ended.max()) for run in runs)
    if end_s <= instance.window.begin:
        end_s = instance.window.end
    for panel, run in zip(panels, runs, strict=True):
        edges = share_edges(run, end_s, _TIMELINE_COLUMNS, exact=stacked)
        shares = shares_between(run, edges)
        if stacked:
            colours = STACK_COLOURS[: len(names)]
            ends = np.column_stack((shares, shares[:, -1]))
            drawn = panel.stackplot(edges, ends, colors=colours, step="post")
            panel.set_ylim(0, 1)
            panel.set_ylabel(f"share of {shared}")
        else:
            drawn = panel.imshow(
                np.ma.masked_equal(shares, 0.0),
                aspect="auto",
                interpolation="nearest",
                extent=(edges[0], edges[-1], len(names) - 0.5, -0.5),
                cmap=mpl.colormaps["magma_r"].with_extremes(bad="white"),
                vmin=0,
                vmax=1,
            )
            step = -(-len(names) // _MOST_NAMED)
            panel.set_yticks(range(0, len(names), step), names[::step], fontsize=7)
        panel.set_title(run.policy, loc="left", fontsize=10)
    panels[-1].set_xlabel("time (s)")
    panels[-1].set_xlim(instance.window.begin, end_s)
    if stacked:
        # With the areas given: matplotlib leaves out labels that begin with "_".
        figure.legend(
            drawn, names, loc="outside right upper", fontsize=8, frameon=False
        )
    else:
        figure.colorbar(drawn, ax=list(panels), label=f"share of the {shared}")
    return figure


def legend_name(name: str) -> str:
    """Return the name of an application for a legend: short, and not a formula."""
    return shortened(name).replace("$", r"\$")


def save_figure(figure: Figure, path: str, facts: dict[str, Any]) -> None:
    """Write the figure as SVG, PNG or PDF, by the ending of `path`.

    The file says what made it, and carries no date: same data, same bytes.
    """
    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in ("svg", "png", "pdf"):
        raise InputError(
            f"cannot draw a {kind!r} file", where=path, remedy="use .svg, .png or .pdf"
        )
    made = f"penstock {facts['version']}: {facts['command']}"
    metadata: Any = {
        "svg": {"Date": None, "Creator": "penstock", "Description": made},
        "png": {"Software": "penstock", "Description": made},
        "pdf": {"CreationDate": None, "Creator": "penstock", "Subject": made},
    }[kind]
    with replacing(path) as stream:
        _draw(figure, stream, kind, metadata)


def svg_text(figure: Figure) -> str:
    """Return the figure as an SVG element, to be put into a page."""
    stream = io.BytesIO()
    _draw(figure, stream, "svg", {"Date": None, "Creator": "penstock"})
    text = stream.getvalue().decode()
    return text[text.index("<svg") :]


def _draw(figure: Figure, stream: IO[bytes], kind: str, metadata: Any) -> None:
    FigureCanvasAgg(figure)
    with (
        warnings.catch_warnings(),
        mpl.rc_context({"svg.hashsalt": "penstock", "svg.fonttype": "none"}),
    ):
        # A sign that the font lacks is drawn as a box; an SVG has it as it is.
        warnings.filterwarnings("ignore", message="Glyph ")
        figure.savefig(stream, format=kind, dpi=110, metadata=metadata)
