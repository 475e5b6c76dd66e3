# SPDX-License-Identifier: MIT
"""Beyond papers/4: drains as flows that a policy of papers/1 orders.

Four groups of the microbenchmark with different volumes that begin 4 s apart. The
strategies of the paper let a buffer be flushed or not; ``controlled`` lets all drain at
any time, into what the one that writes leaves of the bandwidth, and a policy decides
who of them goes first. Buffers are drained by somebody else than the application.
"""

from __future__ import annotations

from typing import Any, Final

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Claim, Tables, Verdict
from penstock.experiments.output.charts import tidy
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.papers.p4.charts import new_figure
from penstock.papers.p4.study import (
    ALONE_S,
    DELAYS,
    alone_time,
    group,
    storage,
)
from penstock.sim.buffers import simulate_buffers
from penstock.sim.buffers_model import Buffer, Writer
from penstock.workloads.microbenchmark import Microbenchmark

__all__ = ["FIGURES"]

_REQUESTS: Final = (32, 48, 8, 16)
_APART_S: Final = 4.0
_CONTROLLED: Final = "controlled"
_OF_THE_PAPER: Final = (
    *("none", "1a", "1b", "2a", "2b", "2b:flush=token"),
    *("2b:flush=window", "2b:flush=priority"),
)
_POLICIES: Final = (
    *("fair-share", "fcfs", "greedy-com", "greedy-yield", "set-10"),
    *("best-next-event", "soft-deadline"),
)


def _writers(delay: float) -> list[Writer]:
    return [
        group(name, delay, number * _APART_S, requests=count)
        for number, (name, count) in enumerate(zip("ABCD", _REQUESTS, strict=True))
    ]


def _rows(_scale: Scale) -> pl.DataFrame:
    """Return a row per delay, contender and application."""
    contenders = [(name, "fair-share") for name in _OF_THE_PAPER]
    contenders += [(_CONTROLLED, policy) for policy in _POLICIES]
    rows = []
    for delay in DELAYS[1:]:
        for strategy, policy in contenders:
            rows += _run(delay, strategy, policy)
    return pl.DataFrame(rows)


def _run(delay: float, strategy: str, policy: str) -> list[dict[str, Any]]:
    here = storage(Microbenchmark().bandwidth)
    writers = _writers(delay)
    buffer = Buffer(100 * here.bandwidth)
    run = simulate_buffers(here, writers, strategy, buffer, draining=policy)
    label = f"{strategy}, {policy}" if strategy == _CONTROLLED else strategy
    return [
        {
            "contender": label,
            "strategy": strategy,
            "delay": delay,
            "application": writer.name,
            "factor": time / alone_time(here, _at_zero(writer)),
            "end": run.end,
        }
        for writer, time in zip(writers, run.io_times, strict=True)
    ]


def _at_zero(writer: Writer) -> Writer:
    return Writer("", writer.steps, processes=writer.processes)


def _summary(tables: Tables) -> pl.DataFrame:
    """Return mean and largest factor, and the end, by delay and contender."""
    return tables.rows.group_by("delay", "contender", maintain_order=True).agg(
        pl.first("strategy"),
        pl.mean("factor").alias("mean"),
        pl.max("factor").alias("largest"),
        pl.first("factor").alias("first"),
        pl.first("end"),
    )


def _draw(tables: Tables) -> Figure:
    table = _summary(tables)
    delays = table["delay"].unique().sort().to_list()
    figure = new_figure(13, 5.2)
    axes = figure.subplots(1, len(delays), sharey=True)
    for axis, delay in zip(axes, delays, strict=True):
        _draw_delay(axis, table.filter(pl.col("delay") == delay).reverse())
        axis.set_title(f"d = {1000 * delay:g} ms", fontsize=10)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=3, fontsize=9, frameon=False
    )
    return figure


def _draw_delay(axis: Any, table: pl.DataFrame) -> None:
    places = range(table.height)
    marks = (
        ("first", "#0072B2", "<", "A, the first to arrive"),
        ("mean", "#222222", "o", "mean of all"),
        ("largest", "#D55E00", ">", "largest"),
    )
    axis.hlines(places, table["first"], table["largest"], color="#cccccc", zorder=1)
    for column, colour, marker, label in marks:
        values = table[column].to_numpy()
        axis.plot(values, places, marker, color=colour, label=label, markersize=6)
    axis.axvline(1.0, color="#777777", linewidth=0.8)
    axis.set_yticks(places, table["contender"].to_list())
    axis.set_xlabel("interference factor")
    tidy(axis, "both")


# --- Claims -----------------------------------------------------------------------


def _split(tables: Tables) -> tuple[pl.DataFrame, pl.DataFrame]:
    table = _summary(tables)
    ours = pl.col("strategy") == _CONTROLLED
    return table.filter(ours), table.filter(~ours)


def _first_undisturbed(tables: Tables) -> Verdict:
    ours, _ = _split(tables)
    most = float(ours["first"].to_numpy().max())
    return Verdict(most <= 1.05, {"largest factor of A": most})


def _by_delay(tables: Tables, check: Any) -> Verdict:
    """Check every delay by itself: `check` gives two numbers, the first the lower."""
    ours, theirs = _split(tables)
    numbers, holds = {}, True
    for delay in ours["delay"].unique().sort().to_list():
        here = pl.col("delay") == delay
        (low_name, low), (high_name, high) = check(
            ours.filter(here), theirs.filter(here)
        )
        numbers[f"d = {1000 * delay:g} ms, {low_name}"] = float(low)
        numbers[f"d = {1000 * delay:g} ms, {high_name}"] = float(high)
        holds = holds and low < high
    return Verdict(holds, numbers)


def _done_sooner(tables: Tables) -> Verdict:
    def check(ours: pl.DataFrame, theirs: pl.DataFrame) -> Any:
        one = ours.filter(~pl.col("contender").str.contains("fair-share|best-next"))
        return ("worst policy", one["end"].max()), (
            "best strategy of the paper",
            theirs["end"].min(),
        )

    return _by_delay(tables, check)


def _better_than_2a(tables: Tables) -> Verdict:
    def check(ours: pl.DataFrame, theirs: pl.DataFrame) -> Any:
        other = theirs.filter(pl.col("contender") == "2a")["mean"].max()
        return ("worst policy", ours["mean"].max()), ("2a", other)

    return _by_delay(tables, check)


def _as_good_as_any(tables: Tables) -> Verdict:
    def check(ours: pl.DataFrame, theirs: pl.DataFrame) -> Any:
        other = 1.05 * float(theirs["mean"].to_numpy().min())
        return ("best policy", ours["mean"].min()), (
            "1.05 times the best strategy of the paper",
            other,
        )

    return _by_delay(tables, check)


def _order_matters(tables: Tables) -> Verdict:
    def check(ours: pl.DataFrame, _theirs: pl.DataFrame) -> Any:
        best = 1.3 * float(ours["mean"].to_numpy().min())
        return ("1.3 times the best policy", best), ("worst", ours["mean"].max())

    return _by_delay(tables, check)


_SOURCE: Final = "beyond papers/4, with policies of papers/1"
_CLAIMS: Final = (
    Claim(
        "first-is-undisturbed",
        _SOURCE,
        "Drains in the background do not slow down the one that writes through (1.05 "
        "at most).",
        _first_undisturbed,
    ),
    Claim(
        "done-sooner",
        _SOURCE,
        "With a policy that serves one at a time, all is done sooner than with any "
        "strategy of the paper (s).",
        _done_sooner,
    ),
    Claim(
        "better-than-2a",
        _SOURCE,
        "With any policy the mean factor is lower than with 2a, the strategy of the "
        "paper that leaves the first to arrive undisturbed.",
        _better_than_2a,
    ),
    Claim(
        "as-good-as-any",
        _SOURCE,
        "With the best policy the mean factor is at most 5 % above that of the best "
        "strategy of the paper, which disturbs the first.",
        _as_good_as_any,
    ),
    Claim(
        "order-matters",
        _SOURCE,
        "Which policy orders the drains changes the mean factor by more than 30 %.",
        _order_matters,
    ),
)

FIGURES: Final = {
    "p4-drains": Reproduction(
        name="p4-drains",
        title="Order of drains: strategies and policies "
        f"(four applications, up to {ALONE_S * 1.5:g} s)",
        source=_SOURCE,
        study=_rows,
        draw=_draw,
        claims=list(_CLAIMS),
        summary=_summary,
    ),
}
