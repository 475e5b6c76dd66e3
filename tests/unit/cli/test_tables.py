# SPDX-License-Identifier: MIT
"""Text tables: aligned, whole, and without colours."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from penstock.cli.tables import format_table, pressure_text

ROWS = [("name", "targets", "n"), ("climate", "0-5", "6"), ("x", "1", "10")]


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert format_table(ROWS) == (
        "name     targets  n\nclimate  0-5      6\nx        1        10\n"
    )


def test_columns_of_numbers_are_aligned_to_the_right() -> None:
    assert format_table(ROWS, left=2) == (
        "name     targets   n\nclimate  0-5       6\nx        1        10\n"
    )
    assert format_table(ROWS, left=0) == (
        "   name  targets   n\nclimate      0-5   6\n      x        1  10\n"
    )


def test_gaps_are_the_blanks_before_the_columns() -> None:
    assert format_table(ROWS[1:], gaps=(2, 1, 0)) == "  climate 0-56\n  x       1  10\n"


def test_no_rows_are_no_lines() -> None:
    assert format_table([]) == ""


def test_empty_cells_leave_no_blanks_at_the_end() -> None:
    assert format_table([("a", "b"), ("c", "")]) == "a  b\nc\n"


def test_long_cells_are_neither_cut_nor_wrapped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    cell = "long words " * 100 + "end"
    assert format_table([(cell, "x" * 500)]) == f"{cell}  {'x' * 500}\n"


@pytest.mark.parametrize("name", ["FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE"])
def test_there_are_no_colours_even_if_the_environment_asks_for_them(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")
    assert "\x1b" not in format_table(ROWS)


def test_cells_are_plain_text() -> None:
    cell = "[bold]mine[/bold] :smile: https://x.org 1.5"
    assert format_table([(cell,)]) == f"{cell}\n"


def test_wide_characters_are_aligned_as_a_terminal_shows_them() -> None:
    lines = format_table([("模型", "1"), ("model", "2")]).splitlines()
    assert lines == ["模型   1", "model  2"]
    assert {cell_len(line) for line in lines} == {8}


def test_the_aimed_pressure_stands_beside_the_measured_one() -> None:
    assert pressure_text(0.965, 1.0) == "I/O pressure 0.965 (aimed at 1)"
    assert pressure_text(0.6, None) == "I/O pressure 0.600"


@pytest.mark.parametrize(
    ("measured", "aimed", "text"),
    [
        (0.5, None, "I/O pressure 0.500"),
        (0.787, 0.8, "I/O pressure 0.787 (aimed at 0.8)"),
        (0.95, 0.8, "I/O pressure 0.950 (aimed at 0.8)"),
        (0.71, 0.8, "I/O pressure 0.710 (aimed at 0.8: not reached)"),
    ],
)
def test_a_pressure_that_is_not_reached_is_told(
    measured: float, aimed: float | None, text: str
) -> None:
    assert pressure_text(measured, aimed) == text
