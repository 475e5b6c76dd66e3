# SPDX-License-Identifier: MIT
"""All executors of this machine give the same rows; Dask's are in `e2e`."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.experiments.runners.executors import Executor, Inline, LocalPool
from penstock.experiments.study import Study, sweep

POINTS = sweep("synthetic", {"horizon": 20000.0}, {"pressure": (0.5, 0.8)})
STUDY = Study("t", POINTS, 2, ("fcfs", "fair-share"))


def _results(executor: Executor) -> dict[str, Any]:
    rows_of = {}
    for piece, rows in executor.run(list(STUDY.pieces()), pytest.fail):
        assert piece.key not in rows_of
        rows_of[piece.key] = [row | {"seconds": 0.0} for row in rows]
    return rows_of


@pytest.mark.parametrize("workers", [1, 5])
def test_the_rows_do_not_depend_on_the_number_of_workers(workers: int) -> None:
    inline = _results(Inline())
    assert list(inline) == [piece.key for piece in STUDY.pieces()]
    assert _results(LocalPool(workers)) == inline


@pytest.mark.parametrize("executor", [Inline(), LocalPool(1)])
def test_pieces_are_begun_in_the_order_given(executor: Executor) -> None:
    pieces = list(STUDY.pieces())[::-1]
    assert [piece for piece, _ in executor.run(pieces, pytest.fail)] == pieces


@pytest.mark.parametrize("executor", [Inline(), LocalPool(2)])
def test_nothing_to_do(executor: Executor) -> None:
    assert list(executor.run([], pytest.fail)) == []
