# SPDX-License-Identifier: MIT
"""The experiment of two-level scheduling: rows by second, and depths by window."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
import pytest

from penstock.experiments.reproduction import Scale
from penstock.papers import FIGURES
from penstock.papers.p5.experiment import (
    APPLICATIONS,
    CAPACITY,
    DURATION_S,
    HOLDING,
    MEMORIES_GB,
    PERIOD_S,
    SENDING,
    SLOS,
    WINDOW_S,
    ExperimentRun,
    by_second,
    depths,
    runs,
)
from penstock.sim.requests.simulation import RequestRun


@cache
def _done(scheduler: str, memory_gb: int = 0) -> ExperimentRun:
    (done,) = runs(Scale.SMOKE, (scheduler,), (memory_gb,))
    assert (done.memory_gb, done.instance) == (memory_gb, 1)
    return done


def _run(scheduler: str) -> RequestRun:
    return _done(scheduler).run


def _seconds(scheduler: str = "fifo") -> pl.DataFrame:
    return by_second(_done(scheduler))


def test_the_slos_ask_for_more_than_the_capacity() -> None:
    assert sum(slo.throughput_bytes_per_s for slo in SLOS.values()) > CAPACITY
    assert SLOS["App1"].latency_s == 0.1
    assert SLOS["App2"].latency_s == 0.3


def test_every_scheduler_runs_with_every_seed() -> None:
    made = runs(Scale.SMOKE, ("fifo", SENDING))
    assert [(done.run.scheduler, done.memory_gb, done.instance) for done in made] == [
        (name, memory, 1) for name in ("fifo", SENDING) for memory in MEMORIES_GB
    ]


def test_there_is_a_row_per_application_and_second() -> None:
    rows = _seconds()
    assert rows.height == len(APPLICATIONS) * int(DURATION_S)
    for name in APPLICATIONS:
        own = rows.filter(application=name)
        assert own["second"].to_list() == list(range(int(DURATION_S)))


def test_the_first_application_is_on_every_other_period() -> None:
    rows = _seconds().filter(application="App1")
    assert rows["on"].sum() == DURATION_S / 2
    off = rows.filter(~pl.col("on") & (pl.col("second") % (2 * PERIOD_S) > 60))
    assert off["issued"].sum() == 0
    assert rows.filter(pl.col("second") < PERIOD_S)["on"].all()


def test_rates_count_the_requests_of_a_second() -> None:
    run, rows = _run("fifo"), _seconds()
    for name in APPLICATIONS:
        own = run.requests_of(name)
        inside = own & (run.answered_s < DURATION_S)
        moved = rows.filter(application=name)["moved"].sum()
        assert moved == pytest.approx(float(run.size_bytes[inside].sum()))
        issued = rows.filter(application=name)["issued"].sum()
        assert issued == pytest.approx(float(run.size_bytes[own].sum()))


def test_the_storage_never_moves_more_than_its_capacity() -> None:
    total = _seconds().group_by("second").agg(pl.sum("moved"))
    # An answer at the edge of a second counts in one of both.
    assert total.filter(pl.col("moved") > CAPACITY + 1e6).is_empty()


def test_the_percentile_is_that_of_the_answers_of_a_second() -> None:
    run, rows = _run("fifo"), _seconds()
    own = run.requests_of("App2")
    answered = run.answered_s[own]
    times = (answered - run.issued_s[own])[(answered >= 7) & (answered < 8)]
    p95 = rows.filter(application="App2", second=7)["p95"][0]
    assert p95 in times
    assert np.mean(times <= p95) >= 0.95 > np.mean(times < p95)


def test_seconds_without_answers_have_no_percentile() -> None:
    rows = _seconds().filter(pl.col("moved") == 0)
    assert rows.height > 0
    assert rows["p95"].null_count() == rows.height


def test_the_paper_has_infinite_depths_and_our_variant_has_none() -> None:
    paper, ours = (depths(_done(scheduler)) for scheduler in (SENDING, HOLDING))
    assert paper.height == ours.height == int(DURATION_S / WINDOW_S)
    assert paper["depth"].null_count() > 0
    assert ours["depth"].null_count() == 0
    assert paper["time"].diff().drop_nulls().unique().to_list() == [WINDOW_S]


def test_a_memory_answers_sooner_until_it_is_full() -> None:
    """2 GB are full after 250 s at the earliest; 32 GB never."""
    slow, some, much = (
        by_second(_done(SENDING, memory)).filter(pl.col("on")) for memory in MEMORIES_GB
    )
    early = pl.col("second") < 200
    assert slow.filter(early)["p95"].median() > 1.0  # type: ignore[operator]
    assert some.filter(early)["p95"].max() < 0.1  # type: ignore[operator]
    assert some.filter(~early)["p95"].max() > 1.0  # type: ignore[operator]
    assert much["p95"].max() < 0.1  # type: ignore[operator]


def test_every_figure_of_the_paper_is_there() -> None:
    names = [name for name in FIGURES if name.startswith("p5-")]
    assert names == ["p5-fig1", "p5-fig3", "p5-fig4", "p5-fig5"]
