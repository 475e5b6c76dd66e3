# SPDX-License-Identifier: MIT
"""papers/4 Figures 11 and 12: one checkpoint of real applications, two at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Check, Claim, Tables, Verdict
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.p4.charts import bars
from penstock.papers.p4.study import one_of, run_rows, storage
from penstock.sim.buffers_model import Writer
from penstock.workloads.microbenchmark import SHAPES, Microbenchmark

__all__ = ["FIGURES"]

#: Strategy -> what the paper calls it.
_STRATEGIES: Final = {
    "none": "interference",
    "1a": "strategy 1",
    "2a": "strategy 2",
    "3b": "strategy 3",
}


def _writer(name: str) -> Writer:
    shape = SHAPES[name]
    return Writer.of_requests(
        name, shape.requests, shape.processes * shape.size, processes=shape.processes
    )


def _rows(first: str, others: tuple[str, ...]) -> Callable[[Scale], pl.DataFrame]:
    """Return what gives a row per partner, strategy and application; D = 0."""

    def rows(_scale: Scale) -> pl.DataFrame:
        here = storage(Microbenchmark().bandwidth)
        made = []
        for other in others:
            for strategy in _STRATEGIES:
                writers = [_writer(first), _writer(other)]
                made += run_rows(here, writers, strategy, partner=f"with {other}")
        return pl.DataFrame(made)

    return rows


def _draw(first: str) -> Callable[[Tables], Figure]:
    def draw(tables: Tables) -> Figure:
        mine = tables.rows.filter(pl.col("application") == first)
        label = f"interference factor of {first}"
        return bars(
            mine, "partner", "application", "strategy", "factor", label, _STRATEGIES
        )

    return draw


def _factors(tables: Tables, first: str, other: str) -> dict[str, float]:
    """Return the factor of `first` beside `other`, by strategy."""
    partner = f"with {other}"
    return {
        s: one_of(tables.rows, "factor", application=first, partner=partner, strategy=s)
        for s in _STRATEGIES
    }


def _near(first: str, other: str, strategy: str, value: float, slack: float) -> Check:
    def check(tables: Tables) -> Verdict:
        found = _factors(tables, first, other)
        return Verdict(abs(found[strategy] - value) <= slack, found)

    return check


def _helps(first: str, other: str, strategies: tuple[str, ...]) -> Check:
    def check(tables: Tables) -> Verdict:
        found = _factors(tables, first, other)
        return Verdict(all(found[s] < found["none"] for s in strategies), found)

    return check


def _similar(tables: Tables) -> Verdict:
    """Compare the factors of LANL App1 beside its two partners."""
    beside = [_factors(tables, "lanl-app1", o) for o in ("lanl-app2", "cm1")]
    gaps = {s: abs(beside[0][s] - beside[1][s]) for s in _STRATEGIES}
    return Verdict(max(gaps.values()) <= 0.15, gaps)


def _slightly_lower(tables: Tables) -> Verdict:
    cm1 = _factors(tables, "cm1", "lanl-app1")["none"]
    beside = one_of(
        tables.rows,
        "factor",
        application="lanl-app1",
        partner="with lanl-app1",
        strategy="none",
    )
    return Verdict(beside - 0.2 < cm1 < beside, {"cm1": cm1, "lanl-app1": beside})


_FIG11: Final = "papers/4 section V-B.4, Figure 11"
_FIG12: Final = "papers/4 section V-B.4, Figure 12"
_ONE: Final = "lanl-app1"
_TWO: Final = "lanl-app2"

_CLAIMS11: Final = (
    Claim(
        "app1-interferes",
        _FIG11,
        "Beside LANL App2, LANL App1 takes 2.2 times as long (± 0.15).",
        _near(_ONE, _TWO, "none", 2.2, 0.15),
    ),
    Claim(
        "app1-strategy-1",
        _FIG11,
        "Strategy 1 prioritises App2 and still lowers the factor of App1 to 1.9 "
        "(± 0.15).",
        _near(_ONE, _TWO, "1a", 1.9, 0.15),
    ),
    Claim(
        "app1-strategy-2",
        _FIG11,
        "Strategy 2 gives App1 exclusive access: no slowdown at all (0.05 at most).",
        _near(_ONE, _TWO, "2a", 1.0, 0.05),
    ),
    Claim(
        "app1-strategy-3",
        _FIG11,
        "Strategy 3 lets both share the servers in half, with results as before: less "
        "slowdown than interference.",
        _helps(_ONE, _TWO, ("3b",)),
    ),
    Claim(
        "app1-and-cm1",
        _FIG11,
        "Beside CM1 the results are similar (within 0.15).",
        _similar,
    ),
)
_CLAIMS12: Final = (
    *(
        Claim(
            f"all-help-beside-{other}",
            _FIG12,
            f"All three strategies help CM1 beside {other}.",
            _helps("cm1", other, ("1a", "2a", "3b")),
        )
        for other in (_ONE, _TWO)
    ),
    Claim(
        "slightly-lower",
        _FIG12,
        "The factor of CM1 is slightly lower than that of the application beside it.",
        _slightly_lower,
    ),
)

FIGURES: Final = {
    "p4-fig11": Reproduction(
        name="p4-fig11",
        title="LANL App1 beside LANL App2 and CM1",
        source=_FIG11,
        study=_rows(_ONE, (_TWO, "cm1")),
        draw=_draw(_ONE),
        claims=list(_CLAIMS11),
    ),
    "p4-fig12": Reproduction(
        name="p4-fig12",
        title="CM1 beside LANL App1 and LANL App2",
        source=_FIG12,
        study=_rows("cm1", (_ONE, _TWO)),
        draw=_draw("cm1"),
        claims=list(_CLAIMS12),
    ),
}
