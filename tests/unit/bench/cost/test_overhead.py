# SPDX-License-Identifier: MIT
"""The overhead benchmark with fake costs: rotation, minimum, goals."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from penstock.bench.cost import overhead

NO_WRITERS: Any = None


def test_each_kind_is_first_once_in_four_rounds_and_the_minimum_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first call of a round is 100 ns slower, so no kind may always be first."""
    base = {"without the library": 50.0, "uncontrolled": 60.0}
    base |= {"counted": 70.0, "paced": 140.0}
    calls: list[str] = []

    def cost_ns(_writers: object, _call: str, kind: str, _size: int) -> float:
        calls.append(kind)
        return base[kind] + (100.0 if len(calls) % 4 == 1 else 0.0)

    monkeypatch.setattr(overhead, "_cost_ns", cost_ns)
    results = list(overhead._measure_size(NO_WRITERS, "write", 4096, 4))
    assert sorted(calls[::4]) == sorted(base)
    assert [m.value for m in results] == [50.0, 10.0, 20.0, 90.0]
    assert [m.is_reached for m in results] == [True, True, True, False]


def test_only_calls_of_one_page_have_goals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overhead, "_cost_ns", lambda *_: 1.0)
    goals = {
        size: [m.most for m in overhead._measure_size(NO_WRITERS, "write", size, 1)]
        for size in (64, 4096)
    }
    assert goals == {64: [inf] * 4, 4096: [inf, 20.0, inf, 80.0]}


def test_large_reads_are_compared_by_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nanoseconds say nothing of a call that copies for a long time."""
    costs = {"without the library": 100.0, "cached": 101.0}
    monkeypatch.setattr(overhead, "_cost_ns", lambda _w, _c, kind, _s: costs[kind])
    small = list(overhead._measure_size(NO_WRITERS, "read", 4096, 1))
    large = list(overhead._measure_size(NO_WRITERS, "read", 1 << 20, 1))
    assert [(m.value, m.unit, m.most) for m in small] == [
        (100.0, "ns", inf),
        (1.0, "ns", 100.0),
    ]
    assert [(m.value, m.most) for m in large] == [(100.0, inf), (1.01, 1.02)]
