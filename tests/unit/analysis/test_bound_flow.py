# SPDX-License-Identifier: MIT
"""Feasibility under caps, against hand-made cases and the maximum flow of scipy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from penstock.analysis.bound_flow import flow_feasible


class Operation(NamedTuple):
    """One operation: application, release, deadline and volume (s)."""

    application: int
    release: int
    deadline: int
    volume: int


def _feasible(operations: list[Operation], shares: list[float]) -> bool:
    ordered = sorted(operations, key=lambda operation: operation.release)
    return flow_feasible(
        np.array([operation.release for operation in ordered], dtype=np.float64),
        np.array([operation.deadline for operation in ordered], dtype=np.float64),
        np.array([operation.volume for operation in ordered], dtype=np.float64),
        np.array([operation.application for operation in ordered], dtype=np.int64),
        np.array(shares),
    )


@pytest.mark.parametrize(
    ("operations", "shares", "expected"),
    [
        # Half the storage for 4 s carries 2 s of volume, but not 3 s.
        ([Operation(0, 0, 4, 2)], [0.5], True),
        ([Operation(0, 0, 4, 3)], [0.5], False),
        # Two applications with half the storage each do not delay one another.
        ([Operation(0, 0, 4, 2), Operation(1, 0, 4, 2)], [0.5, 0.5], True),
        # Three of them do.
        (
            [Operation(0, 0, 4, 2), Operation(1, 0, 4, 2), Operation(2, 0, 4, 2)],
            [0.5, 0.5, 0.5],
            False,
        ),
        # The second application must wait until 2 s, then 2 s are left for its 2 s.
        ([Operation(0, 0, 2, 2), Operation(1, 0, 4, 2)], [1.0, 1.0], True),
        # With half the storage it cannot make up for the wait.
        ([Operation(0, 0, 2, 2), Operation(1, 0, 4, 2)], [1.0, 0.5], False),
    ],
)
def test_hand_made_cases(
    operations: list[Operation], shares: list[float], expected: bool
) -> None:
    assert _feasible(operations, shares) is expected


def test_no_volume_is_always_feasible() -> None:
    assert _feasible([Operation(0, 3, 3, 0)], [1.0])
    assert _feasible([], [1.0])


def test_volume_without_time_is_infeasible() -> None:
    assert not _feasible([Operation(0, 3, 3, 1)], [1.0])


_SHARES = (0.25, 0.5, 1.0)
#: Makes all capacities whole numbers: every share is a multiple of a quarter.
_SCALE = 4


@st.composite
def _instances(draw: st.DrawFn) -> tuple[list[Operation], list[float]]:
    """Draw operations; inside an application, releases and deadlines ascend."""
    operations = []
    count = draw(st.integers(1, 4))
    for application in range(count):
        release = deadline = 0
        for _ in range(draw(st.integers(1, 4))):
            release += draw(st.integers(0, 4))
            deadline = max(deadline, release + 1) + draw(st.integers(0, 8))
            operations.append(
                Operation(application, release, deadline, draw(st.integers(1, 3)))
            )
    shares = draw(st.lists(st.sampled_from(_SHARES), min_size=count, max_size=count))
    return operations, shares


def _reference(operations: list[Operation], shares: list[float]) -> bool:
    """Return True if scipy's maximum flow transfers all volume.

    Nodes: source, one per operation, one per application and second, one per second,
    sink. An operation may use every second between its release and its deadline.
    """
    seconds = max(operation.deadline for operation in operations)
    first_pair = 1 + len(operations)
    first_second = first_pair + len(shares) * seconds
    sink = first_second + seconds
    arcs: dict[tuple[int, int], int] = {}
    for n, operation in enumerate(operations):
        arcs[0, 1 + n] = operation.volume * _SCALE
        for second in range(operation.release, operation.deadline):
            pair = first_pair + operation.application * seconds + second
            arcs[1 + n, pair] = operation.volume * _SCALE
            share = shares[operation.application]
            arcs[pair, first_second + second] = round(share * _SCALE)
            arcs[first_second + second, sink] = _SCALE
    rows, columns = zip(*arcs, strict=True)
    capacities = np.array(list(arcs.values()), dtype=np.int32)
    graph = csr_array((capacities, (rows, columns)), shape=(sink + 1, sink + 1))
    total = sum(operation.volume for operation in operations) * _SCALE
    return bool(maximum_flow(graph, 0, sink).flow_value == total)


@given(_instances())
def test_the_kernel_agrees_with_the_maximum_flow_of_scipy(
    instance: tuple[list[Operation], list[float]],
) -> None:
    operations, shares = instance
    assert _feasible(operations, shares) is _reference(operations, shares)
