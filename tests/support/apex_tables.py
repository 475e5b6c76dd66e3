# SPDX-License-Identifier: MIT
"""Tables of APEX windows made by hand, on which claims are known to hold or to fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from penstock.experiments.claims import Claim, Tables
from penstock.experiments.reproduction import Reproduction
from penstock.papers.p1.apex.bands import EVERY_WINDOW
from penstock.papers.p1.apex.windows import shown
from penstock.papers.p1.policies import ALL_POLICIES

__all__ = [
    "PRESSURES",
    "Flip",
    "assert_flips",
    "both_traces",
    "by_band",
    "claim_of",
    "prepared",
    "tables_of",
    "window",
]

#: One W in each of the bands W < 0.75, 0.75 to 1, W >= 1.
PRESSURES = (0.6, 0.8, 1.1)
#: Metrics with other weights, which are equal unless a test gives both.
_TWINS = {"cap_efficiency": "efficiency", "set_utilization": "utilization"}


class Flip(NamedTuple):
    """A claim, windows for which it holds, and windows for which it does not."""

    claim: str
    good: list[pl.DataFrame]
    bad: list[pl.DataFrame]


def window(
    yields: Mapping[str, float], pressure: float, trace: str = "NERSC", **columns: Any
) -> pl.DataFrame:
    """Return the rows of one window, with a MinYield of 0.5 unless `yields` says so.

    A column is one value for all policies, or a mapping from policies to values with
    0.5 for the others.
    """
    facts = {
        "windows": 20,
        "machine": 0,
        "window": 7200.0,
        "applications": 10,
        "nodes": 1000,
        "demand": 5.0,
        "operations": 10,
        "efficiency": 0.5,
        "utilization": 0.5,
        "decisions": 10,
        **columns,
    }
    facts |= {twin: facts[name] for twin, name in _TWINS.items() if twin not in facts}
    return pl.DataFrame(
        {
            "instance": [0] * 8,
            "trace": [trace] * 8,
            "policy": ALL_POLICIES,
            "pressure": [pressure] * 8,
            "min_yield": [yields.get(p, 0.5) for p in ALL_POLICIES],
            **{
                name: [value.get(p, 0.5) for p in ALL_POLICIES]
                if isinstance(value, Mapping)
                else [value] * 8
                for name, value in facts.items()
            },
        }
    )


def both_traces(
    yields: Mapping[str, float], pressure: float, **columns: Any
) -> list[pl.DataFrame]:
    """Return the same window for NERSC and for TRILAB."""
    return [window(yields, pressure, trace, **columns) for trace in ("NERSC", "TRILAB")]


def by_band(
    policies: tuple[str, ...], ratios: tuple[float, ...], trace: str
) -> list[pl.DataFrame]:
    """Return a window per band of W in which the policies have these ratios."""
    return [
        window(dict.fromkeys(policies, 0.5 * ratio), pressure, trace)
        for ratio, pressure in zip(ratios, PRESSURES, strict=True)
    ]


def tables_of(
    *windows: pl.DataFrame, seconds: Mapping[str, float] | None = None
) -> Tables:
    """Return the tables of some windows; a run takes 1 ms unless `seconds` says so."""
    rows = pl.concat(
        [
            window.with_columns(pl.lit(number).alias("point"))
            for number, window in enumerate(windows)
        ]
    )
    run_times = [(seconds or {}).get(policy, 1e-3) for policy in rows["policy"]]
    times = rows.select("point", "instance", "policy").with_columns(
        pl.Series("seconds", run_times)
    )
    return Tables(rows, times)


def prepared(*windows: pl.DataFrame) -> Tables:
    """Return the tables of some windows as checks take them, whatever their W."""
    return shown(EVERY_WINDOW)(tables_of(*windows))


def claim_of(figure: Reproduction, name: str) -> Claim:
    """Return the claim of a figure by its name."""
    (claim,) = [c for c in figure.claims if c.name == name]
    return claim


def assert_flips(figure: Reproduction, flip: Flip) -> None:
    """Check that the claim holds on the good windows and fails on the bad ones."""
    check = claim_of(figure, flip.claim).check
    held = check(figure.prepare(tables_of(*flip.good)))
    failed = check(figure.prepare(tables_of(*flip.bad)))
    assert held.holds, held.numbers
    assert not failed.holds, failed.numbers
