# SPDX-License-Identifier: MIT
"""The page on what control sees: what is committed is what the script writes."""

from __future__ import annotations

import re

import coverage_table
import pytest

from support.programs import PROGRAMS

ROUNDS = coverage_table.ROUNDS
PAGE = coverage_table.PAGE.read_text()


def test_the_committed_page_has_the_present_text() -> None:
    system = re.search(r"Measured on (.*)\.\n", PAGE)
    assert system
    assert PAGE.startswith(coverage_table.HEAD.format(system=system[1], rounds=ROUNDS))
    assert PAGE.endswith(coverage_table.TAIL)


def test_every_program_has_a_row() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", PAGE, flags=re.MULTILINE)[1:]
    assert rows == ["---", *(program.name for program in PROGRAMS.values())][1:]


@pytest.mark.parametrize(
    ("counted", "moved", "shown"),
    [(100, 100, "all"), (0, 100, "none"), (50, 100, "50%")],
)
def test_shares(counted: int, moved: int, shown: str) -> None:
    assert coverage_table._share(counted, moved) == shown
