# SPDX-License-Identifier: MIT
"""Figure 5 of papers/1 (6.3.2): FairShare on the APEX workloads, as checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import polars as pl

from penstock.experiments.claims import Check, Claim, Tables, Verdict
from penstock.papers.p1.apex_claims.windows import (
    BEYOND,
    FAIR,
    HIGH,
    MACHINES,
    NEAR_ONE,
    NERSC,
    SILVERTON,
    TRACES,
    TRILAB,
    Numbers,
    correlation,
    fair_values,
    highest_of,
    lowest_of,
    mean_of,
    rising,
)

__all__ = ["CLAIMS"]


def _pressure_range(tables: Tables) -> Verdict:
    rows = tables.rows.filter(pl.col("policy") == FAIR)
    last = int(rows["machine"].to_numpy().max())
    numbers: Numbers = {}
    holds = True
    for trace in TRACES:
        for machine, (low, high) in ((0, (0.1, 0.2)), (last, (1.2, 1.6))):
            mine = rows.filter(
                (pl.col("trace") == trace) & (pl.col("machine") == machine)
            )
            mean = mean_of(mine["pressure"].to_numpy())
            numbers[f"{trace} M_{machine}"] = mean
            holds = holds and low <= mean <= high
    return Verdict(holds, numbers)


def _nersc_high_at_low_pressure(tables: Tables) -> Verdict:
    values = fair_values(tables, NERSC, "min_yield", (0.0, 0.4))
    numbers = {"lowest": lowest_of(values), "share under 0.8": mean_of(values <= 0.8)}
    return Verdict(numbers["lowest"] > 0.8, numbers)


def _falls(trace: str, least: float) -> Check:
    def check(tables: Tables) -> Verdict:
        value = correlation(
            fair_values(tables, trace, "pressure"),
            fair_values(tables, trace, "min_yield"),
        )
        return Verdict(value <= -least, {"rank correlation": value})

    return check


def _nersc_under_half_at_one(tables: Tables) -> Verdict:
    values = fair_values(tables, NERSC, "min_yield", (0.9, 1.1))
    numbers = {"lowest": lowest_of(values), "share under 0.5": mean_of(values < 0.5)}
    return Verdict(numbers["lowest"] < 0.5, numbers)


def _nersc_low_yields_multiply(tables: Tables) -> Verdict:
    bands = {"0.75<=W<1": NEAR_ONE, "1<=W<1.25": (1.0, 1.25), "W>=1.25": BEYOND}
    shares = {
        name: mean_of(fair_values(tables, NERSC, "min_yield", band) < 0.5)
        for name, band in bands.items()
    }
    return Verdict(rising(shares.values()), shares)


def _machine_raises_pressure(trace: str, least: float) -> Check:
    def check(tables: Tables) -> Verdict:
        value = correlation(
            fair_values(tables, trace, "machine"),
            fair_values(tables, trace, "pressure"),
        )
        return Verdict(value >= least, {"rank correlation": value})

    return check


def _nersc_mostly_low_pressure(tables: Tables) -> Verdict:
    share = mean_of(fair_values(tables, NERSC, "pressure") < 0.7)
    return Verdict(share > 0.5, {"share with W < 0.7": share})


def _nersc_one_at_high_pressure(tables: Tables) -> Verdict:
    values = fair_values(tables, NERSC, "min_yield")
    pressures = fair_values(tables, NERSC, "pressure")
    numbers = {
        "highest MinYield, W>=1": highest_of(values[pressures >= 1]),
        "highest W with MinYield >= 0.99": highest_of(pressures[values >= 0.99]),
    }
    return Verdict(numbers["highest MinYield, W>=1"] >= 0.99, numbers)


def _trilab_clearer(tables: Tables) -> Verdict:
    numbers: Numbers = {}
    for trace in TRACES:
        pressures = fair_values(tables, trace, "pressure")
        for column in ("machine", "min_yield"):
            value = correlation(fair_values(tables, trace, column), pressures)
            numbers[f"{trace} {column}"] = value
    clearer = [
        abs(numbers[f"{TRILAB} {c}"]) > abs(numbers[f"{NERSC} {c}"])
        for c in ("machine", "min_yield")
    ]
    return Verdict(all(clearer), numbers)


def _trilab_none_under(tables: Tables) -> Verdict:
    values = fair_values(tables, TRILAB, "min_yield")
    numbers = {"lowest": lowest_of(values), "share under 0.4": mean_of(values < 0.4)}
    return Verdict(numbers["lowest"] >= 0.4, numbers)


def _trilab_none_close_to_one(tables: Tables) -> Verdict:
    highest = highest_of(fair_values(tables, TRILAB, "min_yield", HIGH))
    return Verdict(highest < 0.95, {"highest, W>=1": highest})


def _trilab_longer(tables: Tables) -> Verdict:
    hours = {t: mean_of(fair_values(tables, t, "window")) / 3600 for t in TRACES}
    holds = hours[TRILAB] >= 5 * hours[NERSC]
    return Verdict(holds, {f"{t} (h)": v for t, v in hours.items()})


def _highest_on_celio(trace: str, test: Callable[[float], bool]) -> Check:
    def check(tables: Tables) -> Verdict:
        pressures = fair_values(tables, trace, "pressure")
        machines = fair_values(tables, trace, "machine")
        numbers = {
            "highest W on M_0": highest_of(pressures[machines == 0]),
            "highest W": highest_of(pressures),
        }
        return Verdict(test(numbers["highest W on M_0"]), numbers)

    return check


_FIG5: Final = "papers/1 section 6.3.2, Figure 5"

CLAIMS: Final = (
    Claim(
        "pressure-range",
        "papers/1 section 6.3.1",
        "The mean W is about 0.15 (0.1 to 0.2) on Celio for both workloads, and about "
        "1.4 (1.2 to 1.6) on the last machine.",
        _pressure_range,
    ),
    Claim(
        "nersc-high-at-low-pressure",
        _FIG5,
        "NERSC: the MinYield of FairShare stays above 0.8 while W <= 0.4.",
        _nersc_high_at_low_pressure,
        "In the exceptions, about 1 % of these windows, the slowest job is a MILC one: "
        "no checkpoints, but three quarters of its memory are read or written at once.",
    ),
    Claim(
        "nersc-falls",
        _FIG5,
        "NERSC: it tends to fall as W grows (rank correlation under -0.5).",
        _falls(NERSC, 0.5),
    ),
    Claim(
        "nersc-under-half-at-one",
        _FIG5,
        "NERSC: it is under 0.5 in some windows with W about 1 (0.9 to 1.1).",
        _nersc_under_half_at_one,
    ),
    Claim(
        "nersc-low-yields-multiply",
        _FIG5,
        "NERSC: the share of windows with a MinYield under 0.5 grows with W, beyond "
        "W = 1 too.",
        _nersc_low_yields_multiply,
    ),
    Claim(
        "nersc-machine-matters",
        _FIG5,
        "NERSC: the scale of the machine has some impact on W (rank correlation of at "
        "least 0.2).",
        _machine_raises_pressure(NERSC, 0.2),
    ),
    Claim(
        "nersc-mostly-low-pressure",
        _FIG5,
        "NERSC: most windows have a low W (more than half under 0.7).",
        _nersc_mostly_low_pressure,
    ),
    Claim(
        "nersc-one-at-high-pressure",
        _FIG5,
        "NERSC: FairShare has a MinYield of 1 (0.99) in some windows with W >= 1.",
        _nersc_one_at_high_pressure,
        MACHINES
        + "With that, jobs without I/O left out and jobs as old as they are (both in "
        "the authors' program; the paper: as if new) it holds, up to W = 1.3; but then "
        "no window with W about 1 has a MinYield under 0.5.",
    ),
    Claim(
        "trilab-machine-matters",
        _FIG5,
        "TRILAB: the larger the machine, the higher W (rank correlation of at least "
        "0.8).",
        _machine_raises_pressure(TRILAB, 0.8),
    ),
    Claim(
        "trilab-falls",
        _FIG5,
        "TRILAB: the higher W, the lower the MinYield of FairShare (rank correlation "
        "under -0.8).",
        _falls(TRILAB, 0.8),
    ),
    Claim(
        "trilab-clearer",
        _FIG5,
        "Both trends are more clearly marked for TRILAB than for NERSC (rank "
        "correlations with W).",
        _trilab_clearer,
        SILVERTON + "In windows without one it holds.",
    ),
    Claim(
        "trilab-none-under",
        _FIG5,
        "TRILAB: the MinYield of FairShare is never under 0.4.",
        _trilab_none_under,
        "All exceptions but one (in 1,361) have W > 1.4, beyond the range that the "
        "paper gives.",
    ),
    Claim(
        "trilab-none-close-to-one",
        _FIG5,
        "TRILAB: it is never close to 1 (0.95) when W is above 1.",
        _trilab_none_close_to_one,
    ),
    Claim(
        "trilab-longer",
        _FIG5,
        "Windows are much longer for TRILAB than for NERSC (at least 5 times).",
        _trilab_longer,
    ),
    Claim(
        "nersc-celio-under-half",
        _FIG5,
        "On Celio no NERSC window has a W of 0.5 or more.",
        _highest_on_celio(NERSC, lambda value: value < 0.5),
    ),
    Claim(
        "trilab-celio-saturates",
        _FIG5,
        "On Celio some TRILAB windows saturate the bandwidth (W >= 1).",
        _highest_on_celio(TRILAB, lambda value: value >= 1),
        "On larger machines some do. On Celio the highest W of 2,000 windows is 0.54; "
        "the paper may mean any machine.",
    ),
)
