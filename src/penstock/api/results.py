# SPDX-License-Identifier: MIT
"""Results in a notebook: tables as data frames, figures, and HTML."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Final

from penstock.analysis import measure
from penstock.cli.simulation.advise import advice_text
from penstock.cli.simulation.comparison.table import comparison_text
from penstock.cli.tables import format_table
from penstock.experiments.output.html import html_table
from penstock.experiments.source import Source
from penstock.experiments.study import Row
from penstock.model import Instance
from penstock.policies import RECOMMENDED
from penstock.policies.policy import Policy
from penstock.sim import Run
from penstock.sim import simulate as run_policy
from penstock.units import counted, format_time

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["AdviceResult", "ComparisonResult", "SimulationResult"]

_OBJECTIVES: Final = ("min_yield", "efficiency", "utilization", "stretch")
_FURTHER: Final = ("set_utilization", "io_slowdown", "pressure")


@dataclass(frozen=True, slots=True, repr=False)
class SimulationResult:
    """One policy on one instance."""

    run: Run
    """Everything that the engine returns."""

    @property
    def yields(self) -> dict[str, float]:
        """Application -> its yield at the end of the window."""
        names = [a.name for a in self.run.instance.applications]
        return dict(zip(names, self.run.yields.tolist(), strict=True))

    @property
    def ended(self) -> dict[str, float]:
        """Application that ended inside the window -> when (s).

        Such an application keeps its last yield.
        """
        applications = self.run.instance.applications
        ends = zip(applications, self.run.ended.tolist(), strict=True)
        last = self.run.instance.window.end
        return {app.name: end for app, end in ends if end < last}

    @property
    def min_yield(self) -> float:
        """The lowest yield."""
        return measure(self.run).min_yield

    @property
    def efficiency(self) -> float:
        """Progress of all applications together, as a fraction of the possible."""
        return measure(self.run).efficiency

    def timeline(self) -> Figure:
        """Draw every application's share of the bandwidth over time."""
        from penstock.experiments.output.plots import timeline  # noqa: PLC0415 - slow

        return timeline([self.run])

    @property
    def _title(self) -> str:
        title = f"{self.run.policy}: MinYield {self.min_yield:.4f}, "
        return f"{title}Efficiency {self.efficiency:.4f}"

    def _table(self) -> list[tuple[str, str]]:
        rows = [("application", "yield")]
        return rows + [(name, f"{got:.4f}") for name, got in self.yields.items()]

    def _notes(self) -> list[str]:
        return [
            f"{name} ended at {format_time(end_s)}, inside the window"
            for name, end_s in self.ended.items()
        ]

    def __repr__(self) -> str:
        return f"<SimulationResult {self._title}>"

    def __str__(self) -> str:
        """Return the yield of every application as a table."""
        lines = [self._title, format_table(self._table(), left=1), *self._notes()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return f"<p>{escape(self._title)}</p>{html_table(self._table())}{notes}"


@dataclass(frozen=True, slots=True, repr=False)
class ComparisonResult:
    """Policies side by side on the same instances."""

    rows: tuple[Row, ...]
    """One row per instance and policy, as ``penstock compare`` has them."""
    first: Instance
    """The first instance."""
    steady: bool = True
    compared: tuple[Policy, ...] = ()
    """The policies that were run."""
    source: Source | None = None
    """The workload that the instances are from; None: they were given."""

    @property
    def policies(self) -> list[str]:
        """Labels of the policies."""
        return list(dict.fromkeys(row["policy"] for row in self.rows))

    @property
    def recommended(self) -> str:
        """The recommended policy if it was compared; else the best by MinYield.

        The table of a notebook marks it "(recommended)" or "(best)".
        """
        if RECOMMENDED in self.policies:
            return RECOMMENDED
        means = self._means()
        return max(means, key=lambda policy: means[policy][0])

    def frame(self) -> pl.DataFrame:
        """Return the objectives: one row per instance and policy.

        The columns are instance, policy, min_yield, efficiency, utilization, stretch,
        bound, set_utilization, io_slowdown, and the I/O pressure of the instance.
        """
        import polars as pl  # noqa: PLC0415 - slow to import

        return pl.DataFrame(
            [
                {
                    "instance": row["instance"],
                    "policy": row["policy"],
                    **{name: row[name] for name in _OBJECTIVES},
                    "bound": row["bound"].min_yield if row["bound"] else None,
                    **{name: row[name] for name in _FURTHER},
                }
                for row in self.rows
            ]
        )

    def yields(self) -> pl.DataFrame:
        """Return the yields: one row per instance, policy and application."""
        import polars as pl  # noqa: PLC0415 - slow to import

        return pl.DataFrame(
            [
                {
                    "instance": row["instance"],
                    "policy": row["policy"],
                    "application": name,
                    "yield": reached,
                }
                for row in self.rows
                for name, reached in zip(
                    row["applications"], row["yields"], strict=True
                )
            ]
        )

    def plot(self, width: str | float | None = None) -> Figure:
        """Draw MinYield and Efficiency of every policy, with the bound.

        With a `width`, the figure is one for a paper: "single-column" (3.33 inches),
        "double-column" (7 inches), or inches. Its texts are 7 or 8 points, its axis is
        not cut, and the name of the recommended policy is bold, or else that of the
        best one.
        """
        if width is not None:
            from penstock.experiments.output.paper_chart import (  # noqa: PLC0415 - slow
                paper_chart,
            )

            return paper_chart(self.rows, width, self.recommended)
        from penstock.experiments.output.plots import (  # noqa: PLC0415 - slow
            comparison_chart,
        )

        return comparison_chart(self.rows)

    def timeline(self) -> Figure:
        """Draw the shares of the bandwidth over time on the first instance."""
        from penstock.experiments.output.plots import timeline  # noqa: PLC0415 - slow

        return timeline(
            [
                run_policy(self.first, policy, steady=self.steady, record=True)
                for policy in self.compared
            ]
        )

    def _means(self) -> dict[str, tuple[float, float]]:
        """Return policy -> mean MinYield and mean Efficiency."""
        means = {}
        for policy in self.policies:
            own = [row for row in self.rows if row["policy"] == policy]
            means[policy] = (
                sum(row["min_yield"] for row in own) / len(own),
                sum(row["efficiency"] for row in own) / len(own),
            )
        return means

    def __repr__(self) -> str:
        policies = (
            "1 policy" if len(self.policies) == 1 else f"{len(self.policies)} policies"
        )
        count = counted(len({row["instance"] for row in self.rows}), "instance")
        mark = "recommended" if self.recommended == RECOMMENDED else "best"
        return f"<ComparisonResult {policies}, {count}, {mark}: {self.recommended}>"

    def __str__(self) -> str:
        """Return the table that ``penstock compare`` prints."""
        return comparison_text(self.rows, self.source)

    def _repr_html_(self) -> str:
        means = self._means()
        mark = " (recommended)" if self.recommended == RECOMMENDED else " (best)"
        rows = [("policy", "MinYield", "Efficiency")]
        bounds = [row["bound"].min_yield for row in self.rows if row["bound"]]
        if bounds:
            rows.append(("bound", f"{sum(bounds) / len(bounds):.4f}", ""))
        rows += [
            (
                f"{policy}{mark}" if policy == self.recommended else policy,
                f"{means[policy][0]:.4f}",
                f"{means[policy][1]:.4f}",
            )
            for policy in sorted(means, key=lambda policy: -means[policy][0])
        ]
        count = len({row["instance"] for row in self.rows})
        return f"<p>Mean of {counted(count, 'instance')}</p>{html_table(rows)}"


@dataclass(frozen=True, slots=True, repr=False)
class AdviceResult:
    """Which policy helps, by how much, and how sure that is."""

    document: dict[str, Any]
    """What ``penstock advise --json`` writes."""
    first: Instance
    """The first instance."""

    @property
    def verdict(self) -> str:
        """The verdict: "change", "keep" or "thin-evidence"."""
        return str(self.document["verdict"])

    @property
    def policy(self) -> str:
        """The policy to use."""
        return str(self.document["policy"])

    @property
    def reasons(self) -> list[str]:
        """Why, in sentences."""
        return list(self.document["reasons"])

    def report(self) -> str:
        """Return the page that ``penstock advise --report`` writes."""
        from penstock.advice.report import report_page  # noqa: PLC0415 - slow

        return report_page(self.document, self.first)

    def __repr__(self) -> str:
        return f"<AdviceResult {self.verdict}: {self.policy}>"

    def __str__(self) -> str:
        """Return what ``penstock advise`` prints: words first, then tables."""
        return advice_text(self.document)

    def _repr_html_(self) -> str:
        words = [self.document["summary"], *self.reasons]
        return "".join(f"<p>{escape(line)}</p>" for line in words)
