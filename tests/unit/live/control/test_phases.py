# SPDX-License-Identifier: MIT
"""Operations found in counters, and their volumes predicted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.live.control.phases import FIRST_S, REMEMBERED, Ended, PhaseWatch, Sample
from penstock.live.control.phases import VolumeGuess as Guess

GAP = 0.5


def sample(
    volume: float,
    *,
    idle: float = 0.0,
    posts: int = 1,
    held_up: float = 0.0,
    **rest: bool,
) -> Sample:
    """Return counters."""
    return Sample(posts, volume, held_up, rest.get("waiting", False), idle)


def watch() -> PhaseWatch:
    """Return the watch of a job that has done nothing on node n."""
    made = PhaseWatch(GAP)
    made.see("n", 0.0, sample(0.0, idle=100.0, posts=0))
    assert not made.begins()
    return made


def test_from_the_first_call_to_the_gap() -> None:
    it = watch()
    it.see("n", 1.0, sample(0.0, posts=1))
    assert it.begins()
    assert not it.begins()
    it.see("n", 2.0, sample(70.0))
    assert it.ends(2.0) is None
    assert it.moved == 70.0
    it.see("n", 3.0, sample(90.0, idle=0.49))
    assert it.ends(3.0) is None
    it.see("n", 3.2, sample(90.0, idle=0.7))
    assert it.ends(3.2) == Ended(at=pytest.approx(2.5), volume=90.0)
    assert not it.operates
    assert it.moved == 0.0
    assert not it.begins()


def test_an_idle_time_of_exactly_the_gap_ends_it() -> None:
    it = watch()
    it.see("n", 1e6 / 3.0, sample(5.0))
    assert it.begins()
    it.see("n", 1e6 / 3.0 + 0.1, sample(5.0, idle=GAP))
    assert it.ends(1e6 / 3.0 + 0.1)


def test_bytes_without_a_post_begin_an_operation_too() -> None:
    it = watch()
    it.see("n", 1.0, sample(8.0, posts=0))
    assert it.begins()


def test_the_gap_must_be_there_on_all_nodes() -> None:
    it = watch()
    it.see("m", 0.0, sample(0.0, idle=100.0, posts=0))
    it.see("n", 1.0, sample(10.0))
    assert it.begins()
    it.see("m", 1.5, sample(20.0))
    it.see("n", 2.0, sample(10.0, idle=1.0))
    assert it.ends(2.0) is None
    assert it.operating_nodes() == ["m"]
    it.see("m", 3.0, sample(30.0, idle=0.5))
    assert it.ends(3.0) == Ended(at=2.5, volume=40.0)


def test_who_is_held_up_is_not_idle() -> None:
    it = watch()
    it.see("n", 1.0, sample(1.0))
    assert it.begins()
    it.see("n", 9.0, sample(1.0, idle=8.0, waiting=True))
    assert it.ends(9.0) is None
    assert it.was_held_up()
    assert not it.was_held_up()


def test_held_up_between_two_samples() -> None:
    it = watch()
    it.see("n", 1.0, sample(1.0, held_up=0.2))
    assert it.was_held_up()
    it.see("n", 1.1, sample(1.0, held_up=0.2))
    assert not it.was_held_up()


def test_a_node_that_leaves_is_not_waited_for_and_its_bytes_count() -> None:
    it = watch()
    it.see("m", 0.0, sample(0.0, idle=100.0, posts=0))
    it.see("n", 1.0, sample(10.0))
    it.see("m", 1.0, sample(5.0))
    assert it.begins()
    it.drop("m")
    assert it.moved == 15.0
    it.see("n", 3.0, sample(10.0, idle=2.0))
    assert it.ends(3.0) == Ended(at=1.0, volume=15.0)


def test_without_any_node_an_operation_ends_now() -> None:
    it = watch()
    it.see("n", 1.0, sample(10.0))
    assert it.begins()
    it.drop("n")
    assert it.ends(2.0) == Ended(at=2.0, volume=10.0)


def test_a_node_that_joins_with_counters_of_the_past() -> None:
    """After a restart of its agent: in the middle of an operation, or not."""
    it = PhaseWatch(GAP)
    it.see("n", 1.0, sample(500.0, idle=9.0, posts=7))
    assert not it.begins()
    it = PhaseWatch(GAP)
    it.see("n", 1.0, sample(500.0, idle=0.0, posts=7))
    assert it.begins()
    assert it.moved == 0.0


@given(st.lists(st.tuples(st.floats(0.01, 2.0), st.integers(0, 50)), max_size=40))
def test_nothing_is_counted_twice_or_lost(steps: list[tuple[float, int]]) -> None:
    """The volumes of the operations add up to what was moved."""
    it = watch()
    now, last, volume, posts, total = 0.0, -100.0, 0.0, 0, 0.0
    for delay, moved in [*steps, (9.0, 0)]:
        now += delay
        if moved:
            posts += now - last > GAP
            volume, last = volume + moved, now
        it.see("n", now, sample(volume, idle=now - last, posts=posts))
        it.begins()
        if ended := it.ends(now):
            total += ended.volume
            assert ended.at == pytest.approx(last)
    assert total == volume


def test_a_sure_volume_ends_it_without_a_gap() -> None:
    it = watch()
    it.see("n", 1.0, sample(99.0, idle=0.001))
    assert it.begins()
    assert it.ends_with(100.0, 1.0) is None
    it.see("n", 1.1, sample(100.0, idle=0.0))
    assert it.ends_with(100.0, 1.1) is None
    it.see("n", 1.2, sample(100.0, idle=0.001, waiting=True))
    assert it.ends_with(100.0, 1.2) is None
    it.see("n", 1.3, sample(100.0, idle=0.1))
    assert it.ends_with(100.0, 1.3) == Ended(at=pytest.approx(1.2), volume=100.0)
    assert not it.operates


def test_the_first_operation_is_a_guess() -> None:
    assert Guess().predict(cap=40.0) == (FIRST_S * 40.0, False)


def test_the_median_of_the_last_operations() -> None:
    guess = Guess()
    for volume in (1000.0, 1.0, 5.0, 3.0, 4.0, 2.0):
        guess.learn(volume)
    assert REMEMBERED == 5
    assert guess.predict(cap=40.0) == (3.0, False)


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        ((8.0,), (8.0, False)),
        ((8.0, 8.0), (8.0, True)),
        ((2.0, 8000.0, 8001.0), (8000.0, True)),
        ((8.0, 8.0, 8.0, 2.0), (8.0, False)),
        ((8.0, 8.0, 8.0, 2.0, 2.0), (8.0, False)),
    ],
)
def test_the_same_volume_again_is_sure(
    volumes: tuple[float, ...], expected: tuple[float, bool]
) -> None:
    guess = Guess()
    for volume in volumes:
        guess.learn(volume)
    assert guess.predict(cap=1.0) == expected


def test_a_hint_is_believed() -> None:
    guess = Guess(hint=77.0)
    guess.learn(5.0)
    assert guess.predict(cap=1.0) == (77.0, True)
    guess.next_hint = 9.0
    assert guess.predict(cap=1.0) == (9.0, True)
    assert guess.predict(cap=1.0) == (77.0, True)


def test_no_prediction_is_nothing() -> None:
    guess = Guess()
    guess.learn(0.0)
    assert guess.predict(cap=1.0) == (1.0, False)


def test_a_node_whose_counters_begin_anew() -> None:
    """The job has left it and come back, and has another page."""
    it = watch()
    it.see("n", 1.0, sample(500.0, posts=7))
    assert it.begins()
    it.see("n", 2.0, sample(20.0, posts=1))
    it.see("n", 3.0, sample(50.0, posts=1, idle=GAP))
    assert it.ends(3.0) == Ended(at=2.5, volume=530.0)


def announced(volume: float, said: float, phases: int, *, idle: float = 0.0) -> Sample:
    """Return counters of a program that announces its phases."""
    return Sample(1, volume, 0.0, False, idle, said, phases)


def test_what_a_program_announces_beats_the_gap() -> None:
    it = watch()
    it.see("n", 1.0, announced(0.0, 80.0, 1))
    assert it.begins()
    assert it.announced == 80.0
    it.see("n", 3.0, announced(30.0, 80.0, 1, idle=1.5))
    assert it.ends(3.0) is None
    it.see("n", 4.0, announced(80.0, 80.0, 0, idle=0.01))
    assert it.ends(4.0) == Ended(at=pytest.approx(3.99), volume=80.0)
    assert it.announced == 0.0


def test_what_nodes_announce_adds_up() -> None:
    it = watch()
    it.see("m", 0.0, sample(0.0, idle=100.0, posts=0))
    it.see("n", 1.0, announced(0.0, 80.0, 1))
    it.see("m", 1.0, announced(0.0, 20.0, 1))
    assert it.begins()
    assert it.announced == 100.0
