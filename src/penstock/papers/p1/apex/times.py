# SPDX-License-Identifier: MIT
"""Figure 10 of bandwidth sharing (section 6.3.7): simulation times on APEX.

The times are those of our simulator on this machine: they differ from run to run. The
last two claims are those of the synthesis (section 6.3.8) about the cost of policies.
"""

from __future__ import annotations

import math
from typing import Final

from penstock.experiments.claims import Tables, Verdict, case
from penstock.papers.declaration import figure
from penstock.papers.p1.apex.bands import FIGURES_6_TO_10, SYNTHESIS, TRACES
from penstock.papers.p1.apex.measures import Numbers, Table, highest_of, means_of
from penstock.papers.p1.apex.study import (
    apex_study,
    draw_by_pressure,
    means_by_pressure,
)
from penstock.papers.p1.apex.verdicts import all_cells_pass, all_pass
from penstock.papers.p1.apex.windows import column, shown, values_of
from penstock.papers.p1.policies import (
    ALL_POLICIES,
    BEST_NEXT_EVENT,
    GREEDY_YIELD,
    LOOK_AHEAD,
    PERIODIC,
)

__all__ = ["fig10"]


_SECONDS: Final = {"": "seconds"}

fig10 = figure(
    "p1-fig10",
    study=apex_study,
    prepare=shown(FIGURES_6_TO_10),
    draw=draw_by_pressure(_SECONDS, logarithmic=True),
    summary=means_by_pressure(_SECONDS),
)

_OTHERS: Final = tuple(
    p for p in ALL_POLICIES if p not in (BEST_NEXT_EVENT, LOOK_AHEAD)
)
_WHY_COMPILED: Final = (
    "Times are those of our simulator, which is compiled: about 0.3 ms of every run is "
    "the same for all policies and hides the difference."
)
_WHY_TWICE: Final = (
    "Times are those of our simulator, which is compiled: on NERSC all policies but "
    "best-next-event take 0.25 to 0.4 ms, and on TRILAB periodic-greedy-yield, which "
    "decides twice as often, takes a little longer than look-ahead-greedy-yield."
)


@fig10.claim_cases(
    case(
        "best-next-event-slowest",
        "best-next-event takes the longest time in the mean, on both workloads.",
        policy=BEST_NEXT_EVENT,
        others=(LOOK_AHEAD, *_OTHERS),
        least=1.0,
    ),
    case(
        "best-next-event-by-far",
        "best-next-event is the slowest by far (at least 10 times "
        "look-ahead-greedy-yield).",
        reason=_WHY_COMPILED,
        policy=BEST_NEXT_EVENT,
        others=(LOOK_AHEAD,),
        least=10.0,
    ),
    case(
        "look-ahead-second",
        "look-ahead-greedy-yield takes the second longest time, on both workloads.",
        reason=_WHY_TWICE,
        policy=LOOK_AHEAD,
        others=_OTHERS,
        least=1.0,
    ),
    case(
        "others-faster",
        "All policies but best-next-event are an order of magnitude faster than "
        "look-ahead-greedy-yield.",
        reason=_WHY_COMPILED,
        policy=LOOK_AHEAD,
        others=_OTHERS,
        least=10.0,
    ),
    case(
        "look-ahead-costlier",
        "look-ahead-greedy-yield costs more time than periodic-greedy-yield, although "
        "that one decides more often.",
        source=SYNTHESIS,
        reason=_WHY_TWICE,
        policy=LOOK_AHEAD,
        others=(PERIODIC,),
        least=1.0,
    ),
)
def _slower(
    tables: Tables, policy: str, others: tuple[str, ...], least: float
) -> Verdict:
    """Check that a policy takes at least `least` times as long as each other policy."""
    times = {trace: _milliseconds(tables, trace) for trace in TRACES}
    is_slower = [
        means[policy] >= least * means[p] for means in times.values() for p in others
    ]
    table = {
        trace: {f"{p} (ms)": means[p] for p in (policy, *others)}
        for trace, means in times.items()
    }
    return Verdict(all(is_slower), table)


def _milliseconds(tables: Tables, trace: str) -> Numbers:
    """Return the mean time of a simulation in ms, for every policy."""
    return {p: 1e3 * v for p, v in means_of(tables, trace, "seconds").items()}


@fig10.claim("best-next-event never takes more than 60 s for a window.")
def _under_a_minute(tables: Tables) -> Verdict:
    """Take the longest simulation."""
    longest = highest_of(tables.rows[column("seconds", BEST_NEXT_EVENT)].to_numpy())
    return Verdict(longest <= 60, {"longest (s)": longest})


@fig10.claim(
    "best-next-event is fast enough to be used in practice (simulating a window takes "
    "under 1 % of its length)."
)
def _best_next_event_practical(tables: Tables) -> Verdict:
    """Compare the time of a simulation with the length of its window."""
    seconds = tables.rows[column("seconds", BEST_NEXT_EVENT)]
    part = highest_of((seconds / tables.rows["window"]).to_numpy())
    return Verdict(part <= 0.01, {"largest part of the window": part})


@fig10.claim(
    "periodic-greedy-yield can be called with a period of milliseconds (under 1 ms per "
    "decision, all included)."
)
def _periodic_short(tables: Tables) -> Verdict:
    """Divide the time of all simulations by the number of decisions."""
    numbers: Numbers = {}
    for trace in TRACES:
        decisions = float(values_of(tables, trace, "decisions", PERIODIC).sum())
        seconds = float(values_of(tables, trace, "seconds", PERIODIC).sum())
        numbers[f"{trace} (ms)"] = 1e3 * seconds / decisions if decisions else math.nan
    return all_pass(numbers, lambda value: value < 1)


@fig10.claim(
    "periodic-greedy-yield decides twice as often as the other greedy policies (1.5 to "
    "2.5 times).",
    source=SYNTHESIS,
)
def _periodic_twice(tables: Tables) -> Verdict:
    """Compare the mean numbers of decisions."""
    numbers: Table = {}
    for trace in TRACES:
        decisions = means_of(tables, trace, "decisions")
        numbers[trace] = {
            f"over {p}": decisions[PERIODIC] / max(decisions[p], 1.0)
            for p in (GREEDY_YIELD, LOOK_AHEAD)
        }
    return all_cells_pass(numbers, lambda value: 1.5 <= value <= 2.5)
