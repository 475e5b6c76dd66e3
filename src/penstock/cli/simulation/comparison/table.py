# SPDX-License-Identifier: MIT
"""The text output of ``penstock compare``: source, means of policies, instances."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import itemgetter
from statistics import fmean
from typing import TYPE_CHECKING, Final

from penstock.cli.tables import format_table, pressure_text
from penstock.policies import RECOMMENDED
from penstock.units import counted

if TYPE_CHECKING:
    from penstock.experiments.source import Source
    from penstock.experiments.study import Row

__all__ = ["comparison_text", "print_cost"]

#: Metric -> header of its column.
_COLUMNS: Final = {
    "min_yield": "MinYield",
    "efficiency": "Efficiency",
    "utilization": "Utilization",
    "stretch": "Stretch",
}
#: Percentiles of MinYield over the instances that the table and the figure show.
_PERCENTILES: Final = (10, 90)
#: Instances of files that are listed, at most.
_MOST_LISTED: Final = 20
#: Blanks before each column: the mark of the recommended policy stands close to the
#: first number. The last column is the worst application of a single instance; several
#: instances have the spread of MinYield after MinYield.
_ONE_SPACING: Final = (0, 1, 0, 3, 2, 2, 4)
_SEVERAL_SPACING: Final = (0, 1, 0, 2, 2, 2, 2)


def comparison_text(rows: Sequence[Row], source: Source | None) -> str:
    """Return the workload, the means over the instances, and the instances of files."""
    by_policy: dict[str, list[Row]] = {}
    by_instance: dict[int, list[Row]] = {}
    for row in rows:
        by_policy.setdefault(row["policy"], []).append(row)
        by_instance.setdefault(row["instance"], []).append(row)
    instances = list(by_instance.values())
    pressure = fmean(group[0]["pressure"] for group in instances)
    aimed = source.aimed_pressure if source else None
    heading = (
        f"mean of {counted(len(instances), 'instance')}, "
        f"{pressure_text(pressure, aimed)}; * best policy"
        f"{', > recommended' if RECOMMENDED in by_policy else ''}\n\n"
    )
    is_single = len(instances) == 1
    lines = [_header(is_single=is_single)]
    bounds = [group[0]["bound"] for group in instances]
    if all(bounds):
        bound = f"{fmean(bound.min_yield for bound in bounds):.4f}"
        lines.append(["bound (any scheduler)", "", bound, *[""] * 4])
    lines += _policy_lines(by_policy, is_single=is_single)
    spacing = _ONE_SPACING if is_single else _SEVERAL_SPACING
    text = _workload_text(source) + heading + format_table(lines, gaps=spacing)
    if not is_single and rows[0]["file"] is not None:
        text += _instances_text(instances)
    return text


def _workload_text(source: Source | None) -> str:
    """Return the workload with all its parameters, if there is one."""
    from penstock.experiments.source import FilePoint
    from penstock.workloads.parameters import settings_text

    if source is None or isinstance(source.point, FilePoint):
        return ""
    settings = settings_text(source.point.family())
    return f"workload {source.point.workload}: {settings}; seed {source.seed}\n"


def _header(*, is_single: bool) -> list[str]:
    fairness, *others = _COLUMNS.values()
    if is_single:
        return ["policy", "", fairness, *others, "worst"]
    low, high = _PERCENTILES
    return ["policy", "", fairness, f"({low}-{high} %)", *others]


def _policy_lines(
    by_policy: dict[str, list[Row]], *, is_single: bool
) -> list[list[str]]:
    """Return one line per policy: the means over the instances, best MinYield first."""
    means = {
        name: {column: fmean(row[column] for row in group) for column in _COLUMNS}
        for name, group in by_policy.items()
    }
    best = {
        column: (min if column == "stretch" else max)(m[column] for m in means.values())
        for column in _COLUMNS
    }
    lines = []
    for name in sorted(means, key=lambda n: -means[n]["min_yield"]):
        fairness, *others = (
            f"{means[name][c]:.4f}{'*' if means[name][c] == best[c] else ''}"
            for c in _COLUMNS
        )
        line = [name, ">" if name == RECOMMENDED else " ", fairness]
        if is_single:
            line += [*others, _worst(by_policy[name][0])]
        else:
            line += [_spread(by_policy[name]), *others]
        lines.append(line)
    return lines


def _spread(rows: Sequence[Row]) -> str:
    """Return two percentiles of MinYield over the instances."""
    from numpy import percentile

    low, high = percentile([row["min_yield"] for row in rows], _PERCENTILES)
    return f"{low:.3f}-{high:.3f}"


def _worst(row: Row) -> str:
    """Return the application with the lowest yield; "-" if none was delayed."""
    from penstock.model.application import shortened

    lowest = min(row["yields"])
    name: str = row["applications"][row["yields"].index(lowest)]
    return shortened(name) if lowest < 1 else "-"


def _instances_text(instances: Sequence[Sequence[Row]]) -> str:
    """Return a line per instance: its file, its bound and its best policy."""
    lines = [("instance", "pressure", "bound", "best MinYield", "policy")]
    for group in instances[:_MOST_LISTED]:
        best = max(group, key=itemgetter("min_yield"))
        bound = f"{best['bound'].min_yield:.4f}" if best["bound"] else "-"
        numbers = f"{best['pressure']:.3f}", bound, f"{best['min_yield']:.4f}"
        lines.append((best["file"], *numbers, best["policy"]))
    text = f"\n{format_table(lines)}"
    more = len(instances) - _MOST_LISTED
    if more > 0:
        text += f"and {counted(more, 'more instance')} (--json has all)\n"
    return text


def print_cost(rows: Sequence[Row]) -> None:
    """Print the cost of the simulation on standard error (it differs every time)."""
    if not rows:
        sys.stderr.write("nothing was simulated: all results are from files\n")
        return
    events = sum(row["events"] for row in rows)
    seconds = sum(row["seconds"] for row in rows)
    sys.stderr.write(
        f"{counted(len(rows), 'run')}, {events:,} events, {seconds:.2f} s in the "
        "engine\n"
    )
