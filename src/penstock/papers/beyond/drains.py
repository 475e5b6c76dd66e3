# SPDX-License-Identifier: MIT
"""Beyond burst-buffer coordination: drains in an order that a sharing policy chooses.

Four groups of the microbenchmark, with different volumes, start 4 s apart. They have
512 processes in all: the loss by waiting requests was fitted up to this number. The
strategies of the paper allow or forbid that a buffer is flushed. The strategy
``controlled`` lets all buffers drain at any time, with the bandwidth that the writing
application leaves, and a policy of bandwidth sharing decides which buffer drains first.
Buffers drain in the background, without their application.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict, over
from penstock.experiments.output.charts import tidy
from penstock.experiments.reproduction import Scale
from penstock.papers.declaration import figure
from penstock.papers.p4.charts import new_figure
from penstock.papers.p4.study import (
    BANDWIDTH,
    DELAYS,
    PROCESSES,
    alone_time,
    buffer_for,
    check_range,
    pattern_writer,
    storage,
)
from penstock.sim.buffers.model import Writer
from penstock.sim.buffers.simulation import simulate_buffers
from penstock.workloads.microbenchmark import WritePattern

__all__ = ["drains"]

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
        pattern_writer(
            name,
            pattern=WritePattern(PROCESSES // 2, count, 2e6, delay),
            start_s=number * _APART_S,
        )
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
    here = storage(BANDWIDTH)
    writers = _writers(delay)
    check_range(writers)
    buffer = replace(buffer_for(BANDWIDTH), inline=False)
    run = simulate_buffers(here, writers, strategy, buffer, draining=policy)
    label = f"{strategy}, {policy}" if strategy == _CONTROLLED else strategy
    return [
        {
            "contender": label,
            "strategy": strategy,
            "delay": delay,
            "application": writer.name,
            "factor": time / alone_time(here, replace(writer, name="", start_s=0.0)),
            "end": run.end_s,
        }
        for writer, time in zip(writers, run.io_times, strict=True)
    ]


def _summary(tables: Tables) -> pl.DataFrame:
    """Return the mean and the largest factor, that of A, and the end.

    There is a row per delay and contender; `first` is the factor of A.
    """
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
        ("first", "#0072B2", "<", "A, which starts first"),
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


drains = figure("p4-drains", rows=_rows, draw=_draw, summary=_summary)


# --- Claims -----------------------------------------------------------------------


def _split(tables: Tables) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the summary of the policies, and that of the strategies of the paper."""
    table = _summary(tables)
    controlled = pl.col("strategy") == _CONTROLLED
    return table.filter(controlled), table.filter(~controlled)


@drains.claim(
    "Drains in the background do not slow down the application that writes through "
    "(factor of 1.05 at most).",
    name="first-is-undisturbed",
)
def _first_undisturbed(tables: Tables) -> Verdict:
    """Take the largest factor of A."""
    policies, _ = _split(tables)
    most = float(policies["first"].to_numpy().max())
    return Verdict(most <= 1.05, {"largest factor of A": most})


#: Two numbers with their names.
_Pair: TypeAlias = tuple[tuple[str, float], tuple[str, float]]


def _lower_at_every_delay(
    tables: Tables, compare: Callable[[pl.DataFrame, pl.DataFrame], _Pair]
) -> Verdict:
    """Check at every delay that the first number of `compare` is the lower one.

    `compare` takes the summary of the policies and that of the strategies.
    """
    policies, strategies = _split(tables)
    verdicts = {}
    for delay in policies["delay"].unique().sort().to_list():
        here = pl.col("delay") == delay
        (low_name, low), (high_name, high) = compare(
            policies.filter(here), strategies.filter(here)
        )
        numbers = {low_name: low, high_name: high}
        verdicts[f"{1000 * delay:g} ms"] = Verdict(low < high, numbers)
    return over("d", verdicts)


def _least(column: pl.Series) -> float:
    return float(column.to_numpy().min())


def _most(column: pl.Series) -> float:
    return float(column.to_numpy().max())


@drains.claim(
    "With a policy that serves one buffer at a time, all applications are done sooner "
    "than with any strategy of the paper (seconds)."
)
def _done_sooner(tables: Tables) -> Verdict:
    """Compare the ends of the runs."""

    def compare(policies: pl.DataFrame, strategies: pl.DataFrame) -> _Pair:
        shares = pl.col("contender").str.contains("fair-share|best-next")
        return ("worst policy", _most(policies.filter(~shares)["end"])), (
            "best strategy of the paper",
            _least(strategies["end"]),
        )

    return _lower_at_every_delay(tables, compare)


@drains.claim(
    "With any policy the mean factor is lower than with 2a, the strategy of the paper "
    "that does not disturb the first application.",
    reason="With d = 250 ms the first application leaves almost nothing to drains, and "
    "fcfs drains in the order of 2a.",
)
def _better_than_2a(tables: Tables) -> Verdict:
    """Compare the mean factors."""

    def compare(policies: pl.DataFrame, strategies: pl.DataFrame) -> _Pair:
        only_2a = strategies.filter(pl.col("contender") == "2a")
        return ("worst policy", _most(policies["mean"])), ("2a", _most(only_2a["mean"]))

    return _lower_at_every_delay(tables, compare)


@drains.claim(
    "With the best policy the mean factor is at most 5 % above that of the best "
    "strategy of the paper, which disturbs the first application.",
    reason="The processes of the first application fill each other's pauses, so that "
    "not disturbing it costs the others more: 9 to 21 % in the mean.",
)
def _as_good_as_any(tables: Tables) -> Verdict:
    """Compare the mean factors."""

    def compare(policies: pl.DataFrame, strategies: pl.DataFrame) -> _Pair:
        return ("best policy", _least(policies["mean"])), (
            "1.05 times the best strategy of the paper",
            1.05 * _least(strategies["mean"]),
        )

    return _lower_at_every_delay(tables, compare)


@drains.claim(
    "The policy that orders the drains changes the mean factor by more than 30 %."
)
def _order_matters(tables: Tables) -> Verdict:
    """Compare the mean factors of the best and the worst policy."""

    def compare(policies: pl.DataFrame, _strategies: pl.DataFrame) -> _Pair:
        best = 1.3 * _least(policies["mean"])
        return ("1.3 times the best policy", best), ("worst", _most(policies["mean"]))

    return _lower_at_every_delay(tables, compare)
