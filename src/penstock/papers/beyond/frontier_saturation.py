# SPDX-License-Identifier: MIT
"""Saturated storage: MinYield against Efficiency on the fastest TRILAB machines.

The figure shows the policies, and the bound: for some values of the mean MinYield, the
highest mean Efficiency that the bandwidth allows any scheduler, also one that knows the
future (`penstock.analysis.bound_efficiency`). The target is the best MinYield of the
eight policies of bandwidth sharing together with the Efficiency of
look-ahead-greedy-yield.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.analysis import measure
from penstock.analysis.bound_efficiency import Tradeoff, mean_efficiency_bound
from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.output.charts import LABELS, policies_of, tidy
from penstock.experiments.output.plots import colour_of
from penstock.experiments.reproduction import Scale
from penstock.model import Instance
from penstock.papers.declaration import figure
from penstock.papers.p1.policies import ALL_POLICIES, LOOK_AHEAD
from penstock.policies import RECOMMENDED
from penstock.sim import simulate
from penstock.workloads import Apex

__all__ = ["saturation"]

_MACHINES: Final = {Scale.SMOKE: (10,), Scale.PAPER: (8, 9, 10)}
_WINDOWS: Final = {Scale.SMOKE: 10, Scale.PAPER: 100}
_SEED: Final = {Scale.SMOKE: 101, Scale.PAPER: 2001}
_POLICIES: Final = (*ALL_POLICIES, RECOMMENDED)
_BOUND: Final = "bound"
#: Number of MinYields at which the bound is drawn.
_DRAWN: Final = 30


def _table(scale: Scale) -> pl.DataFrame:
    """Return a row per machine and policy, and the rows of the bound."""
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
    means = {policy: _means(instances, policy) for policy in _POLICIES}
    rows = [
        {
            "machine": machine,
            "of": policy,
            "min_yield": least,
            "efficiency": efficiency,
            "bound": mean_efficiency_bound(tradeoffs, least),
        }
        for policy, (least, efficiency) in means.items()
    ]
    lowest = min(least for least, _ in means.values())
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
    """Return the mean MinYield and the mean Efficiency of a policy."""
    metrics = [measure(simulate(instance, policy)) for instance in instances]
    return (
        float(np.mean([m.min_yield for m in metrics])),
        float(np.mean([m.efficiency for m in metrics])),
    )


def _targets(tables: Tables) -> dict[int, tuple[float, float, float]]:
    """Return the target of every machine, and the bound on its Efficiency.

    The three numbers are the best MinYield of the eight, the Efficiency of
    look-ahead-greedy-yield, and the bound on Efficiency at that MinYield.
    """
    targets = {}
    for (machine,), rows in tables.rows.group_by("machine", maintain_order=True):
        eight = rows.filter(pl.col("of").is_in(ALL_POLICIES))
        best = eight.sort("min_yield").row(-1, named=True)
        look = eight.row(by_predicate=pl.col("of") == LOOK_AHEAD, named=True)
        target = (best["min_yield"], look["efficiency"], best["bound"])
        targets[int(str(machine))] = target
    return targets


def _draw(tables: Tables) -> Figure:
    """Draw a panel per machine: the bound, the policies, and the target as a cross."""
    targets = _targets(tables)
    figure = Figure(figsize=(max(3.6 * len(targets) + 1.2, 8.0), 4.2))
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
        axis.locator_params(axis="x", nbins=5)
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
        label="bound on Efficiency",
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


saturation = figure("frontier-saturation", rows=_table, draw=_draw)


@saturation.claim(
    "The bandwidth does not exclude a scheduler that has, on average, the MinYield of "
    "the best of the eight and the Efficiency of look-ahead-greedy-yield."
)
def _target_not_excluded(tables: Tables) -> Verdict:
    """Compare the Efficiency of the target with the bound, on every machine."""
    numbers, targets = {}, _targets(tables)
    for machine, (_, efficiency, bound) in targets.items():
        numbers[f"M_{machine}"] = {"look-ahead": efficiency, "at most": bound}
    return Verdict(all(bound >= look for _, look, bound in targets.values()), numbers)


@saturation.claim(
    "No policy exceeds the bound on Efficiency at its MinYield.",
    name="nobody-exceeds-the-bound",
)
def _no_policy_exceeds_the_bound(tables: Tables) -> Verdict:
    """Take the smallest distance of a policy to the bound."""
    policies = tables.rows.filter(pl.col("of") != _BOUND)
    left = (policies["bound"] - policies["efficiency"]).to_numpy()
    return Verdict(bool(left.min() >= -1e-9), {"least left to the bound": left.min()})
