# SPDX-License-Identifier: MIT
"""The order of pieces: one of each study, then the longest estimate first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.experiments.runners.piece_order import PieceOrder
from penstock.experiments.study import Piece, Study, sweep

POINTS = sweep("synthetic", {"horizon": 20000.0}, {"pressure": (0.5,)})
STUDY = Study("a", POINTS, 9, ("fcfs",))


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def _pieces(name: str, costs: Iterable[float]) -> list[tuple[Piece, float]]:
    study = replace(STUDY, name=name)
    return [(Piece(study, 0, n, 1), cost) for n, cost in enumerate(costs)]


def _label(piece: Piece) -> str:
    return f"{piece.study.name}{piece.first}"


def _serial(order: PieceOrder, clock: Clock, speed: dict[str, float]) -> list[str]:
    """Compute the pieces one by one; `speed` is seconds per cost of every study."""
    labels = []
    for piece in order:
        labels.append(_label(piece))
        cost = float(piece.first + 1)
        clock.now_s += speed[piece.study.name] * cost
        assert order.finish(piece) == pytest.approx(speed[piece.study.name] * cost)
    return labels


def test_one_piece_of_each_study_then_the_longest() -> None:
    clock = Clock()
    order = PieceOrder(clock)
    order.add(_pieces("a", (1, 2, 3)), ())
    order.add(_pieces("b", (1, 2, 3)), ())
    # A piece of b takes ten times as long as one of a with the same cost.
    labels = _serial(order, clock, {"a": 1.0, "b": 10.0})
    assert labels == ["a2", "b2", "b1", "b0", "a1", "a0"]


def test_of_equal_costs_the_first_piece_comes_first() -> None:
    order = PieceOrder(Clock())
    order.add(_pieces("a", (5, 5, 7)), ())
    assert [_label(piece) for piece in order] == ["a2", "a0", "a1"]


def test_a_piece_that_runs_long_tells_that_its_study_is_slow() -> None:
    clock = Clock()
    order = PieceOrder(clock)
    order.add(_pieces("a", (1, 1, 1)), ())
    order.add(_pieces("b", (1, 1, 1)), ())
    pieces = iter(order)
    slow, quick = next(pieces), next(pieces)
    assert (_label(slow), _label(quick)) == ("a0", "b0")
    clock.now_s = 8.0
    order.finish(quick)
    clock.now_s = 9.0
    # a has run for 9 s and is not done yet; b takes 8 s.
    assert _label(next(pieces)) == "a1"


def test_the_times_of_kept_pieces_are_known() -> None:
    clock = Clock()
    order = PieceOrder(clock)
    order.add(_pieces("a", (1, 1)), [(1.0, 3.0)])
    order.add(_pieces("b", (1, 1)), [(1.0, 5.0)])
    assert (order.done_s(), order.remaining_s()) == (8.0, 2 * 3.0 + 2 * 5.0)
    assert _label(next(iter(order))) == "b0"


def test_an_unknown_study_counts_as_much_as_the_others() -> None:
    order = PieceOrder(Clock())
    order.add(_pieces("a", (1, 1)), [(1.0, 3.0)])
    order.add(_pieces("b", (1,)), ())
    assert order.remaining_s() == 2 * 3.0 + 9.0


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(1, 4))
def test_every_piece_is_given_out_once_and_nothing_remains(
    counts: list[int], speed: int
) -> None:
    clock = Clock()
    order = PieceOrder(clock)
    names = [f"s{number}-" for number in range(len(counts))]
    for name, count in zip(names, counts, strict=True):
        order.add(_pieces(name, range(1, count + 1)), ())
    speeds = {name: speed * (n + 1.0) for n, name in enumerate(names)}
    labels = _serial(order, clock, speeds)
    assert len(labels) == len(set(labels)) == sum(counts)
    assert order.remaining_s() == 0
    assert order.done_s() == pytest.approx(clock.now_s)
