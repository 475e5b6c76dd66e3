# SPDX-License-Identifier: MIT
"""Figure 10 of papers/1 (6.3.7): the times of simulations, as checks.

And what the synthesis (6.3.8) says of the costs of greedy strategies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

import polars as pl

from penstock.experiments.claims import Check, Claim, Tables, Verdict
from penstock.papers.p1.apex_claims.windows import (
    BEST,
    EIGHT,
    LOOK,
    PERIODIC,
    SYNTHESIS,
    TRACES,
    YIELD,
    Numbers,
    all_pass,
    flat,
    highest_of,
    mean_of,
    means_of,
    timed,
    windows_of,
)

__all__ = ["CLAIMS"]


def _milliseconds(tables: Tables, trace: str) -> Numbers:
    """Return the mean time of a simulation of every strategy (ms)."""
    rows = timed(tables)
    return {
        p: 1e3 * mean_of(windows_of(rows, trace, p)["seconds"].to_numpy())
        for p in EIGHT
    }


def _times_compare(first: str, others: Iterable[str], least: float) -> Check:
    """Return a check: `first` takes at least `least` times as long as all `others`."""

    def check(tables: Tables) -> Verdict:
        times = {trace: _milliseconds(tables, trace) for trace in TRACES}
        slower = [
            mine[first] >= least * mine[p] for mine in times.values() for p in others
        ]
        shown = {
            t: {f"{p} (ms)": mine[p] for p in (first, *others)}
            for t, mine in times.items()
        }
        return Verdict(all(slower), flat(shown))

    return check


def _best_next_event_times(tables: Tables) -> pl.DataFrame:
    return timed(tables).filter(pl.col("policy") == BEST)


def _under_a_minute(tables: Tables) -> Verdict:
    longest = highest_of(_best_next_event_times(tables)["seconds"].to_numpy())
    return Verdict(longest <= 60, {"longest (s)": longest})


def _practical(tables: Tables) -> Verdict:
    rows = _best_next_event_times(tables)
    part = highest_of((rows["seconds"] / rows["window"]).to_numpy())
    return Verdict(part <= 0.01, {"largest part of the window": part})


def _periodic_short(tables: Tables) -> Verdict:
    rows = timed(tables).filter(pl.col("policy") == PERIODIC)
    numbers: Numbers = {}
    for trace in TRACES:
        mine = rows.filter(pl.col("trace") == trace)
        decisions = float(mine["decisions"].sum())
        seconds = float(mine["seconds"].sum())
        numbers[f"{trace} (ms)"] = 1e3 * seconds / decisions if decisions else math.nan
    return all_pass(numbers, lambda value: value < 1)


def _periodic_twice(tables: Tables) -> Verdict:
    numbers: Numbers = {}
    for trace in TRACES:
        decisions = means_of(tables, trace, "decisions")
        numbers |= {
            f"{trace} over {p}": decisions[PERIODIC] / max(decisions[p], 1.0)
            for p in (YIELD, LOOK)
        }
    return all_pass(numbers, lambda value: 1.5 <= value <= 2.5)


_FIG10: Final = "papers/1 section 6.3.7, Figure 10"
_OTHERS: Final = tuple(p for p in EIGHT if p not in (BEST, LOOK))
_COMPILED: Final = (
    "Times are those of our simulator, which is compiled: about 0.3 ms of every run is "
    "the same for all strategies and hides what they cost."
)

CLAIMS: Final = (
    Claim(
        "best-next-event-slowest",
        _FIG10,
        "BestNextEvent takes the longest time in the mean, on both workloads.",
        _times_compare(BEST, (LOOK, *_OTHERS), 1.0),
    ),
    Claim(
        "best-next-event-by-far",
        _FIG10,
        "BestNextEvent is the slowest by far (at least 10 times LookAheadGreedyYield).",
        _times_compare(BEST, (LOOK,), 10.0),
        _COMPILED,
    ),
    Claim(
        "under-a-minute",
        _FIG10,
        "BestNextEvent never takes more than 60 s for a window.",
        _under_a_minute,
    ),
    Claim(
        "look-ahead-second",
        _FIG10,
        "LookAheadGreedyYield takes the second longest time, on both workloads.",
        _times_compare(LOOK, _OTHERS, 1.0),
        _COMPILED,
    ),
    Claim(
        "others-faster",
        _FIG10,
        "All other strategies are an order of magnitude faster than "
        "LookAheadGreedyYield.",
        _times_compare(LOOK, _OTHERS, 10.0),
        _COMPILED,
    ),
    Claim(
        "best-next-event-practical",
        _FIG10,
        "BestNextEvent is fast enough to be used in practice (simulating a window "
        "takes under 1 % of its length).",
        _practical,
    ),
    Claim(
        "periodic-short",
        _FIG10,
        "PeriodicGreedyYield can be called with a period of milliseconds (under 1 ms "
        "per decision, all included).",
        _periodic_short,
    ),
    Claim(
        "periodic-twice",
        SYNTHESIS,
        "PeriodicGreedyYield decides twice as often as the other greedy strategies "
        "(1.5 to 2.5 times).",
        _periodic_twice,
    ),
    Claim(
        "look-ahead-costlier",
        SYNTHESIS,
        "LookAheadGreedyYield is more costly than PeriodicGreedyYield all the same.",
        _times_compare(LOOK, (PERIODIC,), 1.0),
        _COMPILED,
    ),
)
