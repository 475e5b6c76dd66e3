# SPDX-License-Identifier: MIT
"""Figure 6 of papers/1 (6.3.3): MinYield over FairShare's on NERSC, as checks."""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.experiments.claims import Claim, Tables, Verdict
from penstock.papers.p1.apex_claims.windows import (
    ANY,
    BANDS,
    BEST,
    COM,
    HIGH,
    LOOK,
    LOW,
    NERSC,
    PERIODIC,
    RARE,
    SAME,
    SECOND,
    THIRD,
    Numbers,
    all_pass,
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
)

__all__ = ["CLAIMS"]


def _greedy_com_uniform(tables: Tables) -> Verdict:
    ratios = ratios_of(tables, NERSC, COM)
    if not ratios.size:
        return Verdict(holds=False, numbers={})
    first, third = np.percentile(ratios, (25, 75))
    inside = mean_of((ratios >= 0.9) & (ratios <= 1.1))
    numbers = {"share in 0.9-1.1": inside, "1st quartile": first, "3rd quartile": third}
    uniform = 0.925 <= first <= 0.975 and 1.025 <= third <= 1.075
    return Verdict(inside >= 0.75 and uniform, numbers)


def _greedy_com_unreliable(tables: Tables) -> Verdict:
    share = 1 - share_above(ratios_of(tables, NERSC, COM))
    return Verdict(share >= 0.5, {"share without a gain": share})


def _second_better_at_high_pressure(tables: Tables) -> Verdict:
    means = ratio_by_band(tables, NERSC, SECOND)
    good = [m["W>=1"] > 1 and m["W>=1"] > m["W<0.5"] for m in means.values()]
    return Verdict(all(good), flat(means))


def _second_risky_everywhere(tables: Tables) -> Verdict:
    worst = {
        f"{policy} {name}": lowest_of(ratios_of(tables, NERSC, policy, band))
        for policy in SECOND
        for name, band in BANDS.items()
    }
    return all_pass(worst, lambda ratio: ratio < 0.95)


def _second_gains_grow(tables: Tables) -> Verdict:
    numbers: Numbers = {}
    holds = True
    for policy in SECOND:
        gains = []
        for name, band in (("W<0.5", LOW), ("W>=1", HIGH)):
            ratios = ratios_of(tables, NERSC, policy, band)
            gains.append(mean_of(ratios[ratios > 1 + SAME]))
            numbers[f"{policy} {name}"] = gains[-1]
        holds = holds and rising(gains)
    return Verdict(holds, numbers)


def _third_improves(tables: Tables) -> Verdict:
    shares = {
        policy: {"lower": share_below(ratios), "higher": share_above(ratios)}
        for policy in THIRD
        for ratios in [ratios_of(tables, NERSC, policy)]
    }
    good = [s["lower"] <= 0.1 and s["higher"] > 0.5 for s in shares.values()]
    return Verdict(all(good), flat(shares))


def _best_next_event_riskiest(tables: Tables) -> Verdict:
    shares = {p: share_below(ratios_of(tables, NERSC, p)) for p in THIRD}
    others = max(shares[LOOK], shares[PERIODIC])
    return Verdict(shares[BEST] >= others, shares)


def _best_next_event_worst(tables: Tables) -> Verdict:
    worst = lowest_of(ratios_of(tables, NERSC, BEST))
    return Verdict(worst >= 0.95, {"lowest ratio": worst})


def _periodic_never_lower(tables: Tables) -> Verdict:
    risk = risk_of(ratios_of(tables, NERSC, PERIODIC))
    return Verdict(risk["share lower"] <= 0.01, risk)


_FIG6: Final = "papers/1 section 6.3.3, Figure 6"

CLAIMS: Final = (
    Claim(
        "greedy-com-uniform",
        _FIG6,
        "GreedyCom's ratio is about uniform between 0.9 and 1.1 (three quarters of the "
        "windows inside; quartiles 0.95 and 1.05, to 0.025).",
        _greedy_com_uniform,
        "Where W is low there is little to lose: 92 % of the ratios with W < 0.5 are "
        "within 0.01 of 1, and two in five windows are such. No reason found: tried "
        "other ages, more cores per node, jobs without I/O left out.",
    ),
    Claim(
        "greedy-com-unreliable",
        _FIG6,
        "GreedyCom does not improve the MinYield in at least half of the windows.",
        _greedy_com_unreliable,
    ),
    Claim(
        "second-risky",
        _FIG6,
        "FCFS, Set-10 and GreedyYield lower the MinYield in some windows (at least "
        "5 % of them).",
        second_risky(NERSC, ANY),
    ),
    Claim(
        "second-better-at-high-pressure",
        _FIG6,
        "As W grows these three become better than FairShare on average (W >= 1).",
        _second_better_at_high_pressure,
    ),
    Claim(
        "second-risky-everywhere",
        _FIG6,
        "These three may lose much at all W (a ratio under 0.95 in each of W < 0.5, "
        "0.5 to 1, W >= 1).",
        _second_risky_everywhere,
    ),
    Claim(
        "second-gains-grow",
        _FIG6,
        "Where these three gain, they gain more at high W (W >= 1 against W < 0.5).",
        _second_gains_grow,
    ),
    Claim(
        "fcfs-as-set10",
        _FIG6,
        "FCFS and Set-10 behave strictly identically (MinYield equal to 1e-9 in every "
        "window).",
        fcfs_as_set10(NERSC, 1e-9),
        "Of the windows that differ (3 %) almost all (98 %) are longer than 1 h, the "
        "period of checkpoints: there Set-10 can have seen a whole phase.",
    ),
    Claim(
        "third-improves",
        _FIG6,
        "LookAheadGreedyYield, PeriodicGreedyYield and BestNextEvent very probably "
        "raise the MinYield (lower in at most 10 % of the windows, higher in most).",
        _third_improves,
        RARE,
    ),
    Claim(
        "third-gain-grows",
        _FIG6,
        "Their mean ratio grows with W (W < 0.5, 0.5 to 1, W >= 1).",
        gain_grows(NERSC, THIRD),
    ),
    Claim(
        "best-next-event-riskiest",
        _FIG6,
        "Of these three, BestNextEvent lowers the MinYield most often.",
        _best_next_event_riskiest,
        RARE
        + "LookAheadGreedyYield loses much (over 5 %) where W >= 1. Ours finds the "
        "best next event exactly and almost never loses. No reason found: tried other "
        "ages, more cores per node, jobs without I/O left out.",
    ),
    Claim(
        "best-next-event-worst",
        _FIG6,
        "BestNextEvent keeps at least 95 % of FairShare's MinYield in every window.",
        _best_next_event_worst,
    ),
    Claim(
        "periodic-never-lower",
        _FIG6,
        "PeriodicGreedyYield is almost never (1 % of the windows) lower than "
        "FairShare.",
        _periodic_never_lower,
        RARE,
    ),
)
