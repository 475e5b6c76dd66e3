# SPDX-License-Identifier: MIT
"""The bells of all users: one thread, rings, damaged bells."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.live.node.budgets import Budgets, Holding
from penstock.live.node.pages import bells as module
from penstock.live.node.pages import shared_file
from penstock.live.node.pages.bell import SIZE, Bell, BellWords
from penstock.live.node.pages.bells import Bells
from penstock.live.node.pages.room import PageRoom
from penstock.live.node.pages.shared_file import SharedFile, wake
from support.waiting import until

ME, GROUP = os.geteuid(), os.getegid()
needs_root = pytest.mark.skipif(ME != 0, reason="only root may give files away")

Rings = list[tuple[int, list[int]]]


@pytest.fixture(params=["several words", "one word"])
def most(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many futexes the kernel waits for; 1 before Linux 5.16."""
    if request.param == "one word":
        monkeypatch.setattr(shared_file, "MOST_FUTEXES", 1)
        monkeypatch.setattr(module, "MOST_FUTEXES", 1)
        monkeypatch.setattr(module, "_SLEEP_S", 0.02)
    elif shared_file.MOST_FUTEXES == 1:
        pytest.skip("needs Linux 5.16")
    return shared_file.MOST_FUTEXES


@pytest.fixture
def rings() -> Rings:
    """Return the list that collects users and slots."""
    return []


@pytest.fixture
def bells(tmp_path: Path, rings: Rings, most: int) -> Iterator[Bells]:
    """Return bells whose rings are collected."""
    # Those of the test before end soon.
    until(lambda: not threads())
    created = Bells(tmp_path, lambda bell, slots: rings.append((bell.user, slots)))
    yield created
    created.close()
    until(lambda: not threads())


def ring(bell: Bell, slot: int) -> None:
    """Ring a bell as a process does."""
    file = SharedFile.open(bell.path, SIZE, "bell")
    words = BellWords.from_address(file.address)
    words.posts[slot - 1] += 1
    words.rings += 1
    wake(file.address + BellWords.rings.offset)
    file.close()


def threads() -> list[threading.Thread]:
    """Return the threads that wait for bells."""
    return [thread for thread in threading.enumerate() if thread.name == "bells"]


def users_with_jobs(bells: Bells, count: int) -> list[Bell]:
    """Return the bells of several users, each with one job."""
    made = [bells.get(70_000 + number, GROUP) for number in range(count)]
    for bell in made:
        bell.take_slot("job")
    return made


def has(rings: Rings, *expected: tuple[int, list[int]]) -> Callable[[], bool]:
    """Return a function that tells whether all of these rings have come."""
    return lambda: all(each in rings for each in expected)


def test_a_ring_tells_the_slot(bells: Bells, rings: Rings) -> None:
    bell = bells.get(ME, GROUP)
    assert bells.get(ME, GROUP) is bell
    bell.take_slot("0:a")
    ring(bell, 1)
    until(has(rings, (ME, [1])))
    ring(bell, 1)
    until(lambda: rings == [(ME, [1])] * 2)


def test_a_bell_without_jobs_is_removed(bells: Bells, tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    bell = bells.get(ME, GROUP)
    slots = [bell.take_slot(key) for key in ("0:a", "0:b")]
    bells.free(ME, slots[0])
    assert bell.path.exists()
    bells.free(ME, slots[1])
    assert list(tmp_path.iterdir()) == []
    until(lambda: not threads())
    # Others may be closed meanwhile: those of objects of earlier tests.
    until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before)


def test_bells_of_former_agents_are_removed_unless_used(
    bells: Bells, tmp_path: Path
) -> None:
    bell = bells.get(ME, GROUP)
    (tmp_path / "99.bell").write_bytes(b"")
    (tmp_path / "99.page").write_bytes(b"")
    bells.remove_unused()
    assert set(tmp_path.iterdir()) == {bell.path, tmp_path / "99.page"}


@needs_root
def test_one_thread_waits_for_the_bells_of_many_users(
    bells: Bells, rings: Rings, most: int
) -> None:
    made = users_with_jobs(bells, 130)
    assert len(threads()) == (130 if most == 1 else 2)
    for bell in made:
        ring(bell, 1)
    until(has(rings, *((bell.user, [1]) for bell in made)))
    for bell in made[:128]:
        bells.free(bell.user, 1)
    until(lambda: len(threads()) <= 2)
    ring(made[129], 1)
    until(lambda: rings.count((made[129].user, [1])) == 2)


@needs_root
@pytest.mark.parametrize("damage", ["truncated", "cut short", "garbage"])
def test_a_damaged_bell_does_not_affect_others(
    bells: Bells, rings: Rings, damage: str
) -> None:
    damaged, sound = users_with_jobs(bells, 2)
    if damage == "garbage":
        with damaged.path.open("r+b") as stream:
            stream.write(b"?" * SIZE)
    else:
        os.truncate(damaged.path, 0 if damage == "truncated" else 100)
    ring(sound, 1)
    until(has(rings, (sound.user, [1])))
    if damage == "garbage":
        # Seen now, so that it is not seen together with the ring below.
        until(lambda: any(user == damaged.user for user, _ in rings))
    else:
        until(lambda: damaged.is_damaged)
        (problem,) = bells.renew(3.0)
        text = f"user {damaged.user} has damaged {damaged.path}"
        assert problem == (damaged.user, text)
    assert bells.renew(3.0) == []
    # Its user has a bell again, with the same slots.
    assert bells.get(damaged.user, GROUP).jobs == damaged.jobs
    rings.clear()
    for bell in (damaged, sound):
        ring(bell, 1)
    until(has(rings, (damaged.user, [1]), (sound.user, [1])))


def test_a_bell_that_cannot_be_replaced_is_a_problem_and_no_error(
    bells: Bells, tmp_path: Path
) -> None:
    bell = bells.get(ME, GROUP)
    bell.take_slot("0:a")
    bell.is_damaged = True
    bell.path.unlink()
    bell.path.mkdir()
    for _ in range(2):
        assert "have no lease" in bells.renew(3.0)[-1][1]
    bell.path.rmdir()
    assert bells.renew(3.0) == [(ME, f"user {ME} has damaged {bell.path}")]
    assert bells.renew(3.0) == []


@needs_root
def test_removed_bells_that_stay_open_count_and_are_limited(tmp_path: Path) -> None:
    budgets = Budgets(40)
    bells = Bells(tmp_path, lambda *_: None, room=PageRoom(budgets, None))
    user = 70_000
    bells.get(user, GROUP).take_slot("job")
    kept = []
    for _ in range(30):
        bell = bells.get(user, GROUP)
        if not bell.is_damaged:
            kept.append(os.open(bell.path, os.O_RDWR))
        bell.is_damaged = True
        problems = bells.renew(3.0)
    assert "too many" in problems[-1][1]
    assert budgets.held(user, Holding.JOBS) == 10
    assert budgets.may_hold(user + 1, Holding.JOBS, 0.0)
    for descriptor in kept:
        os.close(descriptor)
    bells._room.cut([], 1.0)
    bells.renew(3.0)
    assert not bells.get(user, GROUP).is_damaged
    bells.close()


@needs_root
def test_a_damaged_bell_that_its_user_repairs_is_replaced_all_the_same(
    tmp_path: Path,
) -> None:
    """The daemon took the repaired file for the new bell, and gave it to root."""
    budgets = Budgets(4096)
    bells = Bells(tmp_path, lambda *_: None, room=PageRoom(budgets, None))
    user = 70_000
    bell = bells.get(user, GROUP)
    bell.take_slot("job")
    inode = bell.path.stat().st_ino
    bell.is_damaged = True
    bells.renew(3.0)
    status = bell.path.stat()
    assert status.st_ino != inode
    assert status.st_uid == user
    assert budgets.held(user, Holding.JOBS) == 0
    bells.close()


@needs_root
def test_a_bell_that_no_job_uses_is_watched_when_it_is_removed(tmp_path: Path) -> None:
    budgets = Budgets(4096)
    bells = Bells(tmp_path, lambda *_: None, room=PageRoom(budgets, None))
    Bell.get(tmp_path, 70_000, GROUP).close()
    with (tmp_path / "70000.bell").open("r+b"):
        bells.remove_unused()
        assert budgets.held(70_000, Holding.JOBS) == 1
    bells._room.close()


@pytest.fixture
def charged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list that collects the users who were charged."""
    users: list[int] = []
    charge = Bell.charge

    def noted(bell: Bell, now_s: float, posts: int) -> None:
        users.append(bell.user)
        charge(bell, now_s, posts)

    monkeypatch.setattr(Bell, "charge", noted)
    return users


@needs_root
def test_only_those_who_ring_pay_for_it(
    bells: Bells, rings: Rings, charged: list[int]
) -> None:
    """A user who rings without a pause made the posts of all others late."""
    loud, quiet = users_with_jobs(bells, 2)
    for count in range(1, 21):
        ring(loud, 1)
        until(lambda count=count: len(rings) == count)  # type: ignore[misc]
    assert charged.count(loud.user) >= 20
    assert quiet.user not in charged


@needs_root
def test_who_wakes_the_thread_without_a_ring_pays(
    bells: Bells, charged: list[int]
) -> None:
    """Any process of a user can call futex(2) with the bell of this user."""
    loud, quiet = users_with_jobs(bells, 2)
    file = SharedFile.open(loud.path, SIZE, "bell")

    def has_paid() -> bool:
        wake(file.address + BellWords.rings.offset)
        return loud.user in charged

    until(has_paid)
    file.close()
    assert quiet.user not in charged


@needs_root
def test_ids_of_containers_share_the_budget_for_posts(tmp_path: Path) -> None:
    bells = Bells(tmp_path, lambda *_: None, lambda user: min(user, 70_000))
    container, other, stranger = (bells.get(n, GROUP) for n in (70_001, 70_002, 69_999))
    container.charge(time.monotonic(), 100_000)
    assert other.pause_s(time.monotonic()) > 0.0
    assert stranger.pause_s(time.monotonic()) == 0.0
    bells.close()
    until(lambda: not threads())


def test_a_user_whose_last_job_leaves_keeps_the_debt_of_posts(
    bells: Bells, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.live.node.pages.bell.is_operator", lambda _: False)
    bell = bells.get(ME, GROUP)
    slot = bell.take_slot("0:a")
    now_s = time.monotonic()
    bell.charge(now_s, 100_000)
    bells.free(ME, slot)
    again = bells.get(ME, GROUP)
    assert again is not bell
    assert again.pause_s(now_s) > 0.0
    # A budget that is full again is forgotten.
    bells.free(ME, again.take_slot("0:b"))
    monkeypatch.setattr(time, "monotonic", lambda: now_s + 1000.0)
    bells.get(ME, GROUP)
    assert bells._bells[ME].posts is not bell.posts
