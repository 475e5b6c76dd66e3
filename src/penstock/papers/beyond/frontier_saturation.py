# SPDX-License-Identifier: MIT
"""Where MinYield and Efficiency compete most: TRILAB on the fastest machines.

For some MinYields, the highest mean Efficiency that bandwidth alone allows a scheduler
with that mean MinYield, clairvoyant ones included
(`penstock.analysis.bound_efficiency`), and where the policies are. The target: the best
MinYield of the eight strategies of papers/1, together with the Efficiency of
look-ahead-greedy-yield.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.analysis import measure
from penstock.analysis.bound_efficiency import Tradeoff, mean_efficiency_bound
from penstock.experiments.claims import Claim, Tables, Verdict
from penstock.experiments.output.charts import LABELS, policies_of, tidy
from penstock.experiments.output.plots import colour_of
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.model import Instance
from penstock.papers.beyond.frontier_tables import LOOK
from penstock.papers.p1.policies import EIGHT
from penstock.policies import RECOMMENDED
from penstock.sim import simulate
from penstock.workloads import Apex

__all__ = ["FIGURES"]

_SOURCE: Final = "beyond the papers: docs/background/beyond.md"
_MACHINES: Final = {Scale.SMOKE: (10,), Scale.PAPER: (7, 8, 9, 10)}
_WINDOWS: Final = {Scale.SMOKE: 10, Scale.PAPER: 200}
_SEED: Final = {Scale.SMOKE: 101, Scale.PAPER: 2001}
_POLICIES: Final = (*EIGHT, RECOMMENDED)
_BOUND: Final = "bound"
#: MinYields at which the bound is drawn.
_DRAWN: Final = 30


def _table(scale: Scale) -> pl.DataFrame:
    """Return, per machine, a row per policy and one per MinYield for the bound."""
    rows = []
    for machine in _MACHINES[scale]:
        family = Apex(trace="TRILAB", machine=machine)
        instances = [
            family.instance(_SEED[scale], index) for index in range(_WINDOWS[scale])
        ]
        rows += _machine_rows(machine, instances)
    return pl.DataFrame(rows)


def _machine_rows(machine: int, instances: list[Instance]) -> list[dict[str, Any]]:
    tradeoffs = [Tradeoff.of(instance) for instance in instances]
    found = {policy: _means(instances, policy) for policy in _POLICIES}
    rows = [
        {
            "machine": machine,
            "of": policy,
            "min_yield": least,
            "efficiency": efficiency,
            "bound": mean_efficiency_bound(tradeoffs, least),
        }
        for policy, (least, efficiency) in found.items()
    ]
    lowest = min(least for least, _ in found.values())
    highest = float(np.mean([t.min_yield[-1] for t in tradeoffs]))
    for least in np.linspace(lowest, highest, _DRAWN).tolist():
        bound = mean_efficiency_bound(tradeoffs, least)
        rows.append(
            {
                "machine": machine,
                "of": _BOUND,
                "min_yield": least,
                "efficiency": bound,
                "bound": bound,
            }
        )
    return rows


def _means(instances: list[Instance], policy: str) -> tuple[float, float]:
    """Return mean MinYield and mean Efficiency."""
    found = [measure(simulate(instance, policy)) for instance in instances]
    return (
        float(np.mean([m.min_yield for m in found])),
        float(np.mean([m.efficiency for m in found])),
    )


def _targets(tables: Tables) -> dict[int, tuple[float, float, float]]:
    """Return, by machine: best of the eight, look-ahead's Efficiency, the bound."""
    found = {}
    for (machine,), rows in tables.rows.group_by("machine", maintain_order=True):
        eight = rows.filter(pl.col("of").is_in(EIGHT))
        best = eight.sort("min_yield").row(-1, named=True)
        look = eight.row(by_predicate=pl.col("of") == LOOK, named=True)
        target = (best["min_yield"], look["efficiency"], best["bound"])
        found[int(str(machine))] = target
    return found


def _open(tables: Tables) -> Verdict:
    numbers, targets = {}, _targets(tables)
    for machine, (_, efficiency, bound) in targets.items():
        numbers[f"M_{machine} look-ahead's Efficiency"] = efficiency
        numbers[f"M_{machine} at most"] = bound
    return Verdict(all(bound >= look for _, look, bound in targets.values()), numbers)


def _nobody_exceeds(tables: Tables) -> Verdict:
    policies = tables.rows.filter(pl.col("of") != _BOUND)
    left = (policies["bound"] - policies["efficiency"]).to_numpy()
    return Verdict(bool(left.min() >= -1e-9), {"least left to the bound": left.min()})


_CLAIMS: Final = (
    Claim(
        "target-not-excluded",
        _SOURCE,
        "Bandwidth alone does not exclude a scheduler that has, on average, the "
        "MinYield of the best of the eight and the Efficiency of "
        "look-ahead-greedy-yield.",
        _open,
    ),
    Claim(
        "nobody-exceeds-the-bound",
        _SOURCE,
        "No policy exceeds the bound on Efficiency at its MinYield.",
        _nobody_exceeds,
    ),
)


def _draw(tables: Tables) -> Figure:
    """Draw a panel per machine: the bound, the policies, and the target as a cross."""
    targets = _targets(tables)
    figure = Figure(figsize=(3.6 * len(targets) + 1.5, 4.2))
    figure.set_layout_engine("constrained")
    axes: Any = figure.subplots(1, len(targets), squeeze=False)[0]
    rows = tables.rows.rename({"of": "policy"})
    for axis, (machine, (least, efficiency, _)) in zip(
        axes, targets.items(), strict=True
    ):
        _panel(axis, rows.filter(pl.col("machine") == machine))
        axis.plot(least, efficiency, "x", color="black", markersize=9, label="target")
        axis.set_title(f"TRILAB M_{machine}", fontsize=10)
        axis.set_xlabel(LABELS["min_yield"])
    axes[0].set_ylabel(LABELS["efficiency"])
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=4,
        fontsize=9,
        frameon=False,
    )
    return figure


def _panel(axis: Any, rows: pl.DataFrame) -> None:
    bound = rows.filter(pl.col("policy") == _BOUND)
    axis.plot(
        bound["min_yield"].to_list(),
        bound["efficiency"].to_list(),
        color="#444444",
        linestyle="--",
        label="bound: no scheduler is above",
    )
    policies = rows.filter(pl.col("policy") != _BOUND)
    for policy in policies_of(policies):
        row = policies.row(by_predicate=pl.col("policy") == policy, named=True)
        marker = "*" if policy == RECOMMENDED else "o"
        axis.plot(
            row["min_yield"],
            row["efficiency"],
            marker,
            color=colour_of(policy),
            markersize=10 if policy == RECOMMENDED else 6,
            label=policy,
        )
    tidy(axis, "both")


FIGURES: Final = {
    "frontier-saturation": Reproduction(
        name="frontier-saturation",
        title="Where storage is saturated: what any scheduler can have of both",
        source="beyond the papers",
        study=_table,
        draw=_draw,
        claims=list(_CLAIMS),
    ),
}
