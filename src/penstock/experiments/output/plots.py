# SPDX-License-Identifier: MIT
"""Figures: one colour per policy everywhere; same data, same bytes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from penstock.errors import InputError
from penstock.experiments.study import Row
from penstock.model import Instance, Sharing, replacing
from penstock.model.application import shortened
from penstock.sim import Run

__all__ = ["box_plots", "colour_of", "save_figure", "timeline"]

# Paul Tol's "muted" scheme and Okabe and Ito's black: told apart by the
# colour-blind. A policy that is not listed takes the next free colour.
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

_OBJECTIVES: Final = (
    ("min_yield", "MinYield (1 = never delayed)"),
    ("efficiency", "Efficiency (share of ideal progress)"),
    ("utilization", "Utilization (share of time computing)"),
)

#: With more applications than this, a timeline shows one row for each.
_MOST_STACKED: Final = 12
_TIMELINE_COLUMNS: Final = 1200


def colour_of(policy: str) -> str:
    """Return the colour of a policy, parameters or not."""
    name = policy.partition(":")[0]
    if policy in _COLOURS:
        return _COLOURS[policy]
    number = sum(policy.encode()) % len(_OTHER_COLOURS)
    return _OTHER_COLOURS[number] if name == policy else _COLOURS.get(name, "#000000")


def box_plots(rows: Sequence[Row]) -> Figure:
    """Draw the rows of a comparison: one panel per objective, one box per policy.

    As in papers/1: box from the 25th to the 75th percentile of the instances,
    whiskers from the 10th to the 90th, a dot at the mean. The bound on MinYield is
    the grey band (10th to 90th percentile) with its mean.
    """
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    # What is the same for all policies is taken from the rows of the first one.
    instances = [row for row in rows if row["policy"] == policies[0]]
    figure = Figure(figsize=(13, 0.42 * len(policies) + 1.9), layout="constrained")
    panels = figure.subplots(1, len(_OBJECTIVES), sharey=True)
    for panel, (attribute, title) in zip(panels, _OBJECTIVES, strict=True):
        for line, policy in enumerate(policies):
            values = [row[attribute] for row in rows if row["policy"] == policy]
            _box(panel, line, np.array(values), colour_of(policy))
        if attribute == "min_yield":
            bounds = [row["bound"].min_yield for row in instances if row["bound"]]
            _bound_band(panel, bounds)
        panel.use_sticky_edges = False
        panel.margins(x=0.04)
        panel.set_xlabel(title)
        panel.grid(axis="x", color="#dddddd", linewidth=0.8)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(policies)), policies)
    panels[0].invert_yaxis()
    pressure = np.mean([row["pressure"] for row in instances])
    many = f"{len(instances)} instances" if len(instances) > 1 else "1 instance"
    figure.suptitle(f"{many}, mean I/O pressure {pressure:.2f}", fontsize=11)
    return figure


def _box(panel: Any, row: int, values: Any, colour: str) -> None:
    low, first, third, high = np.percentile(values, (10, 25, 75, 90))
    panel.hlines(row, low, high, color=colour, linewidth=1.4)
    panel.barh(
        row,
        third - first,
        left=first,
        height=0.56,
        color=colour,
        alpha=0.45,
        edgecolor=colour,
    )
    panel.plot(values.mean(), row, "o", color=colour, markersize=5, zorder=3)


def _bound_band(panel: Any, bounds: Sequence[float]) -> None:
    if bounds:
        low, high = np.percentile(bounds, (10, 90))
        panel.axvspan(low, high, color=_BOUND_COLOUR, alpha=0.15, linewidth=0)
        panel.axvline(
            float(np.mean(bounds)),
            color=_BOUND_COLOUR,
            linestyle="--",
            linewidth=1.2,
            label="bound: no scheduler does better",
        )
        panel.legend(loc="lower left", fontsize=8, frameon=False)


def timeline(runs: Sequence[Run]) -> Figure:
    """Draw who held which share of the bandwidth when, one panel per run.

    Runs are recorded ones of the same instance. Of targets that are shared by time it
    is the share of their time.
    """
    instance = runs[0].instance
    by_time = instance.platform.sharing is Sharing.TIME
    shared = "time of the targets" if by_time else "bandwidth"
    names = [_entry(a.name) for a in instance.applications]
    stacked = len(names) <= _MOST_STACKED
    height = 1.6 if stacked else 0.035 * len(names) + 0.7
    figure = Figure(figsize=(12, height * len(runs) + 1.1), layout="constrained")
    panels = figure.subplots(len(runs), 1, sharex=True, squeeze=False)[:, 0]
    drawn: Any = None
    for panel, run in zip(panels, runs, strict=True):
        edges = _edges(run, exact=stacked)
        shares = _shares(run, edges)
        if stacked:
            colours = [mpl.colormaps["tab20"](n) for n in range(len(names))]
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
            panel.set_ylabel("application")
        panel.set_title(run.policy, loc="left", fontsize=10)
    panels[-1].set_xlabel("time (s)")
    panels[-1].set_xlim(instance.window.begin, instance.window.end)
    if stacked:
        # By the areas: those of names that begin with "_" would be left out.
        figure.legend(
            drawn, names, loc="outside right upper", fontsize=8, frameon=False
        )
    else:
        figure.colorbar(drawn, ax=list(panels), label=f"share of the {shared}")
    return figure


def _entry(name: str) -> str:
    """Return the name of an application as a legend shows it: short, no formula."""
    return shortened(name).replace("$", r"\$")


def _edges(run: Run, *, exact: bool) -> Any:
    """Return the times between which shares are drawn.

    These are the instants at which a rate changes, if there are few of them and
    `exact` ones are asked for; else equal steps.
    """
    window = run.instance.window
    if exact and run.grants is not None:
        changes = np.unique(run.grants.time.clip(window.begin, window.end))
        if 0 < len(changes) <= _TIMELINE_COLUMNS:
            return np.unique([window.begin, *changes.tolist(), window.end])
    return np.linspace(window.begin, window.end, _TIMELINE_COLUMNS + 1)


def _shares(run: Run, edges: Any) -> Any:
    """Return the mean share of the storage of every application between the edges."""
    if run.grants is None:
        raise ValueError("the run was not recorded")
    grants, platform = run.grants, run.instance.platform
    shares = np.zeros((len(run.instance.applications), len(edges) - 1))
    # A flow, an application on one target, is what has one rate at a time.
    flow = grants.application * platform.targets + grants.target
    for number in np.unique(flow).tolist():
        mine = flow == number
        volume = _moved(grants.time[mine], grants.rate[mine], edges)
        # Differences of volumes are exact means.
        shares[number // platform.targets] += np.diff(volume) / np.diff(edges)
    return shares / _whole(run.instance)[:, np.newaxis]


def _whole(instance: Instance) -> Any:
    """Return the rate at which an application would have all of the storage (bytes/s).

    That is B or, where targets are shared by time, its full speed on each of them.
    """
    platform = instance.platform
    if platform.sharing is Sharing.BANDWIDTH:
        return np.full(len(instance.applications), platform.bandwidth)
    used = np.array([len(a.targets) for a in instance.applications])
    return instance.caps / used * platform.targets


def _moved(times: Any, rates: Any, edges: Any) -> Any:
    """Return the volume that a flow with these rates has moved up to each edge."""
    moved = np.concatenate(([0.0], np.cumsum(np.diff(times) * rates[:-1])))
    at = np.searchsorted(times, edges, side="right") - 1
    return np.where(at >= 0, moved[at] + rates[at] * (edges - times[at]), 0.0)


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
    FigureCanvasAgg(figure)
    with (
        warnings.catch_warnings(),
        mpl.rc_context({"svg.hashsalt": "penstock", "svg.fonttype": "none"}),
        replacing(path) as stream,
    ):
        # A sign that the font lacks is drawn as a box; an SVG has it as it is.
        warnings.filterwarnings("ignore", message="Glyph ")
        figure.savefig(stream, format=kind, dpi=110, metadata=metadata)
