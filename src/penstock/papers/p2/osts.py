# SPDX-License-Identifier: MIT
"""Figures 12 and 13 of target allocation (section 6.3): OSTs instead of I/O nodes.

Our OST profiles are generated from a fit (`penstock.workloads.profiles.ost_profiles`);
the paper measured its profiles on PlaFRIM. All allocations use the placement
greedy-non-clairvoyant (GNC).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.output.charts import LABELS
from penstock.experiments.placement_study import PlacementStudy
from penstock.experiments.reproduction import Scale
from penstock.papers.declaration import figure
from penstock.papers.p2.charts import LoadPanel, load_lines
from penstock.papers.p2.study import (
    ALLOCATIONS,
    BEST_BANDWIDTH,
    GENERATED,
    IO_NODES,
    N_SYS,
    OSTS,
    STATIC,
    T_CPU,
    case_study,
    means,
    placed,
    relative,
    spread,
    summary,
)

__all__ = ["fig12", "fig13"]

_SLOWDOWN: Final = "mean_io_slowdown"
_IDLETIME: Final = "machine_idletime"
_BOTH: Final = (_SLOWDOWN, _IDLETIME)
_NOTE: Final = (
    "Our OST profiles differ from the paper's: they are generated from fits to other "
    "machines. Most of these gain with every further OST up to 8, so that "
    "best-bandwidth takes nearly all OSTs."
)


def _both_studies(scale: Scale) -> tuple[PlacementStudy, ...]:
    return case_study(OSTS)(scale), case_study(IO_NODES)(scale)


def _of_case(tables: Tables, case: str) -> pl.DataFrame:
    """Return the rows of a case with GNC; without mckp, which is far worse."""
    rows = placed(tables.rows).filter(pl.col("case") == case)
    return rows.filter(pl.col("allocation").is_in(ALLOCATIONS))


def _outcome_table(tables: Tables) -> pl.DataFrame:
    rows = _of_case(tables, OSTS)
    return pl.concat([summary(rows, metric, "allocation") for metric in _BOTH])


def _draw_outcome(tables: Tables) -> Figure:
    table = _outcome_table(tables)
    labels = ("Mean-I/O-SlowDown", "Machine-Idletime (fraction of node time)")
    panels = [
        LoadPanel(table.filter(pl.col("metric") == metric), "allocation", label)
        for metric, label in zip(_BOTH, labels, strict=True)
    ]
    return load_lines(panels, GENERATED)


def _difference_table(tables: Tables) -> pl.DataFrame:
    """Return the mean with OSTs over that with I/O nodes, minus 1, by load.

    The two cases have different sets, so means are compared, not pairs. ``error`` is
    half the 95 % confidence interval; ``low`` and ``high`` are its ends.
    """
    key = ["metric", "allocation", "bin"]
    osts, nodes = (
        pl.concat([summary(_of_case(tables, c), m, "allocation") for m in _BOTH])
        for c in (OSTS, IO_NODES)
    )
    joined = osts.join(nodes, on=key, suffix="_nodes", maintain_order="left")
    ratio = pl.col("mean") / pl.col("mean_nodes")
    parts = (pl.col(f"error{s}") / pl.col(f"mean{s}") for s in ("", "_nodes"))
    error = ratio * sum((part**2 for part in parts), start=pl.lit(0.0)).sqrt()
    return (
        joined.select(
            *key,
            pl.min_horizontal("sets", "sets_nodes").alias("sets"),
            (pl.col("left_out") + pl.col("left_out_nodes")).alias("left_out"),
            pl.min_horizontal("complete", "complete_nodes").alias("complete"),
            (ratio - 1).alias("mean"),
            error.alias("error"),
        )
        .with_columns(
            (pl.col("mean") - pl.col("error")).alias("low"),
            (pl.col("mean") + pl.col("error")).alias("high"),
        )
        .sort(key)
    )


def _draw_difference(tables: Tables) -> Figure:
    table = _difference_table(tables)
    panels = [
        LoadPanel(
            table.filter(pl.col("metric") == metric),
            "allocation",
            f"{LABELS[metric]} with OSTs over\nthat with I/O nodes, minus 1 (%)",
            per_cent=True,
            error=True,
        )
        for metric in _BOTH
    ]
    return load_lines(panels, GENERATED)


# --- Figure 12 --------------------------------------------------------------------

fig12 = figure(
    "p2-fig12", study=case_study(OSTS), draw=_draw_outcome, summary=_outcome_table
)


def _over_n_sys(tables: Tables, case: str) -> dict[float, float]:
    """Return the slowdown of best-bandwidth over that of n-sys, minus 1, by load."""
    rows = _of_case(tables, case)
    first, base = (
        rows.filter(pl.col("allocation") == name) for name in (BEST_BANDWIDTH, N_SYS)
    )
    ratios = relative(first, base, _SLOWDOWN)
    return means(ratios, "ratio", "allocation").get(BEST_BANDWIDTH, {})


def _by_load(ratios: dict[float, float]) -> dict[str, float]:
    return {f"load {load:g}": ratio for load, ratio in ratios.items()}


@fig12.claim(
    "When there is little I/O stress best-bandwidth performs better than n-sys "
    "(slowdown over that of n-sys at the lowest load).",
    reason=_NOTE,
)
def _bba_better_under_little_stress(tables: Tables) -> Verdict:
    """Compare best-bandwidth with n-sys at the lowest load."""
    ratios = _over_n_sys(tables, OSTS)
    return Verdict(ratios[min(ratios)] < 0, _by_load(ratios))


@fig12.claim(
    "As the stress increases, the performance of best-bandwidth quickly degrades "
    "(behind n-sys at all loads from 0.45)."
)
def _bba_degrades_quickly(tables: Tables) -> Verdict:
    """Compare best-bandwidth with n-sys at loads from 0.45."""
    ratios = _over_n_sys(tables, OSTS)
    late = [ratio for load, ratio in ratios.items() if load >= 0.45]
    return Verdict(all(ratio > 0 for ratio in late), _by_load(ratios))


@fig12.claim(
    "t-cpu matches best-bandwidth where best-bandwidth is ahead of n-sys (at most 5 % "
    "behind), and is better elsewhere (slowdown over that of best-bandwidth)."
)
def _ta_matches_bba_when_needed(tables: Tables) -> Verdict:
    """Compare t-cpu with best-bandwidth at every load."""
    values = means(_of_case(tables, OSTS), _SLOWDOWN, "allocation")
    ratios, holds = {}, []
    for load, ahead in _over_n_sys(tables, OSTS).items():
        ratios[load] = values[T_CPU][load] / values[BEST_BANDWIDTH][load] - 1
        holds.append(ratios[load] <= (0.05 if ahead < 0 else 0.0))
    return Verdict(bool(holds) and all(holds), _by_load(ratios))


def _static_behind_best(tables: Tables, case: str) -> dict[str, float]:
    """Return how far static is behind the best allocation, for both metrics.

    At every load this is the mean of static over that of the best, minus 1. The keys
    end with "mean" and "largest" over the loads.
    """
    numbers: dict[str, float] = {}
    for metric in _BOTH:
        values = means(_of_case(tables, case), metric, "allocation")
        gaps = [
            mean
            / min(values[name][load] for name in ALLOCATIONS if load in values[name])
            - 1
            for load, mean in values[STATIC].items()
        ]
        label = f"{case}, {LABELS[metric]}"
        numbers[f"{label}, mean"] = float(np.mean(gaps))
        numbers[f"{label}, largest"] = max(gaps)
    return numbers


@fig12.claim(
    "static is excellent with OSTs (behind the best allocation by at most 10 %, in the "
    "mean of the loads).",
    reason=_NOTE,
)
def _static_excellent(tables: Tables) -> Verdict:
    """Compare static with the best allocation in both metrics."""
    numbers = _static_behind_best(tables, OSTS)
    gaps = [value for key, value in numbers.items() if key.endswith("mean")]
    return Verdict(max(gaps) <= 0.1, numbers)


# --- Figure 13 --------------------------------------------------------------------

fig13 = figure(
    "p2-fig13", study=_both_studies, draw=_draw_difference, summary=_difference_table
)


@fig13.claim(
    "All differences are very low, below 5 % (means at every load; over the loads: "
    "mean, 10th and 90th percentile).",
    reason=_NOTE,
)
def _differences_below_5_per_cent(tables: Tables) -> Verdict:
    """Check the difference of every allocation but the random one at every load."""
    table = _difference_table(tables).filter(pl.col("allocation") != "random")
    numbers: dict[str, float] = {}
    for metric in _BOTH:
        for name in (STATIC, BEST_BANDWIDTH, N_SYS, T_CPU):
            selected = table.filter(
                pl.col("metric") == metric, pl.col("allocation") == name
            )
            numbers |= spread(f"{LABELS[metric]}, {name}", selected["mean"])
    return Verdict(bool((table["mean"].abs() < 0.05).all()), numbers)


@fig13.claim(
    "The difference of best-bandwidth increases with the I/O-load: OSTs are more "
    "sensitive to contention (rank correlation at least 0.5).",
    reason="It increases up to a load of about 0.6. At higher loads the targets are "
    "busy in both cases and the difference shrinks.",
)
def _bba_difference_grows(tables: Tables) -> Verdict:
    """Correlate the difference of the slowdowns with the load."""
    table = _difference_table(tables).filter(
        pl.col("metric") == _SLOWDOWN, pl.col("allocation") == BEST_BANDWIDTH
    )
    numbers = _by_load(dict(table.select("bin", "mean").iter_rows()))
    correlation = float(spearmanr(table["bin"], table["mean"]).statistic)
    return Verdict(correlation >= 0.5, {**numbers, "rank correlation": correlation})


def _cut_off(tables: Tables, case: str) -> float:
    """Return the highest load at which best-bandwidth is ahead of n-sys; 0 if none."""
    ratios = _over_n_sys(tables, case)
    return max((load for load, ratio in ratios.items() if ratio < 0), default=0.0)


@fig13.claim(
    "best-bandwidth falls behind n-sys at a much lower I/O-load than with I/O nodes "
    "(last load at which it is ahead: half as high or less)."
)
def _earlier_cut_off(tables: Tables) -> Verdict:
    """Compare the last loads at which best-bandwidth is ahead."""
    numbers = {case: _cut_off(tables, case) for case in (OSTS, IO_NODES)}
    return Verdict(numbers[OSTS] <= 0.5 * numbers[IO_NODES], numbers)


@fig13.claim(
    "static behaves differently with I/O nodes: its slowdown is within 10 % of the "
    "best with OSTs only.",
    reason=_NOTE,
)
def _static_unreliable(tables: Tables) -> Verdict:
    """Compare static with the best allocation, with OSTs and with I/O nodes."""
    osts, nodes = (_static_behind_best(tables, case) for case in (OSTS, IO_NODES))
    label = f"{LABELS[_SLOWDOWN]}, mean"
    holds = osts[f"{OSTS}, {label}"] <= 0.1 < nodes[f"{IO_NODES}, {label}"]
    return Verdict(holds, osts | nodes)
