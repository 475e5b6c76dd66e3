# SPDX-License-Identifier: MIT
"""The pool of processes: deaths, errors, and its end."""

from __future__ import annotations

import multiprocessing
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import InputError, PolicyError
from penstock.experiments.runners.local_pool import LocalPool
from penstock.experiments.study import Piece, Study, sweep
from support.campaigns import Bench

POINTS = sweep("synthetic", {"horizon": 20000.0}, {"pressure": (0.8,)})


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.syspath_prepend(tmp_path)
    yield Bench(tmp_path)
    # The next test has another module of this name.
    sys.modules.pop("mine", None)


@pytest.fixture
def pieces(bench: Bench) -> list[Piece]:
    return list(Study("t", POINTS, 4, ("mine.allocate",)).pieces())


def test_the_death_of_a_worker_is_reported_and_its_piece_retried(
    bench: Bench, pieces: list[Piece]
) -> None:
    bench.tell("die")
    messages: list[str] = []
    done = [piece for piece, _ in LocalPool(2).run(pieces, messages.append)]
    assert sorted(piece.key for piece in done) == [piece.key for piece in pieces]
    (message,) = messages
    assert re.fullmatch(
        r"worker \d+ died \(Killed\) while computing piece 0000-00000\d of t: "
        r"trying it again",
        message,
    )
    assert multiprocessing.active_children() == []


def test_a_piece_that_kills_every_worker_ends_the_run(
    bench: Bench, pieces: list[Piece]
) -> None:
    bench.tell("die-always")
    messages: list[str] = []
    with pytest.raises(InputError) as caught:
        list(LocalPool(1).run(pieces, messages.append))
    assert len(messages) == 2
    assert re.fullmatch(
        r"piece 0000-000000 of t has killed 3 workers, the last one \d+ died "
        r"\(Killed\) \(out of memory\? use fewer processes: --jobs, in Python jobs=\)",
        str(caught.value),
    )
    assert multiprocessing.active_children() == []


def test_a_piece_that_kills_every_worker_may_have_a_result_of_its_own(
    bench: Bench, pieces: list[Piece]
) -> None:
    bench.tell("die-always")
    pool = LocalPool(1, give_up=lambda piece, death: (piece.key, death))
    done = list(pool.run(pieces[:2], lambda _: None))
    assert [piece.key for piece, _ in done] == [piece.key for piece in pieces[:2]]
    for piece, (key, death) in done:
        assert key == piece.key
        assert re.fullmatch(r"\d+ died \(Killed\)", death)
    assert multiprocessing.active_children() == []


def test_an_error_is_raised_here_and_not_tried_again(
    bench: Bench, pieces: list[Piece]
) -> None:
    bench.tell("fail")
    with pytest.raises(
        PolicyError, match=r"policy mine\.allocate failed at t = .*: ZeroDivisionError"
    ):
        list(LocalPool(2).run(pieces, pytest.fail))
    assert multiprocessing.active_children() == []


def test_a_closed_pool_leaves_no_process(bench: Bench, pieces: list[Piece]) -> None:
    bench.tell("slow")
    results = LocalPool(2).run(pieces, pytest.fail)
    next(results)
    assert len(multiprocessing.active_children()) == 2
    results.close()
    assert multiprocessing.active_children() == []
