# SPDX-License-Identifier: MIT
"""Figure 7 of papers/1 (6.3.4): MinYield over FairShare's on TRILAB, as checks.

And what the synthesis (6.3.8) says of the MinYield on both workloads.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import polars as pl

from penstock.experiments.claims import Check, Claim, Tables, Verdict
from penstock.experiments.figures.apex_claims.windows import (
    BANDS,
    BEST,
    BEYOND,
    COM,
    EIGHT,
    HIGH,
    LOOK,
    LOW,
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
    highest_of,
    lowest_of,
    mean_of,
    ratio_by_band,
    ratios_of,
    rising,
    second_risky,
    share_above,
    share_below,
    with_ratio,
)
from penstock.workloads.apex_data import job_classes, scaled_celio

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
    pressures = fair_values(tables, TRILAB, "pressure")
    if not pressures.size:
        return Verdict(holds=False, numbers={})
    top = float(np.percentile(pressures, 90))
    ratios = ratios_of(tables, TRILAB, COM, (max(top, 1.0), math.inf))
    numbers = {"from W": top, "highest ratio": highest_of(ratios)}
    return Verdict(numbers["highest ratio"] < 1, numbers)


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
    numbers: Numbers = {}
    holds = True
    for policy, most in ((LOOK, 0.01), (PERIODIC, 0.1), (BEST, 0.1)):
        ratios = ratios_of(tables, TRILAB, policy, UNSATURATED)
        below, worst = share_below(ratios), lowest_of(ratios)
        numbers |= {f"{policy} lower": below, f"{policy} lowest ratio": worst}
        holds = holds and below <= most and worst >= 0.95
    return Verdict(holds, numbers)


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


def _look_ahead_best(tables: Tables) -> Verdict:
    best = pl.col("min_yield").max().over("point", "instance")
    near = tables.rows.with_columns((pl.col("min_yield") >= best - SAME).alias("near"))
    shares = {
        p: mean_of(near.filter(pl.col("policy") == p)["near"].to_numpy()) for p in EIGHT
    }
    return Verdict(shares[LOOK] >= max(shares.values()), shares)


def _look_ahead_closely_followed(tables: Tables) -> Verdict:
    means = {
        p: mean_of(tables.rows.filter(pl.col("policy") == p)["min_yield"].to_numpy())
        for p in EIGHT
    }
    order = sorted(means, key=lambda p: -means[p])
    gaps = [means[LOOK] - means[p] for p in (PERIODIC, BEST)]
    holds = set(order[:3]) == set(THIRD) and all(0 <= g <= 0.02 for g in gaps)
    return Verdict(holds, means)


def _greedy_com_reasonable(tables: Tables) -> Verdict:
    mean = mean_of(ratios_of(tables, TRILAB, COM, UNSATURATED))
    return Verdict(mean >= 1, {"mean ratio, W<1": mean})


def _greedy_com_risky(tables: Tables) -> Verdict:
    ratios = ratios_of(tables, NERSC, COM)
    numbers = {"share lower": share_below(ratios), "lowest ratio": lowest_of(ratios)}
    holds = numbers["share lower"] >= 0.25 and numbers["lowest ratio"] < 0.8
    return Verdict(holds, numbers)


_FIG7: Final = "papers/1 section 6.3.4, Figure 7"

CLAIMS: Final = (
    Claim(
        "fewer-lower",
        _FIG7,
        "All strategies are lower than FairShare in a smaller share of the windows "
        "than on NERSC.",
        _fewer_lower,
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
        "In the end GreedyCom is lower than FairShare in all windows (the tenth with "
        "the highest W).",
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
        "LookAheadGreedyYield has the highest mean MinYield over all windows, closely "
        "(0.02) followed by PeriodicGreedyYield and BestNextEvent.",
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
