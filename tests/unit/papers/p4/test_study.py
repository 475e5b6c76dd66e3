# SPDX-License-Identifier: MIT
"""The machine and the applications of the figures of burst-buffer coordination."""

from __future__ import annotations

import polars as pl
import pytest

from penstock.errors import InternalError
from penstock.experiments.claims import NoRowsError
from penstock.experiments.reproduction import Scale
from penstock.papers import FIGURES
from penstock.papers.p4.study import (
    ALONE_S,
    BANDWIDTH,
    DELAYS,
    EXPONENT,
    GAIN,
    JITTER,
    LOSS,
    OFFSETS,
    PROCESSES,
    REPETITIONS,
    SERVERS,
    SLOW_BANDWIDTH,
    alone_time,
    buffer_for,
    check_range,
    delta_rows,
    mean_rows,
    pattern_writer,
    run_rows,
    single_value,
    storage,
)
from penstock.workloads.microbenchmark import WritePattern


def paced(delay: float) -> WritePattern:
    return WritePattern(PROCESSES, 32, 1e6, delay)


def test_every_figure_with_results_is_there() -> None:
    names = [name for name in FIGURES if name.startswith("p4-fig")]
    assert names == [f"p4-fig{number}" for number in range(4, 17)]


def test_the_storage_has_the_measurements_of_the_paper() -> None:
    machine = storage(100.0)
    assert machine.targets == SERVERS == 8
    assert machine.profile[3] == pytest.approx(75.0)
    assert machine.profile[7] == pytest.approx(100.0)
    assert machine.congestion.exponent == EXPONENT
    # Two applications of 256 processes have 75 MB/s each, one alone 170 MB/s.
    assert machine.congestion.efficiency(512) == pytest.approx(2 * 75 / 170)
    assert machine.congestion.efficiency(256) > 0.999
    assert pytest.approx(170 / 150 - 1) == LOSS


def test_more_requests_than_the_loss_is_fitted_for_are_refused() -> None:
    half = WritePattern(PROCESSES // 2, 1, 1e6)
    writers = [pattern_writer(name, pattern=half) for name in "ABCDE"]
    check_range(writers[:4])
    with pytest.raises(InternalError, match="640 requests may wait"):
        run_rows(storage(BANDWIDTH), writers, "none")


def test_a_flush_after_waiting_gives_96_of_170_mb_per_s() -> None:
    assert pytest.approx(96) == 170 / (1 + 1 / GAIN)
    assert buffer_for(10.0).gain == GAIN
    assert buffer_for(10.0).speed_bytes_per_s == 1000.0


def test_delays_of_750_ms_cost_an_application_alone_5_per_cent() -> None:
    """162 of 170 MB/s, in the mean of the repetitions."""
    machine = storage(SLOW_BANDWIDTH)
    rates = [
        PROCESSES * 32 / alone_time(machine, pattern_writer("A", i, paced(0.75)))
        for i in range(REPETITIONS[Scale.PAPER])
    ]
    assert sum(rates) / len(rates) == pytest.approx(162, abs=0.5)


def test_an_application_alone_needs_30_s_without_delays() -> None:
    time_s = alone_time(storage(BANDWIDTH), pattern_writer("A"))
    assert time_s == pytest.approx(ALONE_S, rel=1e-3)


@pytest.mark.parametrize("delay", DELAYS[1:])
def test_pauses_are_hidden_but_for_those_of_the_first_requests(delay: float) -> None:
    time_s = alone_time(storage(BANDWIDTH), pattern_writer("A", 0, paced(delay)))
    assert ALONE_S < time_s < ALONE_S + 6 * delay


def test_repetitions_differ_in_their_pauses_only() -> None:
    first, second = (pattern_writer("A", i, paced(0.5)) for i in range(2))
    assert first.seed != second.seed
    assert first.steps == second.steps
    assert first.jitter == JITTER
    assert (first.nodes, first.processes) == (32, 256)
    assert pattern_writer("A").jitter == 0.0
    assert pattern_writer("A", pattern=WritePattern(80, 1, 1e6)).nodes == 10


def test_two_equal_applications_interfere_by_the_factor_of_the_paper() -> None:
    writers = [pattern_writer("A"), pattern_writer("B")]
    rows = run_rows(storage(SLOW_BANDWIDTH), writers, "none", test="x")
    assert [row["application"] for row in rows] == ["A", "B"]
    assert {row["test"] for row in rows} == {"x"}
    for row in rows:
        assert row["rate"] == pytest.approx(75.0)
        assert row["factor"] == pytest.approx(170 / 75, rel=1e-3)
        assert row["io_time"] == pytest.approx(row["end"])


def test_delta_rows_have_a_row_per_strategy_delay_offset_and_application() -> None:
    rows = delta_rows(Scale.SMOKE, ("none", "2a"), (0.0, 0.5))
    assert rows.height == 2 * 2 * len(OFFSETS[Scale.SMOKE]) * 2
    late = rows.filter(pl.col("offset") >= 40)
    assert late["factor"].to_list() == pytest.approx([1.0] * late.height)


def test_smoke_scale_has_offsets_of_the_paper_scale() -> None:
    assert set(OFFSETS[Scale.SMOKE]) <= set(OFFSETS[Scale.PAPER])


REPEATED = pl.DataFrame(
    {"case": ["x", "x", "y"], "instance": [0, 1, 0], "factor": [1.0, 2.0, 5.0]}
)


def test_repetitions_are_averaged() -> None:
    means = mean_rows(REPEATED)
    assert dict(means.iter_rows()) == {"x": 1.5, "y": 5.0}


def test_a_single_value_needs_exactly_one_case() -> None:
    assert single_value(REPEATED, "factor", case="x") == 1.5
    with pytest.raises(InternalError, match="2 cases match"):
        single_value(REPEATED, "factor")
    with pytest.raises(NoRowsError):
        single_value(REPEATED, "factor", case="z")
