# SPDX-License-Identifier: MIT
"""The instances of papers/1 Table 2, and what every policy does on them.

The table of the paper pairs a policy with the example that is bad for it; here every
policy, those beyond the papers too, meets every example
(`penstock.papers.p1.table2_examples`; an adversary plays against the policy itself
where the example asks for one). The ratio: the objective in the best schedule that we
know over that under the policy; infinite where the policy has 0.
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
from penstock.experiments.claims import Claim, Tables, Verdict
from penstock.experiments.output.charts import LABELS, policies_of
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.p1.policies import EIGHT
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

__all__ = ["FIGURES"]

_SOURCE: Final = "beyond the papers: docs/background/beyond.md"
_APPLICATIONS: Final = {Scale.SMOKE: 8, Scale.PAPER: 32}
_BEYOND: Final = ("earliest-deadline", "short-over-loss", "soft-deadline")
#: The table takes the limit 0 of delta.
_DELTA: Final = 2.0**-7
#: Ratios from here on have one colour.
_LARGEST: Final = 100.0
#: How much worse than the best schedule known counts as doing as well.
_ALIKE: Final = 1.02


def _periodic_case(policy: str, m: int) -> Case:
    """Return example 4 with a policy that it was not made for."""
    case = example_4(m, _DELTA)
    return replace(case, policy=policy, ours=measure(simulate(case.instance, policy)))


def _returning_case(policy: str, m: int) -> Case:
    # All orders of the applications are tried: few of them, whatever m. For
    # best-next-event these are good enough with an even number only.
    return example_5(policy, (3 if m < 16 else 5) - (policy == "best-next-event"))


#: Example -> case, from policy and m.
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
        for policy in (*EIGHT, *_BEYOND)
        for number in _EXAMPLES
        for row in _rows(policy, number, _APPLICATIONS[scale])
    ]
    return pl.DataFrame(rows)


def _rows(policy: str, number: int, m: int) -> Iterator[dict[str, Any]]:
    periodic = policy == "periodic-greedy-yield"
    case = _EXAMPLES[number](f"{policy}:delta={_DELTA}" if periodic else policy, m)
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


def _as_greedy_yield(tables: Tables) -> Verdict:
    ours, theirs = (_ratios(tables, p) for p in (RECOMMENDED, "greedy-yield"))
    # Where both are infinite there is nothing to divide.
    worse = {
        name: ratio / theirs[name]
        for name, ratio in ours.items()
        if math.isfinite(theirs[name])
    }
    return Verdict(max(worse.values()) <= _ALIKE, worse)


def _not_starved(tables: Tables) -> Verdict:
    name = "example 6 MinYield"
    ratios = {p: _ratios(tables, p)[name] for p in (*EIGHT, *_BEYOND)}
    return Verdict(ratios[RECOMMENDED] <= _ALIKE, ratios)


_CLAIMS: Final = (
    Claim(
        "default-as-greedy-yield",
        _SOURCE,
        f"On no example is {RECOMMENDED} worse than greedy-yield (by more than 2 %).",
        _as_greedy_yield,
    ),
    Claim(
        "default-does-not-starve",
        _SOURCE,
        f"{RECOMMENDED} does not starve long operations as best-next-event, greedy-com "
        "and look-ahead-greedy-yield do in example 6: it is within 2 % of the best "
        "schedule that we know.",
        _not_starved,
    ),
)


def _draw(tables: Tables) -> Figure:
    """Draw the ratios: a line per policy, a column per example and objective."""
    policies = policies_of(tables.rows)
    columns = list(_ratios(tables, policies[0]))
    ratios = np.array([list(_ratios(tables, p).values()) for p in policies])
    figure = Figure(figsize=(1.25 * len(columns) + 2.6, 0.4 * len(policies) + 1.5))
    figure.set_layout_engine("constrained")
    axis: Any = figure.subplots()
    shown = np.clip(ratios, 1.0, _LARGEST)
    axis.imshow(shown, cmap="OrRd", norm=LogNorm(1.0, 3 * _LARGEST), aspect="auto")
    for (line, column), ratio in np.ndenumerate(ratios):
        text = "∞" if math.isinf(ratio) else f"{ratio:.3g}"
        axis.text(column, line, text, ha="center", va="center", fontsize=9)
    heads = [name.replace(" ", "\n").replace("\n", " ", 1) for name in columns]
    axis.set_xticks(range(len(columns)), heads, fontsize=8)
    axis.set_yticks(range(len(policies)), policies)
    axis.xaxis.tick_top()
    axis.spines[:].set_visible(False)
    return figure


FIGURES: Final = {
    "frontier-table2": Reproduction(
        name="frontier-table2",
        title="Every policy on the instances of Table 2, over the best schedule known",
        source="beyond the papers, on papers/1 section 5, Table 2",
        study=_table,
        draw=_draw,
        claims=list(_CLAIMS),
    ),
}
