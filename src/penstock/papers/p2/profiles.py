# SPDX-License-Identifier: MIT
"""Figures 1, 2 and 10 of target allocation: bandwidth profiles and their classes.

A profile gives the bandwidth b(n) of an application on n targets. Each profile is in
one of four classes (ascent, descent, peak, neutral), and one curve stands for all
profiles of a class (Figure 10). The profiles of Figure 2 are generated from a fit
(`penstock.workloads.profiles.ost_profiles`); those of the paper are not public.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.output.charts import tidy
from penstock.experiments.reproduction import Scale
from penstock.papers.declaration import figure
from penstock.papers.p2.charts import new_figure
from penstock.papers.p2.study import GENERATED, IO_NODES, OSTS
from penstock.workloads.profiles.profile_classes import (
    ProfileShape,
    class_profile,
    shape_of,
)
from penstock.workloads.profiles.profiles import profiles

__all__ = ["fig1", "fig2", "fig10"]

#: Paul Tol's "bright" scheme, for readers who are colour-blind.
_COLOURS: Final = {
    ProfileShape.ASCENT: "#228833",
    ProfileShape.DESCENT: "#EE6677",
    ProfileShape.PEAK: "#4477AA",
    ProfileShape.NEUTRAL: "#AA3377",
}
#: Largest over smallest bandwidth from which the number of targets matters; the
#: classes use the same tolerance.
_MATTERS: Final = 1.1


def _table(case: str) -> Callable[[Scale], pl.DataFrame]:
    """Return the study of a set of profiles: a row per profile and number of targets.

    ``normalised`` is b(n) over its maximum, ``centred`` is b(n) over its geometric mean
    over n, and ``curve`` is the curve of the class, centred as well.
    """

    def rows(_scale: Scale) -> pl.DataFrame:
        return pl.concat(
            [_profile_rows(p.name, p.bandwidth, case) for p in profiles(case)]
        )

    return rows


def _profile_rows(name: str, bandwidth: Any, case: str) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "profile": name,
            "class": str(shape_of(bandwidth)),
            "targets": np.arange(1, len(bandwidth) + 1),
            "bandwidth": bandwidth,
            "normalised": bandwidth / bandwidth.max(),
            "centred": _centred(bandwidth),
            "curve": _centred(class_profile(bandwidth, case)),
        }
    )


def _centred(bandwidth: Any) -> Any:
    return bandwidth / np.exp(np.log(bandwidth).mean())


def _panels(rows: pl.DataFrame) -> tuple[Figure, dict[ProfileShape, tuple[Any, Any]]]:
    """Return a figure with a panel per class; for each class its axis and rows."""
    drawn = new_figure(10, 3.4)
    axes = drawn.subplots(1, len(ProfileShape), sharey=True)
    panels = {}
    for axis, shape in zip(axes, ProfileShape, strict=True):
        members = rows.filter(pl.col("class") == shape)
        count = members["profile"].n_unique()
        axis.set_title(f"{shape} ({count} profiles)", fontsize=10)
        axis.set_xticks(range(1, 9))
        tidy(axis, "both")
        panels[shape] = axis, members
    return drawn, panels


def _draw_profiles(
    axis: Any, rows: pl.DataFrame, column: str, shape: ProfileShape
) -> None:
    """Draw every profile as a thin line; fainter if there are many."""
    alpha = 0.25 if rows["profile"].n_unique() > 40 else 0.7
    for _, profile in rows.group_by("profile", maintain_order=True):
        axis.plot(
            profile["targets"].to_numpy(),
            profile[column].to_numpy(),
            color=_COLOURS[shape],
            alpha=alpha,
            linewidth=0.8,
        )


def _draw(tables: Tables, x_label: str, note: str = "") -> Figure:
    drawn, panels = _panels(tables.rows)
    for shape, (axis, members) in panels.items():
        _draw_profiles(axis, members, "normalised", shape)
        by_number = members.group_by("targets")
        medians = by_number.agg(pl.median("normalised")).sort("targets")
        axis.plot(*medians.to_numpy().T, color="#222222", linewidth=2, label="median")
        axis.set_xlabel(x_label)
    first, _ = panels[ProfileShape.ASCENT]
    first.set_ylim(0, 1.03)
    first.set_ylabel("bandwidth over its maximum")
    first.legend(frameon=False, fontsize=9, loc="lower right")
    if note:
        drawn.suptitle(note, fontsize=10, color="#B22222")
    return drawn


def _draw_classes(tables: Tables) -> Figure:
    drawn, panels = _panels(tables.rows)
    for shape, (axis, members) in panels.items():
        _draw_profiles(axis, members, "centred", shape)
        axis.plot(
            *_class_curve(members).to_numpy().T,
            color="#222222",
            linewidth=2,
            label="curve of the class",
        )
        axis.set_xlabel("I/O nodes n")
    first, _ = panels[ProfileShape.ASCENT]
    first.set_yscale("log")
    first.set_yticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
    first.minorticks_off()
    first.set_ylabel("bandwidth over its geometric mean")
    first.legend(frameon=False, fontsize=9, loc="lower right")
    return drawn


def _class_curve(members: pl.DataFrame) -> pl.DataFrame:
    """Return number of targets and curve of a class, from the rows of its profiles."""
    return members.group_by("targets").agg(pl.first("curve")).sort("targets")


def _by_profile(tables: Tables, *columns: pl.Expr) -> pl.DataFrame:
    return tables.rows.group_by("profile", "class", maintain_order=True).agg(*columns)


# --- Figures 1 and 2 --------------------------------------------------------------

fig1 = figure(
    "p2-fig1",
    rows=_table(IO_NODES),
    draw=lambda tables: _draw(tables, "I/O nodes n"),
)
fig2 = figure(
    "p2-fig2",
    rows=_table(OSTS),
    draw=lambda tables: _draw(tables, "OSTs n", GENERATED),
)


_NUMBER_MATTERS: Final = (
    "The bandwidth depends on the number of {targets} (by more than 10 % for over 90 % "
    "of the profiles)."
)


def _class_counts(tables: Tables) -> dict[str, float]:
    classes = _by_profile(tables)["class"]
    return {str(shape): float((classes == shape).sum()) for shape in ProfileShape}


@fig1.claim(
    "Four behaviours are seen: more I/O nodes can leave the bandwidth as it is, "
    "improve it, decrease it, or increase it up to a point (profiles of each class)."
)
def _four_behaviours(tables: Tables) -> Verdict:
    """Count the profiles of every class."""
    counts = _class_counts(tables)
    return Verdict(min(counts.values()) > 0, counts)


@fig2.claim(
    "For OSTs, too, the impact of their number depends on the application (profiles of "
    "each class; more than one class has members)."
)
def _impact_depends_on_the_application(tables: Tables) -> Verdict:
    """Count the classes that have members."""
    counts = _class_counts(tables)
    return Verdict(sum(count > 0 for count in counts.values()) > 1, counts)


@fig1.claim(_NUMBER_MATTERS.format(targets="I/O nodes"))
@fig2.claim(_NUMBER_MATTERS.format(targets="OSTs"))
def _the_number_matters(tables: Tables) -> Verdict:
    """Take the share of profiles whose bandwidth varies by more than 10 %."""
    highest, lowest = pl.max("bandwidth"), pl.min("bandwidth")
    ratios = _by_profile(tables, (highest / lowest).alias("ratio"))["ratio"].to_numpy()
    low, middle, high = np.percentile(ratios, (10, 50, 90))
    share = float((ratios > _MATTERS).mean())
    numbers = {
        "share of profiles": share,
        "largest over smallest bandwidth, median": float(middle),
        "10th percentile": float(low),
        "90th percentile": float(high),
    }
    return Verdict(share > 0.9, numbers)


# --- Figure 10 --------------------------------------------------------------------

fig10 = figure("p2-fig10", rows=_table(IO_NODES), draw=_draw_classes)


@fig10.claim(
    "One function represents all profiles of a class: the class of this function is "
    "the same (1: yes)."
)
def _curves_keep_their_class(tables: Tables) -> Verdict:
    """Classify the curve of every class."""
    kept = {}
    for shape in ProfileShape:
        curve = _class_curve(tables.rows.filter(pl.col("class") == shape))
        kept[str(shape)] = float(shape_of(curve["curve"].to_numpy()) is shape)
    return Verdict(min(kept.values()) > 0, kept)


@fig10.claim(
    "If best-bandwidth knows only the class, it decides differently only for some peak "
    "and neutral profiles (by construction: our classes were chosen so; share of "
    "profiles whose n_perf changes)."
)
def _best_number_kept(tables: Tables) -> Verdict:
    """Compare the best number of targets of a profile with that of its class."""
    best, best_of_class = (pl.col(c).arg_max() for c in ("bandwidth", "curve"))
    changed = _by_profile(tables, (best != best_of_class).alias("changed"))
    shares = {
        str(shape): float(
            changed.filter(pl.col("class") == shape)["changed"].to_numpy().mean()
        )
        for shape in ProfileShape
    }
    others = shares["peak"] + shares["neutral"]
    return Verdict(shares["ascent"] == shares["descent"] == 0 < others, shares)
