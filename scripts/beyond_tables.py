# SPDX-License-Identifier: MIT
"""Write the tables of ``docs/background/beyond.md`` from reproduced figures.

    python scripts/beyond_tables.py FOLDER

FOLDER is the output of ``penstock reproduce --scale paper -o FOLDER`` for the figures
``frontier``, ``frontier-utilization``, ``frontier-gains``, ``frontier-domination``,
``frontier-windows``, ``frontier-horizon`` and ``frontier-saturation``. The text of the
page is written by hand. This script replaces what stands between ``<!-- NAME -->`` and
``<!-- end of NAME -->``, for every table that FOLDER has the figures of. The table of
worst cases comes from ``examples/worst-cases/README.md``.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import polars as pl

from penstock.experiments.output.markdown import markdown_table, replaced_block
from penstock.experiments.output.verdicts import outcome_text
from penstock.papers.p1.policies import ALL_POLICIES
from penstock.policies import RECOMMENDED

__all__ = ["TABLES", "main", "updated"]

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "background" / "beyond.md"
WORST_CASES: Final = ROOT / "examples" / "worst-cases" / "README.md"
_BEYOND: Final = (RECOMMENDED, "earliest-deadline", "short-over-loss")

#: The figures that say what was asked of the default policy.
_ASKED: Final = (
    *("frontier", "frontier-gains", "frontier-domination", "frontier-windows"),
    *("frontier-utilization", "frontier-horizon"),
)

#: Reads a figure: its table and its claims.
Reader: TypeAlias = Callable[[str], pl.DataFrame]


def _short(value: float) -> str:
    """Return a number between 0 and 1 with four digits, without the leading 0."""
    return f"{value:.4f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.4f}"


def _gain(mean: float, error: float) -> str:
    return f"{'-' if mean < 0 else '+'}{_short(abs(mean))} ± {_short(error)}"


def results(read: Reader) -> str:
    """Return a line per point: the default and earliest-deadline against the eight."""
    table = read("frontier-gains")
    other = table.filter(pl.col("policy") == "earliest-deadline")
    both = {row["point"]: row for row in other.iter_rows(named=True)}
    lines = []
    for row in table.filter(pl.col("policy") == RECOMMENDED).iter_rows(named=True):
        numbers = [row["best_min_yield"], row["look_efficiency"], row["bound"]]
        pairs = [
            (of["min_yield"], of["efficiency"]) for of in (both[row["point"]], row)
        ]
        lines.append(
            [
                row["point"],
                *map(_short, numbers),
                *(" / ".join(map(_short, pair)) for pair in pairs),
                _gain(row["min_yield_gain"], row["min_yield_gain_error"]),
                _gain(row["efficiency_gain"], row["efficiency_gain_error"]),
                f"{100 * row['gap_closed']:.0f} %",
            ]
        )
    head = ("point", "best", "look", "bound", "earliest-deadline", RECOMMENDED)
    return markdown_table([*head, "Δ MinYield", "Δ Efficiency", "gap"], lines)


def domination(read: Reader) -> str:
    """Return a line per policy: domination, worst distance, and APEX windows."""
    counts = read("frontier-domination")
    under = {
        (row["policy"], row["group"]): str(row["under"])
        for row in read("frontier-windows").iter_rows(named=True)
    }
    worst = _worst_distances(read("frontier"))
    lines = []
    for row in counts.iter_rows(named=True):
        policy = row["policy"]
        by = [_count(counts, other, policy) for other in _BEYOND]
        distance, point = worst[policy]
        cells = (*by, _count(counts, policy, RECOMMENDED), f"{distance:.4f} ({point})")
        lines.append([policy, *cells, under[policy, "NERSC"], under[policy, "TRILAB"]])
    head = ["policy", *(f"dominated by {policy}" for policy in _BEYOND)]
    head += [f"dominates {RECOMMENDED}", "largest distance in MinYield (at)"]
    return markdown_table([*head, "windows under fair-share: NERSC", "TRILAB"], lines)


def _count(counts: pl.DataFrame, policy: str, over: str) -> str:
    """Return at how many points `policy` dominates `over`."""
    if policy == over:
        return "–"
    return str(counts.filter(pl.col("policy") == policy)[over].item())


def _worst_distances(means: pl.DataFrame) -> dict[str, tuple[float, str]]:
    """Return the largest distance of every policy to the best of the eight."""
    eight = means.filter(pl.col("policy").is_in(ALL_POLICIES))
    best = eight.group_by("point").agg(pl.col("min_yield").max().alias("best"))
    far = means.join(best, on="point").with_columns(
        (pl.col("best") - pl.col("min_yield")).alias("distance")
    )
    worst = far.sort("distance", descending=True, maintain_order=True)
    return {
        row["policy"]: (max(row["distance"], 0.0), row["point"])
        for row in worst.unique("policy", keep="first").iter_rows(named=True)
    }


def horizon(read: Reader) -> str:
    """Return a line per W: MinYield / Efficiency at the horizon of the paper."""
    table = read("frontier-horizon")
    policies = table["policy"].unique(maintain_order=True).to_list()
    lines = []
    for (pressure,), rows in table.group_by("aimed_pressure", maintain_order=True):
        of = {row["policy"]: row for row in rows.iter_rows(named=True)}
        pairs = [(of[p]["min_yield"], of[p]["efficiency"]) for p in policies]
        cells = [" / ".join(map(_short, pair)) for pair in pairs]
        lines.append([f"{pressure:g}", *cells, _short(rows["bound"][0])])
    return markdown_table(["W", *policies, "bound"], lines)


def saturation(read: Reader) -> str:
    """Return a line per machine: what the bandwidth allows, and what policies reach."""
    table = read("frontier-saturation")
    lines = []
    for (machine,), rows in table.group_by("machine", maintain_order=True):
        of = {row["of"]: row for row in rows.iter_rows(named=True)}
        best = max(ALL_POLICIES, key=lambda policy: of[policy]["min_yield"])
        look = of["look-ahead-greedy-yield"]
        pair = [of[RECOMMENDED][name] for name in ("min_yield", "efficiency")]
        bound = of[best]["bound"]
        numbers = (of[best]["min_yield"], bound, look["efficiency"], *pair)
        lines.append([f"M_{machine}", best, *map(_short, numbers)])
    head = ["machine", "best of the eight", "its MinYield", "Efficiency at most"]
    head += ["look-ahead's Efficiency", f"{RECOMMENDED}: MinYield", "Efficiency"]
    return markdown_table(head, lines)


#: Name of a table -> the function that makes it, and the figures that it needs.
TABLES: Final[dict[str, tuple[Callable[[Reader], str], tuple[str, ...]]]] = {
    "results": (results, ("frontier-gains",)),
    "domination": (domination, ("frontier", "frontier-domination", "frontier-windows")),
    "horizon": (horizon, ("frontier-horizon",)),
    "saturation": (saturation, ("frontier-saturation",)),
}


def _asked(folder: Path) -> str:
    """Return the claims on the default, with their outcomes and numbers."""
    lines = []
    for figure in _ASKED:
        record = json.loads((folder / figure / "claims.json").read_text())
        for claim in record["claims"]:
            numbers = _in_words(claim["numbers"])
            lines.append([claim["says"], outcome_text(claim), numbers])
    return markdown_table(("asked", "outcome", "numbers"), lines)


def _in_words(numbers: Mapping[str, Any]) -> str:
    """Return the numbers of a claim on one line, with four digits."""
    parts = []
    for name, value in numbers.items():
        if isinstance(value, dict):
            parts.append(f"{name}: {_in_words(value).replace(';', ',')}")
        elif isinstance(value, str):
            parts.append(f"{name} {value}")
        elif value is not None:
            shown = f"{value:g}" if float(value).is_integer() else f"{value:.4f}"
            parts.append(f"{name} {shown}")
    return "; ".join(parts)


def _worst_cases() -> str:
    """Return the table of ``examples/worst-cases``, without the links."""
    lines = [x for x in WORST_CASES.read_text().splitlines() if x.startswith("|")]
    return "\n".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line) for line in lines)


def _with_table(text: str, name: str, table: str) -> str:
    return replaced_block(text, name, f"\n{table}\n")


def updated(text: str, folder: Path) -> str:
    """Return the page with every table that `folder` has the figures of."""

    def read(figure: str) -> pl.DataFrame:
        record = json.loads((folder / figure / "claims.json").read_text())
        if record["provenance"]["scale"] != "paper":
            raise SystemExit(f"{folder / figure} is not of paper scale")
        return pl.read_parquet(folder / figure / f"{figure}.parquet")

    present = {path.parent.name for path in folder.glob("*/claims.json")}
    for name, (table, figures) in TABLES.items():
        if present.issuperset(figures):
            text = _with_table(text, name, table(read))
    if present.issuperset(_ASKED):
        text = _with_table(text, "asked", _asked(folder))
    return _with_table(text, "worst cases", _worst_cases())


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    folder = parser.parse_args().folder
    PAGE.write_text(updated(PAGE.read_text(), folder))


if __name__ == "__main__":
    main()
