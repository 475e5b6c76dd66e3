# SPDX-License-Identifier: MIT
"""Claims of schedulers: declared in code, shown in the documentation."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from penstock.qos import Claims, Slo, get_scheduler

PAGE = Path(__file__).parents[3] / "docs/background/throughput-and-latency.md"
NAMES = (
    "fifo",
    "sfq",
    "edf",
    "two-level",
    "two-level:overload=send",
    "two-level:storage=shared",
)


def test_a_scheduler_claims_nothing_unless_it_says_so() -> None:
    assert not any(getattr(Claims(), field.name) for field in fields(Claims))


@pytest.mark.parametrize("name", NAMES)
def test_the_documentation_shows_the_claims(name: str) -> None:
    """Every row has the name, then "yes" or "-" per claim, in the order of `Claims`."""
    claims = get_scheduler(name).make({"a": Slo(1e6, 1.0)}, 0.0).claims
    marks = ["yes" if getattr(claims, f.name) else "-" for f in fields(Claims)]
    assert f"| `{name}` | {' | '.join(marks)} |" in PAGE.read_text()
