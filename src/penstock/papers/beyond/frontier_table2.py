# SPDX-License-Identifier: MIT
"""Every policy on the instances behind Table 2 of bandwidth sharing.

The table of the paper pairs a policy with an example that is bad for it. Here every
policy, including those beyond the papers, runs on every example
(`penstock.papers.p1.table2_examples`); where an example has an adversary, it plays
against the policy itself. The ratio is the objective in the best known schedule over
that under the policy; it is infinite if the policy has 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from penstock.analysis import measure
from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.output.charts import LABELS, policies_of
from penstock.experiments.reproduction import Scale
from penstock.papers.declaration import figure
from penstock.papers.p1.policies import ALL_POLICIES, BEST_NEXT_EVENT, PERIODIC
from penstock.papers.p1.table2_examples import (
    Case,
    example_1,
    example_2,
    example_3,
    example_4,
    example_5,
    example_6,
)
from penstock.policies import RECOMMENDED
from penstock.sim import simulate

__all__ = ["table2_of_all"]

_APPLICATIONS: Final = {Scale.SMOKE: 8, Scale.PAPER: 32}
_BEYOND: Final = ("earliest-deadline", "short-over-loss", "soft-deadline")
#: A small delta of periodic-greedy-yield: the table takes the limit 0.
_DELTA: Final = 2.0**-7
#: Larger ratios have the same colour.
_LARGEST: Final = 100.0
#: Ratios up to this one count as equal.
_ALIKE: Final = 1.02


def _periodic_case(policy: str, m: int) -> Case:
    """Return example 4, which is made for periodic-greedy-yield, for any policy."""
    case = example_4(m, _DELTA)
    return replace(case, policy=policy, ours=measure(simulate(case.instance, policy)))


def _returning_case(policy: str, m: int) -> Case:
    # RATIONALE: example 5 tries all orders of the applications, so it has few of them
    # whatever m is; for best-next-event their number must be even (see there).
    return example_5(policy, (3 if m < 16 else 5) - (policy == BEST_NEXT_EVENT))


#: Example -> function that builds its case from policy and m.
_EXAMPLES: Final[dict[int, Callable[[str, int], Case]]] = {
    1: lambda policy, m: example_1(policy, m, length=1000.0),
    2: lambda policy, m: example_2(policy, m, epsilon=1e-3),
    3: lambda policy, m: example_3(policy, m, epsilon=1e-4),
    4: _periodic_case,
    5: _returning_case,
    6: lambda policy, m: example_6(policy, m // 2, length=300.0),
}


def _table(scale: Scale) -> pl.DataFrame:
    """Return a row per policy, example and objective."""
    rows = [
        row
        for policy in (*ALL_POLICIES, *_BEYOND)
        for number in _EXAMPLES
        for row in _rows(policy, number, _APPLICATIONS[scale])
    ]
    return pl.DataFrame(rows)


def _rows(policy: str, number: int, m: int) -> Iterator[dict[str, Any]]:
    run = f"{policy}:delta={_DELTA}" if policy == PERIODIC else policy
    case = _EXAMPLES[number](run, m)
    for objective in case.predicted:
        yield {
            "policy": policy,
            "example": number,
            "objective": objective,
            "m": len(case.instance.applications),
            "ours": float(getattr(case.ours, objective)),
            "best": case.best(objective),
            "ratio": case.ratio(objective),
        }


def _ratios(tables: Tables, policy: str) -> dict[str, float]:
    """Return the ratios of a policy by example and objective."""
    rows = tables.rows.filter(pl.col("policy") == policy)
    return {
        f"example {row['example']} {LABELS[row['objective']]}": row["ratio"]
        for row in rows.iter_rows(named=True)
    }


def _draw(tables: Tables) -> Figure:
    """Draw the ratios: a row per policy, a column per example and objective."""
    policies = policies_of(tables.rows)
    columns = list(_ratios(tables, policies[0]))
    ratios = np.array([list(_ratios(tables, p).values()) for p in policies])
    figure = Figure(figsize=(1.25 * len(columns) + 2.6, 0.4 * len(policies) + 1.5))
    figure.set_layout_engine("constrained")
    axis: Any = figure.subplots()
    shown = np.clip(ratios, 1.0, _LARGEST)
    axis.imshow(shown, cmap="OrRd", norm=LogNorm(1.0, 3 * _LARGEST), aspect="auto")
    for (line, column), ratio in np.ndenumerate(ratios):
        text = "∞" if math.isinf(ratio) else f"{float(f'{ratio:.3g}'):g}"
        axis.text(column, line, text, ha="center", va="center", fontsize=9)
    heads = [name.replace(" ", "\n").replace("\n", " ", 1) for name in columns]
    axis.set_xticks(range(len(columns)), heads, fontsize=8)
    axis.set_yticks(range(len(policies)), policies)
    axis.xaxis.tick_top()
    axis.spines[:].set_visible(False)
    return figure


table2_of_all = figure("frontier-table2", rows=_table, draw=_draw)


@table2_of_all.claim(
    f"On no example is {RECOMMENDED} worse than greedy-yield (by more than 2 %)."
)
def _default_as_greedy_yield(tables: Tables) -> Verdict:
    """Compare the ratios of both where that of greedy-yield is finite."""
    default, greedy = (_ratios(tables, p) for p in (RECOMMENDED, "greedy-yield"))
    worse = {
        name: ratio / greedy[name]
        for name, ratio in default.items()
        if math.isfinite(greedy[name])
    }
    return Verdict(max(worse.values()) <= _ALIKE, worse)


@table2_of_all.claim(
    f"{RECOMMENDED} does not starve long operations in example 6, as best-next-event, "
    "greedy-com and look-ahead-greedy-yield do: it is within 2 % of the best known "
    "schedule."
)
def _default_does_not_starve(tables: Tables) -> Verdict:
    """Take the ratio of the default in example 6."""
    name = "example 6 MinYield"
    ratios = {p: _ratios(tables, p)[name] for p in (*ALL_POLICIES, *_BEYOND)}
    return Verdict(ratios[RECOMMENDED] <= _ALIKE, ratios)
