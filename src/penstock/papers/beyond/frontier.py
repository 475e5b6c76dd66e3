# SPDX-License-Identifier: MIT
"""Beyond the papers: MinYield against Efficiency of every policy, with the bound.

One study (`frontier_study`), five figures with a table each: means (two drawings),
differences of the policies beyond the papers, who dominates whom, APEX windows under
fair-share.
"""

from __future__ import annotations

from typing import Final

from penstock.experiments.reproduction import Reproduction
from penstock.papers.beyond import frontier_charts as charts
from penstock.papers.beyond import frontier_claims as claims
from penstock.papers.beyond import frontier_tables as tables
from penstock.papers.beyond.frontier_study import frontier_study
from penstock.policies import RECOMMENDED

__all__ = ["FIGURES"]

_SOURCE: Final = "beyond the papers"
#: The policies that are not in the papers, the recommended one first.
_BEYOND: Final = (RECOMMENDED, "earliest-deadline", "short-over-loss")


FIGURES: Final = {
    "frontier": Reproduction(
        name="frontier",
        title="MinYield against Efficiency of every policy, with the bound",
        source=_SOURCE,
        study=frontier_study,
        draw=lambda t: charts.draw_frontier(tables.means(t.rows), "efficiency"),
        claims=[*claims.GAINS, *claims.DOMINATION, *claims.WINDOWS],
        summary=lambda t: tables.means(t.rows),
    ),
    "frontier-utilization": Reproduction(
        name="frontier-utilization",
        title="MinYield against Utilization of every policy, with the bound",
        source=_SOURCE,
        study=frontier_study,
        draw=lambda t: charts.draw_frontier(tables.means(t.rows), "utilization"),
        claims=list(claims.UTILIZATION),
        summary=lambda t: tables.means(t.rows),
    ),
    "frontier-gains": Reproduction(
        name="frontier-gains",
        title="The recommended default against the best of the eight, and the bound",
        source=_SOURCE,
        study=frontier_study,
        draw=lambda t: charts.draw_differences(tables.differences(t.rows, _BEYOND)),
        claims=list(claims.GAINS),
        summary=lambda t: tables.differences(t.rows, _BEYOND),
    ),
    "frontier-domination": Reproduction(
        name="frontier-domination",
        title="Who dominates whom: better in MinYield and in Efficiency",
        source=_SOURCE,
        study=frontier_study,
        draw=lambda t: charts.draw_counts(tables.count_dominations(t.rows)),
        claims=list(claims.DOMINATION),
        summary=lambda t: tables.count_dominations(t.rows),
    ),
    "frontier-windows": Reproduction(
        name="frontier-windows",
        title="APEX windows more than 1 % under the MinYield of fair-share",
        source=_SOURCE,
        study=frontier_study,
        draw=lambda t: charts.draw_windows(tables.windows_under_base(t.rows)),
        claims=list(claims.WINDOWS),
        summary=lambda t: tables.windows_under_base(t.rows),
    ),
}
