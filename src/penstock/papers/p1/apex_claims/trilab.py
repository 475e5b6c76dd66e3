# SPDX-License-Identifier: MIT
"""Figure 7 of papers/1 (6.3.4): MinYield over FairShare's on TRILAB, as checks.

And what the synthesis (6.3.8) says of the MinYield on both workloads.
"""

from __future__ import annotations

import math
from typing import Final

import polars as pl

from penstock.experiments.claims import Check, Claim, Tables, Verdict
from penstock.papers.p1.apex_claims.windows import (
    BANDS,
    BEST,
    BEYOND,
    COM,
    EIGHT,
    HIGH,
    LEARNT,
    LOOK,
    LOW,
    MACHINES,
    NEAR_ONE,
    NERSC,
    PERIODIC,
    SAME,
    SECOND,
    SEVEN,
    SILVERTON,
    SYNTHESIS,
    THIRD,
    TRACES,
    TRILAB,
    UNSATURATED,
    YIELD,
    Band,
    Numbers,
    all_pass,
    correlation,
    fair_values,
    fcfs_as_set10,
    flat,
    gain_grows,
    lowest_of,
    mean_of,
    ratio_by_band,
    ratios_of,
    rising,
    risk_of,
    second_risky,
    share_above,
    share_below,
    with_ratio,
)
from penstock.workloads.apex.table import job_classes, scaled_celio

__all__ = ["CLAIMS"]


def _fewer_lower(tables: Tables) -> Verdict:
    shares = {
        p: {t: share_below(ratios_of(tables, t, p)) for t in TRACES} for p in SEVEN
    }
    fewer = [s[TRILAB] < s[NERSC] for s in shares.values()]
    return Verdict(all(fewer), flat(shares))


def _gains_higher(band: Band, least: int) -> Check:
    def check(tables: Tables) -> Verdict:
        gaps = {
            p: mean_of(ratios_of(tables, TRILAB, p, band))
            - mean_of(ratios_of(tables, NERSC, p, band))
            for p in SEVEN
        }
        return Verdict(sum(gap > 0 for gap in gaps.values()) >= least, gaps)

    return check


def _greedy_com_few_lower(tables: Tables) -> Verdict:
    share = share_below(ratios_of(tables, TRILAB, COM, UNSATURATED))
    return Verdict(share <= 0.1, {"share lower, W<1": share})


def _greedy_com_drops(tables: Tables) -> Verdict:
    bands = {"0.75<=W<1": NEAR_ONE, "1<=W<1.25": (1.0, 1.25), "W>=1.25": BEYOND}
    means = {n: mean_of(ratios_of(tables, TRILAB, COM, b)) for n, b in bands.items()}
    falls = rising(reversed(means.values()))
    return Verdict(falls and means["W>=1.25"] < 0.9, means)


def _greedy_com_all_lower(tables: Tables) -> Verdict:
    rows = with_ratio(tables, TRILAB, COM)
    if rows.is_empty():
        return Verdict(holds=False, numbers={})
    not_lower = rows.filter(pl.col("ratio") >= 1 - SAME)["pressure"]
    last = max([1.0, *not_lower])
    share = mean_of(rows["pressure"].to_numpy() > last)
    return Verdict(share >= 0.01, {"beyond W": last, "share of windows": share})


def _second_gains_at_saturation(tables: Tables) -> Verdict:
    shares = {p: share_above(ratios_of(tables, TRILAB, p, HIGH)) for p in SECOND}
    return all_pass(shares, lambda share: share >= 0.9)


def _five_phases(tables: Tables) -> Verdict:
    hours = lowest_of(fair_values(tables, TRILAB, "window")) / 3600
    return Verdict(hours >= 5, {"shortest window (h)": hours})


def _checkpoints(tables: Tables) -> Numbers:
    """Return how long a checkpoint of each class takes at worst, over its period.

    A mean job, alone on the slowest storage of the machines in the table.
    """
    machines = [scaled_celio(t) for t in tables.rows["machine"].unique().to_list()]
    return {
        kind.name: max(
            kind.checkpoint * nodes * host.memory / host.platform.cap(nodes)
            for host in machines
            for nodes in [math.ceil(kind.cores / host.cores_per_node)]
        )
        / kind.period
        for kind in job_classes(TRILAB)
    }


def _checkpoints_vary(tables: Tables) -> Verdict:
    parts = _checkpoints(tables)
    return Verdict(max(parts.values()) >= 10 * min(parts.values()), parts)


def _checkpoints_short(tables: Tables) -> Verdict:
    return all_pass(_checkpoints(tables), lambda part: part <= 0.25)


def _third_slightly_lower(tables: Tables) -> Verdict:
    most = {LOOK: 0.01, PERIODIC: 0.1, BEST: 0.1}
    risks = {p: risk_of(ratios_of(tables, TRILAB, p, UNSATURATED)) for p in most}
    few = [risks[p]["share lower"] <= most[p] for p in most]
    slightly = [risk["lowest ratio"] >= 0.95 for risk in risks.values()]
    return Verdict(all(few) and all(slightly), flat(risks))


def _third_improves_until_saturation(tables: Tables) -> Verdict:
    shares = {p: share_above(ratios_of(tables, TRILAB, p, UNSATURATED)) for p in THIRD}
    most = min(shares[PERIODIC], shares[BEST])
    return Verdict(most > 0.5 and shares[LOOK] >= 0.9, shares)


def _greedy_yield_alike(tables: Tables) -> Verdict:
    means = ratio_by_band(tables, TRILAB, (YIELD, PERIODIC, BEST))
    gaps = {
        f"{policy} {name}": means[policy][name] - means[YIELD][name]
        for policy in (PERIODIC, BEST)
        for name in BANDS
    }
    return all_pass(gaps, lambda gap: abs(gap) <= 0.05)


def _pressure_matters_more(tables: Tables) -> Verdict:
    values: dict[str, Numbers] = {}
    for policy in (YIELD, *THIRD):
        values[policy] = {}
        for trace in TRACES:
            rows = with_ratio(tables, trace, policy)
            columns = rows["pressure"].to_numpy(), rows["ratio"].to_numpy()
            values[policy][trace] = correlation(*columns)
    more = [v[TRILAB] > v[NERSC] for v in values.values()]
    return Verdict(all(more), flat(values))


def _naive_riskier(tables: Tables) -> Verdict:
    shares = {p: share_below(ratios_of(tables, TRILAB, p, HIGH)) for p in SEVEN}
    naive = min(shares[p] for p in (COM, "fcfs", "set-10"))
    others = max(shares[p] for p in (YIELD, *THIRD))
    return Verdict(naive > others, shares)


def _mean_by_policy(rows: pl.DataFrame, column: str) -> Numbers:
    return {
        p: mean_of(rows.filter(pl.col("policy") == p)[column].to_numpy()) for p in EIGHT
    }


def _shares_at_best(tables: Tables) -> Numbers:
    """Return in which share of the windows each strategy has the best MinYield."""
    best = pl.col("min_yield").max().over("point", "instance")
    at_best = (pl.col("min_yield") >= best - SAME).alias("at_best")
    return _mean_by_policy(tables.rows.with_columns(at_best), "at_best")


def _look_ahead_best(tables: Tables) -> Verdict:
    shares = _shares_at_best(tables)
    return Verdict(shares[LOOK] >= max(shares.values()), shares)


def _look_ahead_closely_followed(tables: Tables) -> Verdict:
    shares = _shares_at_best(tables)
    means = _mean_by_policy(tables.rows, "min_yield")
    others = max(shares[p] for p in EIGHT if p not in THIRD)
    next_to_it = min(shares[PERIODIC], shares[BEST]) > others
    closely = means[LOOK] - min(means[PERIODIC], means[BEST]) <= 0.02
    numbers = {p: {"at best": shares[p], "mean": means[p]} for p in EIGHT}
    return Verdict(next_to_it and closely, flat(numbers))


def _greedy_com_reasonable(tables: Tables) -> Verdict:
    mean = mean_of(ratios_of(tables, TRILAB, COM, UNSATURATED))
    return Verdict(mean >= 1, {"mean ratio, W<1": mean})


def _greedy_com_risky(tables: Tables) -> Verdict:
    risk = risk_of(ratios_of(tables, NERSC, COM))
    return Verdict(risk["share lower"] >= 0.25 and risk["lowest ratio"] < 0.8, risk)


_FIG7: Final = "papers/1 section 6.3.4, Figure 7"

CLAIMS: Final = (
    Claim(
        "fewer-lower",
        _FIG7,
        "All strategies are lower than FairShare in a smaller share of the windows "
        "than on NERSC.",
        _fewer_lower,
        SILVERTON
        + "Without that class GreedyCom loses in 12 % of the windows, FCFS and Set-10 "
        "in about as many as on NERSC (0.41 to 0.43, 0.40). BestNextEvent almost never "
        "loses on NERSC, and in no variant tried more often than on TRILAB.",
    ),
    Claim(
        "gains-higher-at-low-pressure",
        _FIG7,
        "At low W (< 0.5) all strategies have a higher mean ratio than on NERSC.",
        _gains_higher(LOW, len(SEVEN)),
        SILVERTON + "In windows without one it holds.",
    ),
    Claim(
        "gains-higher-at-high-pressure",
        _FIG7,
        "At high W (>= 1) most strategies (4 of 7) have a higher mean ratio than on "
        "NERSC.",
        _gains_higher(HIGH, 4),
        MACHINES + "With that it holds, for 5 of 7.",
    ),
    Claim(
        "greedy-com-few-lower",
        _FIG7,
        "GreedyCom is lower than FairShare in a few windows only (10 %) until W = 1.",
        _greedy_com_few_lower,
        SILVERTON + "In windows without one it holds.",
    ),
    Claim(
        "greedy-com-drops",
        _FIG7,
        "Beyond W = 1 GreedyCom's ratio drops quickly (mean under 0.9 from W = 1.25).",
        _greedy_com_drops,
    ),
    Claim(
        "greedy-com-all-lower",
        _FIG7,
        "Eventually GreedyCom is lower than FairShare in all windows (there is a W of "
        "at least 1 beyond which it is, in 1 % of all windows or more).",
        _greedy_com_all_lower,
    ),
    Claim(
        "second-risky-at-low-pressure",
        _FIG7,
        "FCFS, Set-10 and GreedyYield often lower the MinYield at low W (at least 5 % "
        "of the windows with W < 0.5).",
        second_risky(TRILAB, LOW),
    ),
    Claim(
        "second-gain-grows",
        _FIG7,
        "The mean ratio of these three grows with W (W < 0.5, 0.5 to 1, W >= 1).",
        gain_grows(TRILAB, SECOND),
        SILVERTON + "In windows without one it holds.",
    ),
    Claim(
        "second-gains-at-saturation",
        _FIG7,
        "These three gain consistently beyond W = 1 (90 % of the windows).",
        _second_gains_at_saturation,
        SILVERTON
        + "In windows with W from 1 to 1.17, FCFS gains in all 21 without one and in "
        "none of 77 with one.",
    ),
    Claim(
        "fcfs-as-set10",
        _FIG7,
        "FCFS and Set-10 behave identically (MinYield within 0.005 in every window).",
        fcfs_as_set10(TRILAB, 0.005),
        LEARNT,
    ),
    Claim(
        "five-phases",
        _FIG7,
        "Every window is long enough for five phases (5 checkpoint periods, 5 h).",
        _five_phases,
    ),
    Claim(
        "checkpoints-vary",
        _FIG7,
        "The durations of checkpoints vary by an order of magnitude or more (over the "
        "period of 1 h, by class).",
        _checkpoints_vary,
    ),
    Claim(
        "checkpoints-short",
        _FIG7,
        "The slowest checkpoint is short against the period of checkpoints (a quarter "
        "of it at most).",
        _checkpoints_short,
        "Silverton alone: 2.1 times its memory in the authors' table, 0.2 of the "
        "period on Celio but 1 on M_10.",
    ),
    Claim(
        "third-slightly-lower",
        _FIG7,
        "Until W = 1, PeriodicGreedyYield and BestNextEvent are lower than FairShare "
        "in a few windows (10 %) and slightly (ratio 0.95), LookAheadGreedyYield in "
        "almost none (1 %).",
        _third_slightly_lower,
        "Four windows in 14,281 lose more than 5 %, the worst of them 9 %.",
    ),
    Claim(
        "third-improves-until-saturation",
        _FIG7,
        "Until W = 1 these three raise the MinYield in most windows (half), "
        "LookAheadGreedyYield in almost all (90 %).",
        _third_improves_until_saturation,
    ),
    Claim(
        "third-gain-grows",
        _FIG7,
        "Their mean ratio grows with W (W < 0.5, 0.5 to 1, W >= 1).",
        gain_grows(TRILAB, THIRD),
    ),
    Claim(
        "greedy-yield-alike",
        _FIG7,
        "GreedyYield performs similarly to PeriodicGreedyYield and BestNextEvent (mean "
        "ratios within 0.05 in W < 0.5, 0.5 to 1, W >= 1).",
        _greedy_yield_alike,
    ),
    Claim(
        "pressure-matters-more",
        _FIG7,
        "W has more impact on the ratio of the yield-based strategies than on NERSC "
        "(rank correlation).",
        _pressure_matters_more,
    ),
    Claim(
        "naive-riskier",
        _FIG7,
        "Beyond W = 1 the naive strategies (GreedyCom, FCFS, Set-10) are more often "
        "lower than FairShare than the yield-based ones.",
        _naive_riskier,
    ),
    Claim(
        "look-ahead-best",
        SYNTHESIS,
        "LookAheadGreedyYield has the best MinYield (to 0.001) of all strategies in "
        "the largest share of the windows of both workloads.",
        _look_ahead_best,
    ),
    Claim(
        "look-ahead-closely-followed",
        SYNTHESIS,
        "PeriodicGreedyYield and BestNextEvent follow closely: theirs is the best "
        "MinYield more often than that of the other five, and on average at most 0.02 "
        "under that of LookAheadGreedyYield.",
        _look_ahead_closely_followed,
    ),
    Claim(
        "greedy-com-reasonable",
        SYNTHESIS,
        "On TRILAB the MinYield of GreedyCom is reasonable until W = 1 (mean ratio of "
        "at least 1).",
        _greedy_com_reasonable,
    ),
    Claim(
        "greedy-com-risky",
        SYNTHESIS,
        "On NERSC GreedyCom is a risk for the MinYield (lower in a quarter of the "
        "windows, a ratio under 0.8 in some).",
        _greedy_com_risky,
    ),
)
