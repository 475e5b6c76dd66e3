# SPDX-License-Identifier: MIT
"""papers/2 Figures 1, 2 and 10: bandwidth profiles by class, and the classes' curves.

The profiles of Figure 2 are not those of the paper: they are generated from a fit
(`penstock.workloads.profiles.ost_profiles`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Claim, Tables, Verdict
from penstock.experiments.output.charts import tidy
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.p2.charts import new_figure
from penstock.papers.p2.study import GENERATED, IO_NODES, OSTS
from penstock.workloads.profiles.profile_classes import (
    ProfileShape,
    class_profile,
    shape_of,
)
from penstock.workloads.profiles.profiles import profiles

__all__ = ["FIGURES"]

#: Paul Tol's "bright" scheme: told apart by the colour-blind.
_COLOURS: Final = {
    ProfileShape.ASCENT: "#228833",
    ProfileShape.DESCENT: "#EE6677",
    ProfileShape.PEAK: "#4477AA",
    ProfileShape.NEUTRAL: "#AA3377",
}
#: A bandwidth that changes by less depends on nothing (the tolerance of the classes).
_MATTERS: Final = 1.1


def _table(case: str) -> Callable[[Scale], pl.DataFrame]:
    """Return the profiles of a case, a line per number of targets.

    ``normalised``: b(n) over its maximum; ``centred``: over its geometric mean over n;
    ``curve``: the same of what is told of the class.
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
    """Return a figure with a panel per class, and the rows of each."""
    figure = new_figure(13, 3.9)
    axes = figure.subplots(1, len(ProfileShape), sharey=True)
    found = {}
    for axis, shape in zip(axes, ProfileShape, strict=True):
        mine = rows.filter(pl.col("class") == shape)
        axis.set_title(f"{shape} ({mine['profile'].n_unique()} profiles)", fontsize=10)
        axis.set_xticks(range(1, 9))
        tidy(axis, "both")
        found[shape] = axis, mine
    return figure, found


def _curves(axis: Any, rows: pl.DataFrame, column: str, shape: ProfileShape) -> None:
    """Draw every profile, thin, and fainter where there are many."""
    alpha = 0.25 if rows["profile"].n_unique() > 40 else 0.7
    for _, mine in rows.group_by("profile", maintain_order=True):
        axis.plot(
            mine["targets"].to_numpy(),
            mine[column].to_numpy(),
            color=_COLOURS[shape],
            alpha=alpha,
            linewidth=0.8,
        )


def _draw(tables: Tables, x_label: str, note: str) -> Figure:
    figure, panels = _panels(tables.rows)
    for shape, (axis, mine) in panels.items():
        _curves(axis, mine, "normalised", shape)
        middle = mine.group_by("targets").agg(pl.median("normalised")).sort("targets")
        axis.plot(*middle.to_numpy().T, color="#222222", linewidth=2, label="median")
        axis.set_xlabel(x_label)
    first, _ = panels[ProfileShape.ASCENT]
    first.set_ylim(0, 1.03)
    first.set_ylabel("bandwidth over its maximum")
    first.legend(frameon=False, fontsize=9, loc="lower right")
    if note:
        figure.suptitle(note, fontsize=10, color="#B22222")
    return figure


def _draw_classes(tables: Tables) -> Figure:
    figure, panels = _panels(tables.rows)
    for shape, (axis, mine) in panels.items():
        _curves(axis, mine, "centred", shape)
        curve = mine.group_by("targets").agg(pl.first("curve")).sort("targets")
        axis.plot(
            *curve.to_numpy().T, color="#222222", linewidth=2, label="told of the class"
        )
        axis.set_xlabel("I/O nodes n")
    first, _ = panels[ProfileShape.ASCENT]
    first.set_yscale("log")
    first.set_yticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
    first.minorticks_off()
    first.set_ylabel("bandwidth over its geometric mean")
    first.legend(frameon=False, fontsize=9, loc="lower right")
    return figure


# --- Claims -----------------------------------------------------------------------


def _by_profile(tables: Tables, *columns: pl.Expr) -> pl.DataFrame:
    return tables.rows.group_by("profile", "class", maintain_order=True).agg(*columns)


def _all_classes(tables: Tables) -> Verdict:
    found = _by_profile(tables)["class"]
    counts = {str(shape): float((found == shape).sum()) for shape in ProfileShape}
    return Verdict(min(counts.values()) > 0, counts)


def _number_matters(tables: Tables) -> Verdict:
    highest, lowest = pl.max("bandwidth"), pl.min("bandwidth")
    found = _by_profile(tables, (highest / lowest).alias("ratio"))["ratio"].to_numpy()
    low, middle, high = np.percentile(found, (10, 50, 90))
    share = float((found > _MATTERS).mean())
    numbers = {
        "share of profiles": share,
        "largest over smallest bandwidth, median": float(middle),
        "10th percentile": float(low),
        "90th percentile": float(high),
    }
    return Verdict(share > 0.9, numbers)


def _own_best() -> pl.Expr:
    return pl.col("bandwidth").arg_max()


def _curves_keep_their_class(tables: Tables) -> Verdict:
    kept = {}
    for shape in ProfileShape:
        rows = tables.rows.filter(pl.col("class") == shape)
        curve = rows.group_by("targets").agg(pl.first("curve")).sort("targets")
        kept[str(shape)] = float(shape_of(curve["curve"].to_numpy()) is shape)
    return Verdict(min(kept.values()) > 0, kept)


def _best_kept(tables: Tables) -> Verdict:
    """Return the share of profiles whose n_perf is another by the curve."""
    wrong = (_own_best() != pl.col("curve").arg_max()).alias("wrong")
    found = _by_profile(tables, wrong)
    shares = {
        str(shape): float(
            found.filter(pl.col("class") == shape)["wrong"].to_numpy().mean()
        )
        for shape in ProfileShape
    }
    return Verdict(shares["ascent"] == shares["descent"] == 0, shares)


def _behaviours(source: str, number: str) -> tuple[Claim, ...]:
    return (
        Claim(
            "four-behaviours",
            source,
            f"More {number} can have no impact on the bandwidth, improve it, decrease "
            "it, or increase it up to a point: each class has members.",
            _all_classes,
        ),
        Claim(
            "the-number-matters",
            source,
            f"The bandwidth depends on the number of {number} (by more than 10 % for "
            "over 90 % of the profiles).",
            _number_matters,
        ),
    )


_FIG1: Final = "papers/2 section 2, Figure 1"
_FIG2: Final = f"papers/2 section 2, Figure 2 ({GENERATED})"
_FIG10: Final = "papers/2 section 6.2, Figure 10"

FIGURES: Final = {
    "p2-fig1": Reproduction(
        name="p2-fig1",
        title="Bandwidth by number of I/O nodes, 189 measured profiles",
        source=_FIG1,
        study=_table(IO_NODES),
        draw=lambda t: _draw(t, "I/O nodes n", ""),
        claims=list(_behaviours(_FIG1, "I/O nodes")),
    ),
    "p2-fig2": Reproduction(
        name="p2-fig2",
        title=f"Bandwidth by number of OSTs, 301 profiles ({GENERATED})",
        source=_FIG2,
        study=_table(OSTS),
        draw=lambda t: _draw(t, "OSTs n", GENERATED),
        claims=list(_behaviours(_FIG2, "OSTs")),
    ),
    "p2-fig10": Reproduction(
        name="p2-fig10",
        title="What algorithms are told of a profile if only its class is known",
        source=_FIG10,
        study=_table(IO_NODES),
        draw=_draw_classes,
        claims=[
            Claim(
                "curves-keep-their-class",
                _FIG10,
                "One function stands for all profiles of a class: it behaves as they "
                "do (1: yes).",
                _curves_keep_their_class,
            ),
            Claim(
                "best-number-kept",
                _FIG10,
                "Told the class, best-bandwidth decides differently only for some "
                "peak and neutral profiles (share of profiles whose n_perf changes).",
                _best_kept,
                note="The paper gives no rule for its classes. By ours a profile may "
                "rise throughout and yet fall a little at the end, or fall after a "
                "small rise: its own best number is then not the class's.",
            ),
        ],
    ),
}
