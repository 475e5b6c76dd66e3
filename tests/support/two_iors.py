# SPDX-License-Identifier: MIT
"""Rows of two IORs under two-level scheduling: made up, and simulated."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import polars as pl

from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Scale
from penstock.papers.p5.depth import fig4
from penstock.papers.p5.experiment import APPLICATIONS, HOLDING, SENDING
from penstock.papers.p5.issue_rates import fig3
from penstock.papers.p5.response_times import fig5

__all__ = [
    "Value",
    "issue_rate",
    "made_up",
    "response_time",
    "simulated",
    "throughput",
]

SCHEDULERS = ("fifo", "sfq", "edf", SENDING, HOLDING)

#: (scheduler, application, second, App1 is on) -> value.
Value: TypeAlias = Callable[[str, str, int, bool], float]


def _aimed(second: int) -> float:
    """Return the rate that App2 aims at (bytes/s)."""
    return 20e6 + 30e6 * second / 600


def issue_rate(_scheduler: str, name: str, second: int, on: bool) -> float:
    """Return issue rates that saturate 50 MB/s if App1 is on, else as App2 aims."""
    if on:
        return 25e6
    if second >= 350:
        return 0.9 * _aimed(second) if name == "App2" else 0.0
    return _aimed(second) if name == "App2" else 0.0


def throughput(scheduler: str, name: str, _second: int, _on: bool) -> float:
    """Return equal throughputs, and 2 to 1 with our scheduler."""
    first = 2.0 if scheduler == HOLDING else 1.0
    return 50e6 * (first if name == "App1" else 1.0) / (first + 1)


def response_time(_scheduler: str, name: str, second: int, on: bool) -> float:
    """Return response times as in the paper: App1 is favoured, the end is worse.

    100 ms are met in one second of 20 and 300 ms in all, until 200 s.
    """
    tight = 0.09 if second % 20 == 0 else 0.11
    if on and second >= 200:
        late = 1.5 if second >= 500 else 0.4
        return tight if name == "App1" else late
    return tight if name == "App1" else 0.2


def made_up(
    issued: Value = issue_rate,
    moved: Value = throughput,
    p95: Value = response_time,
) -> Tables:
    """Return rows of all schedulers, without a memory."""
    rows = []
    for scheduler in SCHEDULERS:
        for name in APPLICATIONS:
            for second in range(0, 600, 5):
                on = second % 100 < 50
                key = (scheduler, name, second, on)
                rows.append(
                    {
                        "scheduler": scheduler,
                        "memory_gb": 0,
                        "instance": 1,
                        "application": name,
                        "second": second,
                        "on": on,
                        "issued": issued(*key),
                        "moved": moved(*key),
                        "p95": p95(*key),
                    }
                )
    return Tables(pl.DataFrame(rows), pl.DataFrame())


@cache
def simulated(name: str) -> Tables:
    """Return the rows of a figure at the smallest scale."""
    if name == fig3.name:
        return fig3.prepare(simulated(fig5.name))
    figure = {each.name: each for each in (fig4, fig5)}[name]
    rows = figure.rows(Scale.SMOKE)
    assert isinstance(rows, pl.DataFrame)
    return Tables(rows, pl.DataFrame())
