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
    DELAYS,
    OFFSETS,
    SERVERS,
    alone_time,
    buffer_for,
    delta_rows,
    group,
    one_of,
    run_rows,
    storage,
)

BANDWIDTH = 32e6 * 256 / ALONE_S


def test_every_figure_with_results_is_there() -> None:
    names = [name for name in FIGURES if name.startswith("p4-fig")]
    assert names == [f"p4-fig{number}" for number in range(4, 17)]


def test_the_storage_has_the_two_measurements_of_the_paper() -> None:
    machine = storage(100.0)
    assert machine.targets == SERVERS == 8
    assert machine.profile[3] == pytest.approx(75.0)
    assert machine.profile[7] == pytest.approx(100.0)
    assert 2 / machine.efficiency == pytest.approx(2.3)


def test_an_application_alone_needs_30_s_without_delays() -> None:
    assert alone_time(storage(BANDWIDTH), group("A")) == pytest.approx(ALONE_S)


@pytest.mark.parametrize("delay", DELAYS)
def test_pauses_add_to_the_time_alone(delay: float) -> None:
    """There are 32 requests and 31 pauses."""
    time_s = alone_time(storage(BANDWIDTH), group("A", delay))
    assert time_s == pytest.approx(ALONE_S + 31 * delay)


def test_buffers_are_much_faster_than_the_storage() -> None:
    assert buffer_for(10.0).speed == 1000.0


def test_two_equal_applications_interfere_by_the_factor_of_the_paper() -> None:
    rows = run_rows(storage(BANDWIDTH), [group("A"), group("B")], "none", test="x")
    assert [row["application"] for row in rows] == ["A", "B"]
    assert {row["test"] for row in rows} == {"x"}
    for row in rows:
        assert row["factor"] == pytest.approx(2.3)
        assert row["io_time"] == pytest.approx(2.3 * ALONE_S) == row["end"]
        assert row["rate"] == pytest.approx(BANDWIDTH / 2.3 / 1e6)


def test_delta_rows_have_a_row_per_strategy_delay_offset_and_application() -> None:
    rows = delta_rows(Scale.SMOKE, ("none", "2a"), (0.0, 0.5))
    assert rows.height == 2 * 2 * len(OFFSETS[Scale.SMOKE]) * 2
    late = rows.filter(pl.col("offset") >= 60)
    assert late["factor"].to_list() == pytest.approx([1.0] * late.height)


def test_smoke_scale_has_offsets_of_the_paper_scale() -> None:
    assert set(OFFSETS[Scale.SMOKE]) <= set(OFFSETS[Scale.PAPER])


def test_one_of_needs_exactly_one_row() -> None:
    rows = pl.DataFrame({"a": [1, 1], "b": [2.0, 3.0]})
    assert one_of(rows, "b", b=3.0) == 3.0
    with pytest.raises(InternalError, match="2 rows match"):
        one_of(rows, "b", a=1)
    with pytest.raises(NoRowsError):
        one_of(rows, "b", a=2)
