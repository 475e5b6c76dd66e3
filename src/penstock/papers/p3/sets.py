# SPDX-License-Identifier: MIT
"""Figure 1 of IO-SETS (section 4): Utilization and Stretch; and an ablation.

n_H is the number of applications with short iterations (about 10 s). The paper shows
200 results per policy, for n_H from 0 to 40, and does not say how many workloads have
which n_H. We take 20 for every n_H: those with the same number share their random draws
(the I/O ratios, for example), so that fewer would say little. At smoke scale we take
every tenth n_H. Set-10 knows the length of an iteration beforehand (``period=given``),
as in the paper. The ablation shows what sets, priorities and knowledge of the periods
contribute.

*Few* high-frequency jobs are n_H <= 10, *many* are n_H >= 30.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import (
    Tables,
    Verdict,
    policy_mean,
    present_values,
    require_rows,
)
from penstock.experiments.output.charts import (
    LABELS,
    footnote,
    parameter_boxes,
    policies_of,
    tidy,
)
from penstock.experiments.output.plots import colour_of
from penstock.experiments.reproduction import Scale
from penstock.experiments.study import Study, sweep
from penstock.papers.declaration import figure

__all__ = ["ablation", "fig1a", "fig1b"]

_EXCLUSIVE: Final = "exclusive-fcfs"
_FAIR: Final = "fair-share"
_SET_10: Final = "set-10:period=given"
_SETS_ONLY: Final = "set-fair-share:period=given"
_PRIORITIES_ONLY: Final = "share-priority:period=given"
_LEARNING: Final = "set-10"
_POLICIES: Final = (_EXCLUSIVE, _FAIR, _SET_10)
_PARTS: Final = (*_POLICIES, _LEARNING, _SETS_ONLY, _PRIORITIES_ONLY)
_MOST_HIGH: Final = 40
_N_HIGH: Final = {
    Scale.SMOKE: tuple(range(0, _MOST_HIGH + 1, 10)),
    Scale.PAPER: tuple(range(_MOST_HIGH + 1)),
}
_NOISES: Final = (0.0, 0.5)
#: Workloads per n_H.
_INSTANCES: Final = {Scale.SMOKE: 6, Scale.PAPER: 20}
#: Name -> the n_H that it stands for.
_FEW: Final = ("few (n_H <= 10)", pl.col("n_high") <= 10)
_MANY: Final = ("many (n_H >= 30)", pl.col("n_high") >= 30)
_LAST: Final = (f"n_H = {_MOST_HIGH}", pl.col("n_high") == _MOST_HIGH)


def _sets_study(scale: Scale) -> Study:
    points = sweep("io-sets", {}, {"n_high": _N_HIGH[scale]})
    return Study("p3-sets", points, _INSTANCES[scale], _POLICIES, yields=True)


def _results(tables: Tables, metric: str) -> pl.DataFrame:
    """Return a row per workload, with n_high and a column per policy."""
    key = ["point", "instance", "n_high"]
    wide = tables.rows.pivot(on="policy", index=key, values=metric)
    require_rows(wide)
    return wide


def _gains(tables: Tables, metric: str) -> pl.DataFrame:
    """Return the gain of Set-10 over Fair-Share on every workload, as a fraction.

    A low Stretch and a high Utilization are good.
    """
    ratio = pl.col(_SET_10) / pl.col(_FAIR) - 1
    gain = -ratio if metric == "stretch" else ratio
    return _results(tables, metric).select("n_high", gain.alias("gain"))


def _mean_gain(gains: pl.DataFrame, where: pl.Expr) -> float:
    mean: Any = present_values(gains.filter(where)["gain"]).mean()
    return float(mean)


def _largest_gains(tables: Tables, metric: str) -> tuple[float, float]:
    """Return the largest gain on one workload, and in the mean of one n_H."""
    gains = _gains(tables, metric)
    means = gains.group_by("n_high").agg(pl.col("gain").mean())
    one, mean = (
        float(present_values(frame["gain"]).to_numpy().max())
        for frame in (gains, means)
    )
    return one, mean


def _gain_fades(tables: Tables, metric: str) -> Verdict:
    """Compare the mean gain at the largest n_H with that for few."""
    gains = _gains(tables, metric)
    numbers = {
        _FEW[0]: _mean_gain(gains, _FEW[1]),
        _MANY[0]: _mean_gain(gains, _MANY[1]),
        _LAST[0]: _mean_gain(gains, _LAST[1]),
    }
    few, _, last = numbers.values()
    return Verdict(abs(last) <= 0.1 * few, {"mean gain": numbers})


def _exclusive_worst(tables: Tables, metric: str) -> Verdict:
    """Compare Exclusive-FCFS with the better other policy, in the mean for every n_H.

    The numbers also give the share of single workloads on which another policy is
    worse.
    """
    sign = -1.0 if metric == "stretch" else 1.0
    results = _results(tables, metric)
    worst_other = pl.min_horizontal(sign * pl.col(_FAIR), sign * pl.col(_SET_10))
    single = results.select((worst_other < sign * pl.col(_EXCLUSIVE)).mean()).item()
    means = results.group_by("n_high").agg(pl.col(*_POLICIES).mean())
    gaps = means.select(worst_other - sign * pl.col(_EXCLUSIVE)).to_series()
    least = float(gaps.to_numpy().min())
    numbers = {
        "least distance of the means": least,
        "single workloads not worst": float(single),
    }
    return Verdict(least > 0, numbers)


def _draw_results(metric: str) -> Any:
    """Return the function that draws all results against n_H, with their means."""

    def draw(tables: Tables) -> Figure:
        figure = Figure(figsize=(9, 4.2))
        figure.set_layout_engine("constrained")
        axis: Any = figure.subplots()
        policies = policies_of(tables.rows)
        for number, policy in enumerate(policies):
            rows = tables.rows.filter(pl.col("policy") == policy)
            places = rows["n_high"].to_numpy() + 0.2 * (
                number - (len(policies) - 1) / 2
            )
            colour = colour_of(policy)
            axis.plot(places, rows[metric].to_numpy(), ".", color=colour, ms=3)
            means = rows.group_by("n_high").agg(pl.col(metric).mean()).sort("n_high")
            line = means["n_high"].to_numpy(), means[metric].to_numpy()
            axis.plot(*line, "-", color=colour, linewidth=1.2, label=policy)
        axis.set_xlabel(LABELS["n_high"])
        axis.set_ylabel(LABELS[metric])
        tidy(axis, "y")
        figure.legend(loc="outside upper center", ncols=len(policies), frameon=False)
        footnote(figure, "dots: single workloads; lines: their means for every n_H")
        return figure

    return draw


# --- Figure 1a: Utilization -------------------------------------------------------

fig1a = figure(
    "p3-fig1a",
    study=_sets_study,
    draw=_draw_results("set_utilization"),
    summary=lambda tables: tables.rows.drop("yields"),
)


@fig1a.claim(
    "Set-10 has a better Utilization than Fair-Share by up to 4.4 % (largest gain on "
    "one workload: 2 to 7 %).",
    name="set10-better-by-4-per-cent",
)
def _utilization_gain(tables: Tables) -> Verdict:
    """Take the largest gain on one workload: "up to", and a point is a workload."""
    one, mean = _largest_gains(tables, "set_utilization")
    numbers = {"one workload": one, "mean of one n_H": mean}
    return Verdict(0.02 <= one <= 0.07, {"largest gain": numbers})


@fig1a.claim(
    "The difference disappears when n_H increases (the mean difference at n_H = 40 is "
    "at most a tenth of that for few high-frequency jobs).",
    reason="The gain shrinks steadily and is gone at n_H = 36, but then turns into a "
    "loss, of 0.5 % at n_H = 40.",
)
def _utilization_difference_fades(tables: Tables) -> Verdict:
    """Compare the gains for small and large n_H."""
    return _gain_fades(tables, "set_utilization")


@fig1a.claim(
    "Fair-Share and Set-10 have a high and stable Utilization (mean at least 0.9 for "
    "every n_H, range within 0.05)."
)
def _high_and_stable(tables: Tables) -> Verdict:
    """Take the lowest and the highest mean Utilization over all n_H."""
    numbers = {}
    for policy in (_FAIR, _SET_10):
        values = list(_means(tables, "set_utilization", policy).values())
        numbers[policy] = {"lowest": min(values), "highest": max(values)}
    stable = all(n["highest"] - n["lowest"] <= 0.05 for n in numbers.values())
    high = all(n["lowest"] >= 0.9 for n in numbers.values())
    return Verdict(high and stable, numbers)


def _means(tables: Tables, metric: str, policy: str) -> dict[float, float]:
    """Return the mean of `metric` of a policy for every n_H."""
    rows = tables.rows.filter(pl.col("policy") == policy)
    require_rows(rows)
    means = rows.group_by("n_high").agg(pl.col(metric).mean()).sort("n_high")
    return dict(means.iter_rows())


@fig1a.claim(
    "Exclusive-FCFS has a poor Utilization compared to the others (the lowest mean for "
    "every n_H)."
)
def _exclusive_worst_utilization(tables: Tables) -> Verdict:
    """Compare the means for every n_H."""
    return _exclusive_worst(tables, "set_utilization")


@fig1a.claim(
    "Exclusive-FCFS has a higher Utilization when I/O phases are mostly large (few "
    "high-frequency jobs) than otherwise (mean of n_H > 10)."
)
def _exclusive_better_when_large(tables: Tables) -> Verdict:
    """Compare the mean Utilization for few high-frequency jobs with all others."""
    rows = tables.rows.filter(pl.col("policy") == _EXCLUSIVE)
    parts = {
        _FEW[0]: _FEW[1],
        "otherwise (n_H > 10)": pl.col("n_high") > 10,
        "n_H from 11 to 29": pl.col("n_high").is_between(11, 29),
        _MANY[0]: _MANY[1],
    }
    numbers = {}
    for name, where in parts.items():
        mean: Any = present_values(rows.filter(where)["set_utilization"]).mean()
        numbers[name] = float(mean)
    few, otherwise, *_ = numbers.values()
    return Verdict(few > otherwise, {"Utilization": numbers})


# --- Figure 1b: Stretch -----------------------------------------------------------

fig1b = figure(
    "p3-fig1b",
    study=_sets_study,
    draw=_draw_results("stretch"),
    summary=lambda tables: tables.rows.drop("yields"),
)


@fig1b.claim(
    "Set-10 improves the Stretch over Fair-Share by 15.3 % (largest mean of one n_H: "
    "10 to 20 %).",
    name="set10-better-by-15-per-cent",
    reason="15.3 % is about the largest gain on a single workload; the mean over the "
    "workloads with the same n_H is about half as large.",
)
def _stretch_gain(tables: Tables) -> Verdict:
    """Take the largest mean: the paper does not say "up to" here."""
    one, mean = _largest_gains(tables, "stretch")
    numbers = {"one workload": one, "mean of one n_H": mean}
    return Verdict(0.10 <= mean <= 0.20, {"largest gain": numbers})


@fig1b.claim(
    "The gain of Set-10 is largest when there are mostly low-frequency jobs (mean for "
    "few high-frequency jobs above the mean over all n_H)."
)
def _gain_for_low_frequency(tables: Tables) -> Verdict:
    """Compare the mean gain for few high-frequency jobs with that over all."""
    gains = _gains(tables, "stretch")
    numbers = {
        _FEW[0]: _mean_gain(gains, _FEW[1]),
        "all": _mean_gain(gains, pl.lit(value=True)),
    }
    few, everywhere = numbers.values()
    return Verdict(few > everywhere, {"mean gain": numbers})


@fig1b.claim(
    "The difference disappears as n_H increases (the mean difference at n_H = 40 is at "
    "most a tenth of that for few high-frequency jobs).",
    reason="The gain shrinks steadily and is gone at n_H = 34, but then turns into a "
    "loss, of 2.2 % at n_H = 40.",
)
def _stretch_difference_fades(tables: Tables) -> Verdict:
    """Compare the gains for small and large n_H."""
    return _gain_fades(tables, "stretch")


@fig1b.claim(
    "Exclusive-FCFS has the worst Stretch in all cases (highest mean for every n_H)."
)
def _exclusive_worst_stretch(tables: Tables) -> Verdict:
    """Compare the means for every n_H."""
    return _exclusive_worst(tables, "stretch")


@fig1b.claim(
    "The Utilization is not correlated to the Stretch (|r| < 0.5 under Exclusive-FCFS)."
)
def _utilization_not_correlated(tables: Tables) -> Verdict:
    """Correlate both over all workloads under Exclusive-FCFS."""
    rows = tables.rows.filter(pl.col("policy") == _EXCLUSIVE)
    value = float(rows.select(pl.corr("set_utilization", "stretch")).item())
    return Verdict(abs(value) < 0.5, {"correlation": value})


@fig1b.claim(
    "Under Exclusive-FCFS the application with the largest Stretch is a high-frequency "
    "one (on every workload that has one)."
)
def _high_frequency_penalized(tables: Tables) -> Verdict:
    """Count the workloads on which the lowest yield is that of a high-frequency job.

    The high-frequency jobs are the first n_H applications of a workload.
    """
    rows = tables.rows.filter(
        (pl.col("policy") == _EXCLUSIVE) & (pl.col("n_high") >= 1)
    )
    require_rows(rows)
    slowest = np.array([np.argmin(yields) for yields in rows["yields"].to_list()])
    share = float(np.mean(slowest < rows["n_high"].to_numpy()))
    return Verdict(share == 1.0, {"workloads": rows.height, "share": share})


# --- Ablation ---------------------------------------------------------------------


def _ablation_study(scale: Scale) -> Study:
    points = sweep("io-sets", {}, {"noise": _NOISES, "n_high": _N_HIGH[scale]})
    return Study("p3-ablation", points, _INSTANCES[scale], _PARTS)


def _draw_ablation(tables: Tables) -> Figure:
    """Draw Utilization and Stretch for every tenth n_H, without and with noise."""
    rows = tables.rows.filter(pl.col("n_high") % 10 == 0)
    quiet = rows.filter(pl.col("noise") == 0.0)
    noisy = rows.filter(pl.col("noise") > 0.0)
    titled = {
        "n_high, no noise": quiet.rename({"n_high": "n_high, no noise"}),
        "n_high, noise 0.5": noisy.rename({"n_high": "n_high, noise 0.5"}),
    }
    return parameter_boxes(titled, ("set_utilization", "stretch"))


ablation = figure("p3-ablation", study=_ablation_study, draw=_draw_ablation)


def _change(means: dict[str, float]) -> float:
    """Return the larger of two means over the smaller one, minus 1."""
    low, high = sorted(means.values())
    return high / low - 1


@ablation.claim(
    "Sets and priorities together have a better mean Stretch than either alone."
)
def _both_parts_matter(tables: Tables) -> Verdict:
    """Compare Set-10 with sets only and with priorities only, without noise."""
    means = {p: policy_mean(tables.rows, "stretch", p, noise=0.0) for p in _PARTS}
    alone = (_SETS_ONLY, _PRIORITIES_ONLY)
    return Verdict(all(means[_SET_10] <= means[p] for p in alone), means)


@ablation.claim(
    "Averages are robust: noise of 0.5 changes the mean Stretch of Set-10 by less than "
    "5 %."
)
def _noise_matters_little(tables: Tables) -> Verdict:
    """Compare the mean Stretch with and without noise."""
    means = {
        f"noise {noise:g}": policy_mean(tables.rows, "stretch", _SET_10, noise=noise)
        for noise in _NOISES
    }
    return Verdict(_change(means) <= 0.05, means)


@ablation.claim(
    "Learning the periods during the run changes the mean Stretch of Set-10 by less "
    "than 5 %."
)
def _learning_matters_little(tables: Tables) -> Verdict:
    """Compare Set-10 with given and with learned periods."""
    means = {p: policy_mean(tables.rows, "stretch", p) for p in (_SET_10, _LEARNING)}
    return Verdict(_change(means) <= 0.05, means)
