# SPDX-License-Identifier: MIT
"""Lateness of earliest deadline first, against hand-made cases and a slow EDF."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.analysis.bound_edf import lateness


class Operation(NamedTuple):
    """One operation: application, release, deadline and volume (s)."""

    application: int
    release: int
    deadline: int
    volume: int


def _lateness(operations: list[Operation]) -> float:
    """Call the kernel with operations in the order of their releases."""
    ordered = sorted(operations, key=lambda operation: operation.release)
    owners = [operation.application for operation in ordered]
    following = [
        next((k for k in range(n + 1, len(owners)) if owners[k] == owner), n)
        for n, owner in enumerate(owners)
    ]
    return float(
        lateness(
            np.array([operation.release for operation in ordered], dtype=np.float64),
            np.array([operation.deadline for operation in ordered], dtype=np.float64),
            np.array([operation.volume for operation in ordered], dtype=np.float64),
            np.array(owners, dtype=np.int64),
            np.array(following, dtype=np.int64),
            max(owners, default=-1) + 1,
        )
    )


def _slow_lateness(operations: list[Operation]) -> Fraction:
    """Serve one second after the other: the pending operation with the least deadline.

    All numbers are whole, so no operation changes hands inside a second.
    """
    left = [operation.volume for operation in operations]
    worst: list[Fraction] = []
    now = 0
    while any(left):
        pending = [
            n
            for n, operation in enumerate(operations)
            if left[n] and operation.release <= now
        ]
        now += 1
        if pending:
            chosen = min(pending, key=lambda n: (operations[n].deadline, n))
            left[chosen] -= 1
            if not left[chosen]:
                worst.append(Fraction(now - operations[chosen].deadline))
    return max(worst)


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        # One operation: release + volume - deadline.
        ([Operation(0, 2, 10, 3)], -5.0),
        ([Operation(0, 2, 4, 3)], 1.0),
        # The later release has the earlier deadline and pre-empts the first one.
        ([Operation(0, 0, 10, 5), Operation(1, 1, 3, 2)], -0.0),
        # Both are due at 4, but there are 6 seconds to serve.
        ([Operation(0, 0, 4, 3), Operation(1, 0, 4, 3)], 2.0),
        # An idle interval between two operations is not carried over.
        ([Operation(0, 0, 9, 1), Operation(0, 5, 7, 2)], 0.0),
    ],
)
def test_hand_made_cases(operations: list[Operation], expected: float) -> None:
    assert _lateness(operations) == expected


def test_an_operation_without_volume_is_never_late() -> None:
    assert _lateness([Operation(0, 5, 1, 0), Operation(1, 0, 9, 2)]) == -7.0


def test_without_operations_nothing_is_late() -> None:
    assert _lateness([]) == -np.inf


@st.composite
def _instances(draw: st.DrawFn) -> list[Operation]:
    """Draw operations; inside an application, releases and deadlines ascend."""
    operations = []
    for application in range(draw(st.integers(1, 4))):
        release = deadline = 0
        for _ in range(draw(st.integers(1, 5))):
            release += draw(st.integers(0, 4))
            deadline = max(deadline, release) + draw(st.integers(0, 6))
            volume = draw(st.integers(1, 5))
            operations.append(Operation(application, release, deadline, volume))
    return operations


@given(_instances())
def test_the_kernel_agrees_with_a_slow_edf(operations: list[Operation]) -> None:
    assert _lateness(operations) == _slow_lateness(operations)


@given(_instances(), st.integers(0, 20))
def test_later_deadlines_reduce_the_lateness_by_as_much(
    operations: list[Operation], delay: int
) -> None:
    later = [o._replace(deadline=o.deadline + delay) for o in operations]
    assert _lateness(later) == _lateness(operations) - delay
