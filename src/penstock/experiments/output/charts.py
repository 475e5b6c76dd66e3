# SPDX-License-Identifier: MIT
"""The kinds of charts in the papers; each function draws one from a table of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.colors import BoundaryNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from penstock.experiments.output.plots import colour_of
from penstock.policies import POLICIES
from penstock.registry import name_in_label

__all__ = [
    "BOXES",
    "LABELS",
    "WIDEST",
    "binned",
    "binned_lines",
    "footnote",
    "grouped_boxes",
    "over_base",
    "parameter_boxes",
    "policies_of",
    "pressure_scatter",
    "rank_lines",
    "ratio_grid",
    "tidy",
    "upright_box",
]

#: Axis labels of the columns of a table.
LABELS: Final = {
    "min_yield": "MinYield",
    "efficiency": "Efficiency",
    "utilization": "Utilization",
    "cap_efficiency": "Efficiency, weights b_i",
    "set_utilization": "Utilization",
    "stretch": "Stretch",
    "io_slowdown": "IO-slowdown",
    "pressure": "I/O pressure W",
    "aimed_pressure": "aimed I/O pressure W",
    "n_small": "small applications n_small",
    "sigma": "standard deviation σ",
    "noise": "noise ν",
    "n_high": "high-frequency jobs n_H",
    "seconds": "simulation time (s)",
    "machine": "machine t",
    "minimum_load": "minimum I/O-load",
    "mean_io_slowdown": "Mean-I/O-SlowDown",
    "rho_io": "ρ_io: too few or too many targets",
    "rho_con": "ρ_con: congestion",
    "io_spread": "I/O-spread",
    "machine_idletime": "Machine-Idletime",
}

#: Width of the widest chart (inches). A page shows it at 0.97 of its size; a wider
#: chart would be shrunk until its text cannot be read.
WIDEST: Final = 12.0

_BINS: Final = 25
#: Panels side by side.
_ACROSS: Final = 3
#: Share of the ratios beyond each end of their axis; they are drawn at its ends.
_BEYOND_AXIS: Final = 0.002
#: How to read boxes; every chart with boxes says it.
BOXES: Final = (
    "boxes: 25th to 75th percentile of the instances; whiskers: 10th to 90th; dots: "
    "means"
)
#: The same where boxes of policies stand side by side at every value.
_POLICY_BOXES: Final = (
    "at every value a box per policy, in the order of the legend (column by column)\n"
    f"{BOXES}, joined by lines"
)
#: Dashes for policies that often coincide with another one: both lines stay visible.
_DASHED: Final = {"set-10": (0, (4, 3)), "periodic-greedy-yield": (0, (4, 3))}


def grouped_boxes(
    rows: pl.DataFrame,
    x: str,
    metrics: Sequence[str],
    *,
    points: bool = False,
    apart: Sequence[str] = (),
) -> Figure:
    """Draw a panel per metric: for every value of `x` a box per policy, means joined.

    As in bandwidth sharing: box from the 25th to the 75th percentile, whiskers from
    the 10th to the 90th. With `points`, also every single result, as in IO-SETS. Every
    combination of values of the columns `apart` has panels of its own.
    """
    parts = _parts(rows, apart)
    across = min(len(parts), _ACROSS)
    bands = -(-len(parts) // across)
    width = max(7.0 if across == 1 else 4.8, 1.5 * rows[x].n_unique())
    size = (min(width * across, WIDEST), 3.4 * len(metrics) * bands)
    figure = Figure(figsize=size)
    figure.set_layout_engine("constrained")
    shape = (bands * len(metrics), across)
    axes = figure.subplots(*shape, sharex=len(parts) == 1, squeeze=False)
    for number, (title, part) in enumerate(parts.items()):
        band, column = divmod(number, across)
        panels = axes[band * len(metrics) : (band + 1) * len(metrics), column]
        for panel, first in zip(panels, axes[: len(metrics), 0], strict=True):
            if panel is not first:
                panel.sharey(first)
        _column(panels, part, x, metrics, points=points)
        panels[0].set_title(title, fontsize=10)
    for panel in axes[-len(metrics) :, (len(parts) - 1) % across + 1 :].flat:
        panel.remove()
    _legend(figure, policies_of(rows))
    footnote(figure, _POLICY_BOXES)
    return figure


def _parts(rows: pl.DataFrame, apart: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Return the rows of every combination of values of some columns, by its name."""
    if not apart:
        return {"": rows}
    grouped = rows.sort(apart, maintain_order=True).group_by(apart, maintain_order=True)
    return {
        ", ".join(
            f"{LABELS.get(name, name)} = {_shown(value)}"
            for name, value in zip(apart, values, strict=True)
        ): part
        for values, part in grouped
    }


def _column(
    panels: Any,
    rows: pl.DataFrame,
    x: str,
    metrics: Sequence[str],
    *,
    points: bool,
) -> None:
    """Draw the panels of all metrics, one below the other."""
    for panel, metric in zip(panels, metrics, strict=True):
        _boxes(panel, rows, x, metric, points=points)
        panel.set_ylabel(LABELS.get(metric, metric))
    panels[-1].set_xlabel(LABELS.get(x, x))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def parameter_boxes(
    tables: Mapping[str, pl.DataFrame], metrics: Sequence[str]
) -> Figure:
    """Draw a column per parameter and a line of panels per metric, as boxes."""
    figure = Figure(figsize=(min(5.2 * len(tables), WIDEST), 2.8 * len(metrics) + 0.6))
    figure.set_layout_engine("constrained")
    axes = figure.subplots(len(metrics), len(tables), sharey="row", squeeze=False)
    for column, (x, rows) in enumerate(tables.items()):
        for line, metric in enumerate(metrics):
            _boxes(axes[line][column], rows, x, metric, points=False)
            if column == 0:
                axes[line][column].set_ylabel(LABELS.get(metric, metric))
        axes[-1][column].set_xlabel(LABELS.get(x, x))
    _legend(figure, policies_of(next(iter(tables.values()))))
    footnote(figure, _POLICY_BOXES)
    return figure


def _boxes(
    panel: Any, rows: pl.DataFrame, x: str, metric: str, *, points: bool
) -> None:
    """Draw, for every value of `x`, a box per policy; join the means."""
    policies = policies_of(rows)
    values = rows[x].unique().sort().to_list()
    width = 0.8 / len(policies)
    for number, policy in enumerate(policies):
        subset = rows.filter(pl.col("policy") == policy)
        groups = [subset.filter(pl.col(x) == v)[metric].to_numpy() for v in values]
        where = np.arange(len(values)) + (number - (len(policies) - 1) / 2) * width
        colour = colour_of(policy)
        for position, group in zip(where, groups, strict=True):
            upright_box(panel, position, group, 0.8 * width, colour)
            if points:
                spread = np.linspace(-0.35, 0.35, len(group)) * width
                panel.plot(position + spread, group, ".", color=colour, ms=2)
        means = [_finite_mean(group) for group in groups]
        panel.plot(where, means, "-", color=colour, linewidth=1, alpha=0.8)
    panel.set_xticks(range(len(values)), map(_shown, values))
    panel.set_xlim(-0.5, len(values) - 0.5)
    for number in range(1, len(values)):
        panel.axvline(number - 0.5, color="#cccccc", linewidth=0.8, zorder=0)
    tidy(panel, "y")


def rank_lines(panels: Sequence[tuple[str, dict[str, Any]]], x_label: str) -> Figure:
    """Draw, per panel, the mean yield of the application at each rank."""
    figure = Figure(figsize=(WIDEST, 4.2))
    figure.set_layout_engine("constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axis, (title, curves) in zip(axes, panels, strict=True):
        for policy, curve in curves.items():
            ranks = np.arange(1, len(curve) + 1)
            axis.plot(ranks, curve, color=colour_of(policy), linewidth=1.5)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel(x_label)
        tidy(axis, "both")
    axes[0].set_ylabel("mean yield")
    _legend(figure, list(panels[0][1]))
    return figure


def pressure_scatter(rows: pl.DataFrame, metric: str, by: str, panel: str) -> Figure:
    """Draw `metric` against the pressure, one panel per `panel`, coloured by `by`.

    `by` is a whole number; its colours are the same in all panels.
    """
    titles = rows[panel].unique().sort().to_list()
    figure = Figure(figsize=(WIDEST, 4.6))
    figure.set_layout_engine("constrained")
    axes = figure.subplots(1, len(titles), sharex=True, sharey=True, squeeze=False)[0]
    values = rows[by].unique().sort().to_list()
    steps = np.arange(values[0] - 0.5, values[-1] + 1)
    colours = mpl.colormaps["viridis"]
    drawn: Any = None
    for axis, title in zip(axes, titles, strict=True):
        # Shuffled, so that no value of `by` hides the others.
        subset = rows.filter(pl.col(panel) == title).sample(
            fraction=1, shuffle=True, seed=1
        )
        drawn = axis.scatter(
            subset["pressure"].to_numpy(),
            subset[metric].to_numpy(),
            c=subset[by].to_numpy(),
            cmap=colours,
            norm=BoundaryNorm(steps, colours.N),
            s=_dot_area(subset.height),
            alpha=0.75,
            linewidths=0,
            rasterized=True,
        )
        axis.set_title(f"{title} ({subset.height} windows)", fontsize=10)
        axis.set_xlabel(LABELS["pressure"])
        tidy(axis, "both")
    axes[0].set_ylabel(LABELS[metric])
    axes[0].set_xlim(left=0)
    axes[0].set_ylim(0, 1.03)
    figure.colorbar(drawn, ax=list(axes), label=LABELS.get(by, by), ticks=values)
    return figure


def over_base(rows: pl.DataFrame, metric: str, base: str) -> pl.DataFrame:
    """Add the column `ratio`: the metric divided by that of the policy `base`."""
    key = ["point", "instance"]
    reference = rows.filter(pl.col("policy") == base).select(
        *key, pl.col(metric).alias("base")
    )
    ratio = (pl.col(metric) / pl.col("base")).alias("ratio")
    return rows.join(reference, on=key, maintain_order="left").with_columns(ratio)


def ratio_grid(rows: pl.DataFrame, metric: str, base: str) -> Figure:
    """Draw `metric` of every policy over that of `base`, a panel per policy.

    The axis is logarithmic. It shows all ratios but the lowest and the highest 0.2 %,
    which are drawn at its ends.
    """
    ratios = over_base(rows, metric, base)
    policies = [policy for policy in policies_of(rows) if policy != base]
    low, high = _ratio_range(ratios.filter(pl.col("policy") != base)["ratio"])
    columns = 4
    lines = -(-len(policies) // columns)
    figure = Figure(figsize=(WIDEST, 3.0 * lines + 0.4))
    figure.set_layout_engine("constrained")
    axes = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    for axis, policy in zip(axes.flat, policies, strict=False):
        subset = ratios.filter(pl.col("policy") == policy)
        axis.plot(
            subset["pressure"].to_numpy(),
            subset["ratio"].to_numpy().clip(low, high),
            "o",
            color=colour_of(policy),
            markersize=_dot_area(subset.height) ** 0.5,
            alpha=0.6,
            markeredgewidth=0,
            rasterized=True,
        )
        axis.axhline(1.0, color=colour_of(base), linewidth=1.2)
        axis.set_title(policy, fontsize=10)
        tidy(axis, "both")
    axes[0][0].set_xlim(left=0)
    _ratio_axis(axes[0][0], low, high)
    for line in axes:
        line[0].set_ylabel(f"{LABELS[metric]} / {base}")
    for axis in axes.flat[max(len(policies) - columns, 0) : len(policies)]:
        axis.set_xlabel(LABELS["pressure"])
        axis.tick_params(labelbottom=True)
    for axis in axes.flat[len(policies) :]:
        axis.set_axis_off()
    _legend(figure, [base])
    return figure


def _ratio_range(ratios: pl.Series) -> tuple[float, float]:
    """Return the ends of the axis of ratios: at least 0.9 to 1.1, from 0.5 on."""
    values = ratios.drop_nulls().to_numpy()
    low, high = np.quantile(values, (_BEYOND_AXIS, 1 - _BEYOND_AXIS))
    return float(np.clip(low, 0.5, 0.9)), float(max(high, 1.1))


def _ratio_axis(axis: Any, low: float, high: float) -> None:
    """Make the axis logarithmic, with plain numbers; its ends say "or beyond"."""
    apart = (high / low) ** 0.07
    ticks = {1.0: "1", low: f"≤ {low:.2g}", high: f"≥ {high:.3g}"}
    for tick in (0.5, 2, 0.8, 1.25, 0.9, 1.1, 5, 0.7, 1.5, 3, 10, 20):
        near = any(1 / apart < tick / other < apart for other in ticks)
        if low < tick < high and not near:
            ticks[tick] = f"{tick:g}"
    axis.set_yscale("log")
    margin = (high / low) ** 0.03
    axis.set_ylim(low / margin, high * margin)
    axis.set_yticks(list(ticks), list(ticks.values()))
    axis.minorticks_off()


def binned(rows: pl.DataFrame, metric: str, panel: str) -> pl.DataFrame:
    """Return mean and deviation of `metric` in 25 intervals of pressure.

    Per value of `panel` and policy; intervals split the pressures of the panel.
    """
    low, high = pl.col("pressure").min(), pl.col("pressure").max()
    number = ((pl.col("pressure") - low) / (high - low) * _BINS).fill_nan(0.0)
    middle = low + (number.floor().clip(0, _BINS - 1) + 0.5) * (high - low) / _BINS
    return (
        rows.with_columns(middle.over(panel).alias("middle"))
        .group_by(panel, "policy", "middle")
        .agg(
            pl.len().alias("windows"),
            pl.col(metric).mean().alias("mean"),
            pl.col(metric).std(ddof=0).alias("deviation"),
        )
        .sort(panel, "policy", "middle")
        .rename({"middle": "pressure"})
    )


def binned_lines(
    rows: pl.DataFrame, metric: str, panel: str, *, logarithmic: bool = False
) -> Figure:
    """Draw mean and standard deviation of `metric` in 25 intervals of pressure.

    The metric is a fraction, unless the axis is logarithmic.
    """
    table = binned(rows, metric, panel)
    titles = table[panel].unique().sort().to_list()
    policies = policies_of(table)
    across = min(len(titles), 2)
    lines = -(-len(titles) // across)
    figure = Figure(figsize=(WIDEST, 4.2 * lines + 0.8))
    figure.set_layout_engine("constrained")
    grid = figure.subplots(lines, across, sharex=True, sharey=True, squeeze=False)
    axes = list(grid.flat)
    for axis in axes[len(titles) :]:
        axis.remove()
    for axis, title in zip(axes, titles, strict=False):
        for policy in policies:
            subset = table.filter(
                (pl.col(panel) == title) & (pl.col("policy") == policy)
            )
            _binned_line(axis, policy, subset, logarithmic=logarithmic)
        if logarithmic:
            axis.set_yscale("log")
        windows = table.filter(
            (pl.col(panel) == title) & (pl.col("policy") == policies[0])
        )
        axis.set_title(f"{title} ({windows['windows'].sum()} windows)", fontsize=10)
        axis.set_xlabel(LABELS["pressure"])
        axis.tick_params(labelbottom=True)
        tidy(axis, "both")
    axes[0].set_xlim(left=0)
    if not logarithmic:
        axes[0].set_ylim(top=1.01)
    for axis in grid[:, 0]:
        axis.set_ylabel(f"{LABELS[metric]}: mean, band ± deviation")
    _legend(figure, policies)
    return figure


def _binned_line(
    axis: Any, policy: str, table: pl.DataFrame, *, logarithmic: bool
) -> None:
    """Draw the means of one policy with a band of one standard deviation."""
    middles, means = table["pressure"].to_numpy(), table["mean"].to_numpy()
    spread = table["deviation"].to_numpy()
    low = means - spread
    if logarithmic:
        # On a logarithmic axis, a band that reaches zero has no lower end.
        low = np.maximum(low, means / 3)
    colour = colour_of(policy)
    axis.fill_between(middles, low, means + spread, color=colour, alpha=0.06, lw=0)
    axis.plot(
        middles,
        means,
        color=colour,
        linestyle=_DASHED.get(policy, "-"),
        linewidth=1.6,
        marker=".",
        markersize=4,
    )


def _dot_area(count: int) -> float:
    """Return the area of a dot (points squared) when `count` are drawn."""
    return float(np.clip(12_000 / max(count, 1), 3, 20))


def policies_of(rows: pl.DataFrame) -> list[str]:
    """Return the policies of a table, in the order of the table of policies."""
    order = {name: number for number, name in enumerate(POLICIES)}
    names = rows["policy"].unique().to_list()
    return sorted(names, key=lambda n: (order.get(name_in_label(n), 99), n))


def upright_box(
    panel: Any, position: float, values: Any, width: float, colour: str
) -> None:
    """Draw a box: quartiles, whiskers at 10 and 90 per cent, a dot at the mean."""
    values = values[np.isfinite(values)]
    if not values.size:
        return
    low, first, third, high = np.percentile(values, (10, 25, 75, 90))
    panel.vlines(position, low, high, color=colour, linewidth=1)
    panel.bar(
        position,
        third - first,
        bottom=first,
        width=width,
        color=colour,
        alpha=0.45,
        edgecolor=colour,
        linewidth=0.8,
    )
    panel.plot(position, values.mean(), "o", color=colour, markersize=2.5)


def _finite_mean(values: Any) -> float:
    """Return the mean of the finite values (a stretch may be infinite)."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else float("nan")


def _legend(figure: Figure, policies: Sequence[str]) -> None:
    handles = [Line2D([], [], color=colour_of(p), lw=3, label=p) for p in policies]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=4,
        fontsize=9,
        frameon=False,
    )


def footnote(figure: Figure, text: str) -> None:
    """Write a text below a figure: how to read its marks."""
    figure.supxlabel(text, fontsize=9, color="#555555")


def tidy(panel: Any, axis: str) -> None:
    """Draw a light grid along `axis`; remove the frame at the top and the right."""
    panel.grid(axis=axis, color="#dddddd", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
