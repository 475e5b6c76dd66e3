# SPDX-License-Identifier: MIT
"""papers/1 Table 2: lower bounds on competitive ratios, measured.

Every entry of the table rests on a family of instances
(`penstock.papers.p1.competitive`) with a parameter that goes to a limit. The rows
hold, for some values of it, the ratio between the best schedule that we know and the
policy, and the ratio that the argument predicts. For "any strategy" all policies of
penstock are run, and the row is that of the policy that comes nearest to the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, Final

import polars as pl
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from penstock.experiments.claims import Check, Claim, Tables, Verdict
from penstock.experiments.output.charts import LABELS
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.p1.competitive import (
    Case,
    example_1,
    example_2,
    example_3,
    example_4,
    example_5,
    example_6,
)
from penstock.policies import POLICIES

__all__ = ["FIGURES"]

_SOURCE: Final = "papers/1 section 5, Table 2"
_OBJECTIVES: Final = ("min_yield", "efficiency", "utilization")
_ANY: Final = "any strategy"
_APPLICATIONS: Final = {Scale.SMOKE: 16, Scale.PAPER: 32}
#: Example 5 tries all orders of the applications.
_FEW_APPLICATIONS: Final = {Scale.SMOKE: 3, Scale.PAPER: 5}
#: The table takes the limit 0 of delta; example 4 does so step by step.
_DELTA: Final = ":delta=0.0078125"
#: A ratio may be this much of the one predicted: all are computed in doubles.
_ROUNDING: Final = 1 - 1e-9

#: The bounds, as the paper writes them, for m applications.
_BOUNDS: Final[dict[str, Callable[[int], float]]] = {
    "∞": lambda _m: math.inf,
    "m": float,
    "m/4": lambda m: m / 4,
    "m/2 − 4": lambda m: m / 2 - 4,
    "2": lambda _m: 2.0,
    "3/2": lambda _m: 1.5,
}

#: Policy -> bound and example for every objective.
_STATED: Final = {
    "fair-share": (("m", 1), ("m/4", 2), ("∞", 2)),
    "fcfs": (("∞", 2), ("m", 3), ("∞", 2)),
    "set-10": (("∞", 2), ("m", 3), ("∞", 2)),
    "greedy-yield": (("∞", 2), ("m", 3), ("∞", 2)),
    "greedy-com": (("∞", 2), ("m/4", 2), ("∞", 2)),
    "look-ahead-greedy-yield": (("∞", 2), ("m", 3), ("∞", 2)),
    "periodic-greedy-yield": (("2", 4), ("m", 3), ("∞", 2)),
    "best-next-event": (("m/2 − 4", 6), ("m", 3), ("∞", 2)),
    _ANY: (("3/2", 5), ("m/4", 2), ("∞", 2)),
}

#: Cells: no ratio at all, one that grows with m, a constant.
_COLOURS: Final = {"∞": "#f6d9d3", "m": "#faefcf", "1": "#d8ead8"}
_CAPTION: Final = (
    "Bold: lower bound of the paper. Measured: the objective in the best schedule that "
    "we know over that under the policy\n(both, where the policy has 0), on the "
    "instances of the example. Any strategy: of all policies of penstock, the one "
    "nearest to the bound."
)


@dataclass(frozen=True, slots=True)
class _Example:
    """A family of instances, and the parameter that goes to its limit."""

    case: Callable[[str, int, float], Case]
    """From policy, m and value of the parameter."""
    symbol: str
    values: tuple[float, ...]
    """From far to near."""
    ratios: dict[str, str]
    """Objective -> the ratio, for people."""
    m: dict[Scale, int] = field(default_factory=_APPLICATIONS.copy)


def _periodic(_policy: str, m: int, delta: float) -> Case:
    return example_4(m, delta)


def _returning(policy: str, m: int, cycles: float) -> Case:
    # The orders that are tried are good enough for this one with an even m only.
    return example_5(policy, m - (policy == "best-next-event"), int(cycles))


_EXAMPLES: Final = {
    1: _Example(
        example_1,
        "L",
        (10.0, 100.0, 1000.0),
        {"min_yield": "m L / (L + 1), which tends to m as L grows"},
    ),
    2: _Example(
        example_2,
        "ε",
        (0.1, 0.01, 0.001),
        {
            "min_yield": "a yield of 0, against 1/m",
            "efficiency": "(m/4 + 1/2) / (1 + ε)",
            "utilization": "(m − 2) / (4 ε), without bound as ε goes to 0",
        },
    ),
    3: _Example(
        example_3,
        "ε",
        (0.01, 0.001, 0.0001),
        {"efficiency": "m (1 − ε (m − 1) / 2), which tends to m as ε goes to 0"},
    ),
    4: _Example(
        _periodic,
        "δ",
        (2.0**-4, 2.0**-7, 2.0**-10),
        {"min_yield": "(2 m − 1) / m as δ goes to 0, which tends to 2 as m grows"},
    ),
    5: _Example(
        _returning,
        "cycles",
        (5.0, 40.0),
        {
            "min_yield": "(3 m − 1) / (2 m) as the window grows, which tends to 3/2 "
            "as m grows"
        },
        _FEW_APPLICATIONS,
    ),
    6: _Example(
        lambda policy, m, length: example_6(policy, m // 2, length),
        "L",
        (100.0, 300.0, 1000.0),
        {"min_yield": "m/2 − 1/2 as L grows"},
    ),
}


def _table(scale: Scale) -> pl.DataFrame:
    """Return a row per entry and value of the parameter, from far to near."""

    @cache
    def case_of(number: int, policy: str, value: float) -> Case:
        example = _EXAMPLES[number]
        return example.case(policy, example.m[scale], value)

    rows = []
    for policy, objective, stated, number in _entries():
        for value in _EXAMPLES[number].values:
            cases = [case_of(number, run, value) for run in _runs(policy)]
            case = min(cases, key=lambda c: c.margin(objective))
            m = len(case.instance.applications)
            rows.append(
                {
                    "policy": policy,
                    "objective": objective,
                    "stated": stated,
                    "example": number,
                    "m": m,
                    "parameter": _EXAMPLES[number].symbol,
                    "value": value,
                    "run": case.policy,
                    "bound": _BOUNDS[stated](m),
                    "predicted": case.predicted[objective],
                    "ratio": case.ratio(objective),
                    "ours": float(getattr(case.ours, objective)),
                    "best": case.best(objective),
                }
            )
    return pl.DataFrame(rows)


def _entries() -> list[tuple[str, str, str, int]]:
    """Return policy, objective, bound and example of every entry, line by line."""
    return [
        (policy, objective, *entry)
        for policy, line in _STATED.items()
        for objective, entry in zip(_OBJECTIVES, line, strict=True)
    ]


def _runs(policy: str) -> list[str]:
    """Return the policies to run for a line of the table."""
    names = POLICIES if policy == _ANY else (policy,)
    return [n + _DELTA if n == "periodic-greedy-yield" else n for n in names]


def _holds(stated: str, rows: pl.DataFrame) -> bool:
    """Return whether the ratios are as predicted, and go where they should.

    That is to the bound if it depends on m (constant bounds are reached as m grows), or
    five times further at every step if there is none.
    """
    ratios = rows["ratio"].to_list()
    if any(r < p * _ROUNDING for r, p in zip(ratios, rows["predicted"], strict=True)):
        return False
    if stated == "∞":
        return all(near >= 5 * far for far, near in pairwise(ratios))
    return "m" not in stated or bool(ratios[-1] >= 0.98 * rows["bound"][-1])


def _entry_rows(tables: Tables, policy: str, objective: str) -> pl.DataFrame:
    return tables.rows.filter(
        (pl.col("policy") == policy) & (pl.col("objective") == objective)
    )


def _check(policy: str, objective: str, stated: str) -> Check:
    def check(tables: Tables) -> Verdict:
        rows = _entry_rows(tables, policy, objective)
        last = rows.row(-1, named=True)
        numbers = {"m": last["m"]}
        for row in rows.iter_rows(named=True):
            numbers[f"{row['parameter']} = {row['value']:g}"] = row["ratio"]
        numbers["predicted at last"] = last["predicted"]
        numbers["stated"] = last["bound"]
        return Verdict(_holds(stated, rows), numbers)

    return check


def _claim(policy: str, objective: str, stated: str, number: int) -> Claim:
    who = "no strategy has a" if policy == _ANY else f"{policy} has no"
    under = "" if stated == "∞" else f" under {stated}"
    return Claim(
        f"{policy}-{objective}".replace(" ", "-"),
        f"{_SOURCE}, example {number}",
        f"For {LABELS[objective]}, {who} competitive ratio{under}: the example gives "
        f"{_EXAMPLES[number].ratios[objective]}.",
        _check(policy, objective, stated),
    )


def _draw(tables: Tables) -> Figure:
    """Draw the table of the paper, with what was measured in every cell."""
    figure = Figure(figsize=(12.5, 0.6 * len(_STATED) + 1.5))
    axis: Any = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    axis.set_xlim(-0.75, 3.0)
    axis.set_ylim(len(_STATED) + 1.4, -0.1)
    axis.set_axis_off()
    for column, objective in enumerate(_OBJECTIVES):
        label = LABELS[objective]
        axis.text(column + 0.5, 0.3, label, ha="center", va="center", weight="bold")
    for line, policy in enumerate(_STATED):
        axis.text(-0.03, line + 1, policy, ha="right", va="center", weight="bold")
        for column, objective in enumerate(_OBJECTIVES):
            rows = _entry_rows(tables, policy, objective)
            _draw_cell(axis, column, line + 1, rows)
    y = len(_STATED) + 0.62
    axis.text(0.03, y, _CAPTION, va="top", fontsize=9, color="#555555")
    return figure


def _draw_cell(axis: Any, column: int, line: int, rows: pl.DataFrame) -> None:
    """Draw one entry: the bound and its example, what was measured and where."""
    row = rows.row(-1, named=True)
    stated = row["stated"]
    axis.add_patch(
        FancyBboxPatch(
            (column + 0.03, line - 0.42),
            0.94,
            0.84,
            boxstyle="round,pad=0,rounding_size=0.04",
            mutation_aspect=4,
            facecolor=_COLOURS["∞" if stated == "∞" else "m" if "m" in stated else "1"],
            edgecolor="none",
        )
    )
    y = line - 0.16
    axis.text(column + 0.07, y, stated, va="center", fontsize=13, weight="bold")
    number = f"example {row['example']}"
    axis.text(column + 0.93, y, number, ha="right", va="center", fontsize=8.5)
    text, colour = _measured_text(row), "#333333"
    if not _holds(stated, rows):
        text, colour = f"{text}: does not hold", "#CC3311"
    axis.text(column + 0.07, line + 0.22, text, va="center", fontsize=9, color=colour)


def _measured_text(row: dict[str, Any]) -> str:
    """Return what was measured at the last value of the parameter, and where."""
    if math.isinf(row["ratio"]):
        return f"measured 0 against {row['best']:.3f} at m = {row['m']}"
    digits = 0 if row["ratio"] >= 100 else 2
    what, value = f"measured {row['ratio']:.{digits}f}", row["value"]
    if row["parameter"] == "cycles":
        return f"{what} at m = {row['m']}, {value:g} cycles"
    if row["parameter"] == "δ":
        return f"{what} at m = {row['m']}, δ = 1/{1 / value:g}"
    return f"{what} at m = {row['m']}, {row['parameter']} = {value:g}"


FIGURES: Final = {
    "p1-table2": Reproduction(
        name="p1-table2",
        title="Lower bounds on competitive ratios, stated and measured",
        source=_SOURCE,
        study=_table,
        draw=_draw,
        claims=[_claim(*entry) for entry in _entries()],
    ),
}
