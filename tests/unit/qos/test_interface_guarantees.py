# SPDX-License-Identifier: MIT
"""Guarantees of schedulers: declared in code, shown in the documentation."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from penstock.qos import Guarantees, Slo, get_scheduler

PAGE = Path(__file__).parents[3] / "docs/background/throughput-and-latency.md"
NAMES = (
    "fifo",
    "sfq",
    "edf",
    "two-level",
    "two-level:overload=send",
)


def test_a_scheduler_guarantees_nothing_unless_it_says_so() -> None:
    assert not any(getattr(Guarantees(), field.name) for field in fields(Guarantees))


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_shows_the_guarantees(name: str) -> None:
    """Every row has the name, then "yes" or "-" per field of `Guarantees`, in order."""
    given = get_scheduler(name).make({"a": Slo(1e6, 1.0)}, 0.0).guarantees
    marks = ["yes" if getattr(given, f.name) else "-" for f in fields(Guarantees)]
    assert f"| `{name}` | {' | '.join(marks)} |" in PAGE.read_text()
