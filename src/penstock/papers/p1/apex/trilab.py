# SPDX-License-Identifier: MIT
"""Figure 7 of bandwidth sharing (section 6.3.4): MinYield over fair-share on TRILAB.

The last four claims are those of the synthesis (section 6.3.8) about MinYield on both
workloads. `penstock.papers.p1.apex.windows` says what W and a ratio are.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray

from penstock.experiments.claims import Tables, Verdict, case
from penstock.papers.declaration import figure
from penstock.papers.p1.apex.bands import (
    BANDS,
    BEYOND,
    FIGURES_6_TO_10,
    HIGH,
    LOW,
    NEAR_ONE,
    NERSC,
    SAME,
    SYNTHESIS,
    TRACES,
    TRILAB,
    UNSATURATED,
    Band,
)
from penstock.papers.p1.apex.measures import (
    Numbers,
    correlation,
    highest_of,
    mean_or_nan,
    ratio_by_band,
    rising,
    risk_of,
    share_above,
    share_below,
)
from penstock.papers.p1.apex.study import apex_study, draw_ratios, ratios_by_window
from penstock.papers.p1.apex.verdicts import (
    all_pass,
    fcfs_as_set10,
    gain_grows,
    second_set_risky,
)
from penstock.papers.p1.apex.windows import (
    column,
    facts_of,
    ratios_of,
    shown,
    windows_of,
)
from penstock.papers.p1.policies import (
    ALL_BUT_FAIR_SHARE,
    ALL_POLICIES,
    BEST_NEXT_EVENT,
    GREEDY_COM,
    GREEDY_YIELD,
    LOOK_AHEAD,
    PERIODIC,
    SECOND_SET,
    THIRD_SET,
)
from penstock.workloads.apex.table import celio_successor, job_classes

__all__ = ["fig7"]

fig7 = figure(
    "p1-fig7",
    study=apex_study,
    prepare=shown(FIGURES_6_TO_10),
    draw=draw_ratios(TRILAB),
    summary=ratios_by_window(TRILAB),
)


@fig7.claim(
    "On TRILAB all policies are lower than fair-share in a smaller share of the "
    "windows than on NERSC.",
    reason="Only best-next-event is not: it is lower in 1.6 % of the NERSC windows and "
    "in 3.1 % of the TRILAB windows.",
)
def _fewer_lower(tables: Tables) -> Verdict:
    """Compare the shares of windows with a lower MinYield on both traces."""
    shares = {
        p: {t: share_below(ratios_of(tables, t, p)) for t in TRACES}
        for p in ALL_BUT_FAIR_SHARE
    }
    fewer = [s[TRILAB] < s[NERSC] for s in shares.values()]
    return Verdict(all(fewer), shares)


@fig7.claim_cases(
    case(
        "gains-higher-at-low-pressure",
        "At low W (< 0.75) all policies have a higher mean ratio on TRILAB than on "
        "NERSC.",
        reason="All but fcfs and set-10, which let all TRILAB jobs wait for the long "
        "checkpoints of Silverton.",
        band=LOW,
        least=len(ALL_BUT_FAIR_SHARE),
    ),
    case(
        "gains-higher-at-high-pressure",
        "At high W (>= 1) most policies (4 of 7) have a higher mean ratio on TRILAB "
        "than on NERSC.",
        band=HIGH,
        least=4,
    ),
)
def _gains_higher(tables: Tables, band: Band, least: int) -> Verdict:
    """Count the policies with a higher mean ratio on TRILAB."""
    gaps = {
        p: mean_or_nan(ratios_of(tables, TRILAB, p, band))
        - mean_or_nan(ratios_of(tables, NERSC, p, band))
        for p in ALL_BUT_FAIR_SHARE
    }
    return Verdict(sum(gap > 0 for gap in gaps.values()) >= least, gaps)


# --- greedy-com -----------------------------------------------------------------------


@fig7.claim(
    "Until W = 1, greedy-com is lower than fair-share in a few windows only (10 %).",
)
def _greedy_com_few_lower(tables: Tables) -> Verdict:
    """Take the share of windows with a lower MinYield for W < 1."""
    share = share_below(ratios_of(tables, TRILAB, GREEDY_COM, UNSATURATED))
    return Verdict(share <= 0.1, {"share lower, W<1": share})


@fig7.claim(
    "Beyond W = 1 the ratio of greedy-com drops quickly (mean under 0.9 from W = 1.25)."
)
def _greedy_com_drops(tables: Tables) -> Verdict:
    """Compare the mean ratios in three bands of W around 1."""
    bands = {"0.75<=W<1": NEAR_ONE, "1<=W<1.25": (1.0, 1.25), "W>=1.25": BEYOND}
    means = {
        n: mean_or_nan(ratios_of(tables, TRILAB, GREEDY_COM, b))
        for n, b in bands.items()
    }
    falls = rising(reversed(means.values()))
    return Verdict(falls and means["W>=1.25"] < 0.9, means)


@fig7.claim(
    "At the highest W (from 1.25), greedy-com is lower than fair-share in all windows."
)
def _greedy_com_all_lower(tables: Tables) -> Verdict:
    """Take the share of windows with a lower MinYield, and the highest ratio."""
    ratios = ratios_of(tables, TRILAB, GREEDY_COM, BEYOND)
    numbers = {"share lower": share_below(ratios), "highest ratio": highest_of(ratios)}
    return Verdict(numbers["share lower"] == 1, numbers)


# --- The second set: fcfs, set-10, greedy-yield ---------------------------------------


@fig7.claim(
    "fcfs, set-10 and greedy-yield often lower the MinYield at low W (at least 5 % of "
    "the windows with W < 0.75).",
    contradicted="Section 6.3.4 also says that greedy-yield performs similarly to "
    "periodic-greedy-yield and best-next-event on TRILAB, which lose in few windows of "
    "Figure 7: so it is here.",
)
def _second_risky_at_low_pressure(tables: Tables) -> Verdict:
    """Take the share of windows with a lower MinYield for W < 0.75."""
    return second_set_risky(tables, TRILAB, LOW)


@fig7.claim(
    "The mean ratio of fcfs, set-10 and greedy-yield grows with W (W < 0.75, 0.75 to "
    "1, W >= 1).",
)
def _second_gain_grows(tables: Tables) -> Verdict:
    """Compare the mean ratios from band to band."""
    return gain_grows(tables, TRILAB, SECOND_SET)


@fig7.claim(
    "fcfs, set-10 and greedy-yield gain consistently beyond W = 1 (in 90 % of the "
    "windows).",
)
def _second_gains_at_saturation(tables: Tables) -> Verdict:
    """Take the share of windows with a higher MinYield for W >= 1."""
    shares = {p: share_above(ratios_of(tables, TRILAB, p, HIGH)) for p in SECOND_SET}
    return all_pass(shares, lambda share: share >= 0.9)


@fig7.claim(
    "fcfs and set-10 behave identically (MinYield equal to 0.005 in every window).",
    name="fcfs-as-set10",
)
def _fcfs_same_as_set10(tables: Tables) -> Verdict:
    """Compare the MinYield of both window by window."""
    return fcfs_as_set10(tables, TRILAB)


# --- The checkpoints ------------------------------------------------------------------


def _checkpoint_parts(tables: Tables) -> Numbers:
    """Return the duration of a checkpoint over its period, for every class of jobs.

    It is that of a mean job which runs alone, on the machine of the table where it
    takes longest.
    """
    machines = [celio_successor(t) for t in tables.rows["machine"].unique().to_list()]
    return {
        job_class.name: max(
            job_class.checkpoint * nodes * machine.memory / machine.platform.cap(nodes)
            for machine in machines
            for nodes in [math.ceil(job_class.cores / machine.cores_per_node)]
        )
        / job_class.period_s
        for job_class in job_classes(TRILAB)
    }


@fig7.claim(
    "The durations of checkpoints differ by an order of magnitude or more (over the "
    "period of 1 h, by class)."
)
def _checkpoints_vary(tables: Tables) -> Verdict:
    """Compare the longest checkpoint with the shortest one."""
    parts = _checkpoint_parts(tables)
    return Verdict(max(parts.values()) >= 10 * min(parts.values()), parts)


@fig7.claim(
    "The slowest checkpoint is short against the period of checkpoints (a quarter of "
    "it at most).",
)
def _checkpoints_short(tables: Tables) -> Verdict:
    """Compare the duration of a checkpoint with its period, for every class."""
    return all_pass(_checkpoint_parts(tables), lambda part: part <= 0.25)


# --- The third set: look-ahead-greedy-yield, periodic-greedy-yield, best-next-event ---


@fig7.claim(
    "Until W = 1, periodic-greedy-yield and best-next-event are lower than fair-share "
    "in a few windows (10 %) and slightly (ratio 0.95), look-ahead-greedy-yield in "
    "almost none (1 %).",
    reason="periodic-greedy-yield and best-next-event are lower in few windows (2 % "
    "and 4 %), but in the worst ones by 10 to 12 %.",
)
def _third_slightly_lower(tables: Tables) -> Verdict:
    """Take the share of windows with a lower MinYield, and the lowest ratio."""
    most = {LOOK_AHEAD: 0.01, PERIODIC: 0.1, BEST_NEXT_EVENT: 0.1}
    risks = {p: risk_of(ratios_of(tables, TRILAB, p, UNSATURATED)) for p in most}
    few = [risks[p]["share lower"] <= most[p] for p in most]
    slightly = [risks[p]["lowest ratio"] >= 0.95 for p in (PERIODIC, BEST_NEXT_EVENT)]
    return Verdict(all(few) and all(slightly), risks)


@fig7.claim(
    "Until W = 1, look-ahead-greedy-yield raises the MinYield in almost all windows "
    "(90 %), periodic-greedy-yield and best-next-event in most of them (half)."
)
def _third_improves_until_saturation(tables: Tables) -> Verdict:
    """Take the share of windows with a higher MinYield for W < 1."""
    shares = {
        p: share_above(ratios_of(tables, TRILAB, p, UNSATURATED)) for p in THIRD_SET
    }
    most = min(shares[PERIODIC], shares[BEST_NEXT_EVENT])
    return Verdict(most > 0.5 and shares[LOOK_AHEAD] >= 0.9, shares)


@fig7.claim(
    "The mean ratio of look-ahead-greedy-yield, periodic-greedy-yield and "
    "best-next-event grows with W (W < 0.75, 0.75 to 1, W >= 1)."
)
def _third_gain_grows(tables: Tables) -> Verdict:
    """Compare the mean ratios from band to band."""
    return gain_grows(tables, TRILAB, THIRD_SET)


@fig7.claim(
    "greedy-yield performs similarly to periodic-greedy-yield and best-next-event "
    "(mean ratios within 0.05 in W < 0.75, 0.75 to 1, W >= 1)."
)
def _greedy_yield_alike(tables: Tables) -> Verdict:
    """Compare the mean ratios in every band of W."""
    means = ratio_by_band(tables, TRILAB, (GREEDY_YIELD, PERIODIC, BEST_NEXT_EVENT))
    gaps = [
        abs(means[policy][name] - means[GREEDY_YIELD][name])
        for policy in (PERIODIC, BEST_NEXT_EVENT)
        for name in BANDS
    ]
    return Verdict(all(gap <= 0.05 for gap in gaps), means)


@fig7.claim(
    "W has more impact on the ratio of the yield-based policies on TRILAB than on "
    "NERSC (rank correlation)."
)
def _pressure_matters_more(tables: Tables) -> Verdict:
    """Correlate ratio and W on both traces."""
    values = {
        policy: {
            trace: correlation(
                facts_of(tables, trace, "pressure"), ratios_of(tables, trace, policy)
            )
            for trace in TRACES
        }
        for policy in (GREEDY_YIELD, *THIRD_SET)
    }
    more = [v[TRILAB] > v[NERSC] for v in values.values()]
    return Verdict(all(more), values)


@fig7.claim(
    "Beyond W = 1 the policies that ignore yields (greedy-com, fcfs, set-10) are lower "
    "than fair-share more often than the yield-based ones."
)
def _naive_riskier(tables: Tables) -> Verdict:
    """Compare the shares of windows with a lower MinYield for W >= 1."""
    shares = {
        p: share_below(ratios_of(tables, TRILAB, p, HIGH)) for p in ALL_BUT_FAIR_SHARE
    }
    naive = min(shares[p] for p in (GREEDY_COM, "fcfs", "set-10"))
    others = max(shares[p] for p in (GREEDY_YIELD, *THIRD_SET))
    return Verdict(naive > others, shares)


# --- The synthesis --------------------------------------------------------------------


def _min_yields(rows: pl.DataFrame) -> dict[str, NDArray[np.float64]]:
    return {p: rows[column("min_yield", p)].to_numpy() for p in ALL_POLICIES}


def _shares_at_best(rows: pl.DataFrame) -> Numbers:
    """Return the share of windows in which each policy has the best MinYield."""
    values = _min_yields(rows)
    best = np.max(list(values.values()), axis=0)
    return {p: mean_or_nan(v >= best - SAME) for p, v in values.items()}


@fig7.claim(
    "look-ahead-greedy-yield has the best MinYield (to 0.001) in the largest share of "
    "the windows of both workloads together.",
    source=SYNTHESIS,
)
def _look_ahead_best(tables: Tables) -> Verdict:
    """Compare the shares of windows in which a policy has the best MinYield."""
    shares = _shares_at_best(tables.rows)
    by_trace = {t: _shares_at_best(windows_of(tables, t)) for t in TRACES}
    holds = shares[LOOK_AHEAD] >= max(shares.values())
    return Verdict(holds, {**by_trace, "both": shares})


@fig7.claim(
    "periodic-greedy-yield and best-next-event follow look-ahead-greedy-yield closely: "
    "they have the best MinYield more often than the other five, and a mean MinYield "
    "that is lower by at most 0.02.",
    source=SYNTHESIS,
)
def _look_ahead_closely_followed(tables: Tables) -> Verdict:
    """Compare shares of windows at the best MinYield, and mean MinYields."""
    shares = _shares_at_best(tables.rows)
    means = {p: mean_or_nan(v) for p, v in _min_yields(tables.rows).items()}
    others = max(shares[p] for p in ALL_POLICIES if p not in THIRD_SET)
    more_often = min(shares[PERIODIC], shares[BEST_NEXT_EVENT]) > others
    closely = means[LOOK_AHEAD] - min(means[PERIODIC], means[BEST_NEXT_EVENT]) <= 0.02
    numbers = {p: {"at best": shares[p], "mean": means[p]} for p in ALL_POLICIES}
    return Verdict(more_often and closely, numbers)


@fig7.claim(
    "On TRILAB the MinYield of greedy-com is reasonable until W = 1 (mean ratio of at "
    "least 1).",
    source=SYNTHESIS,
)
def _greedy_com_reasonable(tables: Tables) -> Verdict:
    """Take the mean ratio for W < 1."""
    mean = mean_or_nan(ratios_of(tables, TRILAB, GREEDY_COM, UNSATURATED))
    return Verdict(mean >= 1, {"mean ratio, W<1": mean})


@fig7.claim(
    "On NERSC greedy-com is a risk for the MinYield (lower in a quarter of the "
    "windows, a ratio under 0.8 in some).",
    source=SYNTHESIS,
)
def _greedy_com_risky(tables: Tables) -> Verdict:
    """Take the share of windows with a lower MinYield, and the lowest ratio."""
    risk = risk_of(ratios_of(tables, NERSC, GREEDY_COM))
    return Verdict(risk["share lower"] >= 0.25 and risk["lowest ratio"] < 0.8, risk)
