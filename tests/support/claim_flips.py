# SPDX-License-Identifier: MIT
"""Checks that every claim of a figure can hold and can fail."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.experiments.claims import Tables, judge
from penstock.experiments.reproduction import Reproduction

__all__ = ["assert_all_claims", "assert_flips", "failed_claims", "holds"]


def holds(figure: Reproduction, name: str, tables: Tables) -> bool:
    """Return the verdict on one claim; it must come with finite numbers."""
    claims = [claim for claim in figure.claims if claim.name == name]
    assert len(claims) == 1, f"{figure.name} has {len(claims)} claims {name}"
    (record,) = judge(claims, tables)
    assert record["numbers"]
    return bool(record["holds"])


def assert_flips(figure: Reproduction, name: str, good: Tables, bad: Tables) -> None:
    """Check that a claim holds on the good tables and fails on the bad ones."""
    assert holds(figure, name, good), f"{name} fails on the good table"
    assert not holds(figure, name, bad), f"{name} holds on the bad table"


def assert_all_claims(figures: Iterable[Reproduction], tested: Iterable[str]) -> None:
    """Check that the tested claims are those that the figures declare."""
    declared = {claim.name for figure in figures for claim in figure.claims}
    assert set(tested) == declared


def failed_claims(figure: Reproduction, tables: Tables) -> set[str]:
    """Return the claims that fail; each must come with numbers and a reason."""
    records = judge(figure.claims, tables)
    assert all(record["numbers"] for record in records)
    failed = [record for record in records if not record["holds"]]
    assert all(record["reason"] for record in failed), failed
    return {record["name"] for record in failed}
