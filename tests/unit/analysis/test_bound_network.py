# SPDX-License-Identifier: MIT
"""Augmenting paths: flow is conserved, capacities hold, and a cut is found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from penstock.analysis.bound_network import Network, saturate

Matrix = list[list[int]]


def _network(
    length: list[int], transfer_cap: Matrix, waiting_cap: Matrix, supply: Matrix
) -> Network:
    """Return a network without flow; rows are applications, columns intervals."""
    caps = np.array(transfer_cap, dtype=np.int64)
    nodes = caps.size + len(length)
    excess = np.zeros(nodes, dtype=np.int64)
    excess[: caps.size] = np.array(supply).ravel()

    def zeros(size: int) -> NDArray[np.int64]:
        return np.zeros(size, dtype=np.int64)

    return Network(
        length=np.array(length, dtype=np.int64),
        transfer_cap=caps,
        waiting_cap=np.array(waiting_cap, dtype=np.int64),
        transfer=np.zeros_like(caps),
        waiting=np.zeros_like(caps),
        served=zeros(len(length)),
        excess=excess,
        label=zeros(nodes + 1),
        tried=zeros(nodes),
        stack=zeros(nodes + 1),
        later=zeros(nodes + 1),
    )


def _check_flow(network: Network, supply: Matrix) -> None:
    """Check capacities and conservation at every node."""
    assert (network.transfer >= 0).all()
    assert (network.transfer <= network.transfer_cap).all()
    assert (network.waiting >= 0).all()
    assert (network.waiting <= network.waiting_cap).all()
    assert (network.served <= network.length).all()
    assert (network.transfer.sum(axis=0) == network.served).all()
    arrived = np.array(supply) + network.waiting
    left = network.transfer.copy()
    left[:, :-1] += network.waiting[:, 1:]
    excess = network.excess[: network.transfer.size].reshape(left.shape)
    assert (arrived == left + excess).all()


def test_volume_waits_for_a_later_interval() -> None:
    # 5 ticks are released in interval 0, which carries 3; 2 wait for interval 1.
    supply = [[5, 0]]
    network = _network([3, 4], [[3, 4]], [[0, 5]], supply)
    assert saturate(network)
    assert network.waiting.tolist() == [[0, 2]]
    assert network.served.tolist() == [3, 2]
    _check_flow(network, supply)


@pytest.mark.parametrize(
    ("transfer_cap", "waiting_cap"),
    [
        ([[3, 4]], [[0, 1]]),  # too little may wait
        ([[2, 2]], [[0, 5]]),  # the cap of the application is too small
    ],
)
def test_a_cut_that_is_too_small_is_found(
    transfer_cap: Matrix, waiting_cap: Matrix
) -> None:
    network = _network([3, 4], transfer_cap, waiting_cap, [[5, 0]])
    assert not saturate(network)


def test_one_application_yields_to_another_one() -> None:
    # Application 1 can use interval 0 only, so application 0 must wait.
    supply = [[2, 0], [2, 0]]
    network = _network([2, 2], [[2, 2], [2, 0]], [[0, 2], [0, 0]], supply)
    # Start from the wrong flow: application 0 already uses all of interval 0.
    network.transfer[0, 0] = network.served[0] = 2
    network.excess[0] = 0
    assert saturate(network)
    assert network.transfer.tolist() == [[0, 2], [2, 0]]
    _check_flow(network, supply)


_NUMBERS = st.integers(0, 6)


@st.composite
def _cases(draw: st.DrawFn) -> tuple[list[int], Matrix, Matrix, Matrix]:
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 5))

    def matrix() -> Matrix:
        row = st.lists(_NUMBERS, min_size=columns, max_size=columns)
        return draw(st.lists(row, min_size=rows, max_size=rows))

    waiting_cap = [[0, *row[1:]] for row in matrix()]
    length = draw(st.lists(_NUMBERS, min_size=columns, max_size=columns))
    return length, matrix(), waiting_cap, matrix()


@given(_cases())
def test_every_flow_keeps_to_the_capacities(
    case: tuple[list[int], Matrix, Matrix, Matrix],
) -> None:
    supply = case[-1]
    network = _network(*case)
    done = saturate(network)
    _check_flow(network, supply)
    assert done is bool((network.excess == 0).all())
