# SPDX-License-Identifier: MIT
"""User ids that belong to another user."""

from __future__ import annotations

import os
import pwd
import threading
from pathlib import Path

import pytest

from penstock.live.node.budgets import Budgets, Holding, Spending
from penstock.live.wire import subordinates
from penstock.live.wire.subordinates import SubordinateUsers
from support.waiting import LIMIT_S

ANN, BOB = 65_201, 65_202


@pytest.fixture
def users(tmp_path: Path) -> SubordinateUsers:
    """Return the users of a file with two good lines, one of root, and bad ones."""
    (tmp_path / "subuid").write_text(
        f"{BOB}:300000:10\n{ANN}:200000:65536\nroot:100000:65536\n"
        "# a comment\nno such user:1:2\nann:1\n7:x:y\n\n"
    )
    return SubordinateUsers(tmp_path / "subuid")


def test_ids_in_a_range_belong_to_its_owner(users: SubordinateUsers) -> None:
    assert {users.owner_of(user) for user in (200_000, 265_535)} == {ANN}
    assert {users.owner_of(user) for user in (300_000, 300_009)} == {BOB}
    for user in (0, 1, os.geteuid(), ANN, 199_999, 265_536, 300_010, 2**32 - 2):
        assert users.owner_of(user) == user


def test_containers_of_root_are_not_root(users: SubordinateUsers) -> None:
    assert users.owner_of(100_001) == 100_001


def test_a_person_in_the_range_of_another_one_has_its_own_budget(
    users: SubordinateUsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def getpwuid(user: int) -> pwd.struct_passwd:
        asked.append(user)
        if user != 200_500:
            raise KeyError(user)
        return pwd.getpwnam("root")  # A person whom LDAP knows.

    monkeypatch.setattr("pwd.getpwuid", getpwuid)
    for _ in range(3):
        assert users.owner_of(200_500) == 200_500
        assert users.owner_of(200_501) == ANN
    assert users.owner_of(ANN) == ANN
    # Each id is looked up once: the user database may be far away.
    assert asked == [200_500, 200_501]


def test_nobody_waits_for_a_user_database_that_does_not_answer(
    users: SubordinateUsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop of the daemon asks. It stops once, and for a short time."""
    answers, asked = threading.Event(), []

    def getpwuid(user: int) -> pwd.struct_passwd:
        asked.append(user)
        answers.wait(30.0)
        return pwd.getpwnam("root")

    monkeypatch.setattr("pwd.getpwuid", getpwuid)
    owners: list[int] = []

    def ask() -> None:
        owners.extend(users.owner_of(200_000 + number) for number in range(1000))

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(20.0)
    is_done = not thread.is_alive()
    answers.set()
    assert is_done
    assert owners == [ANN] * 1000
    assert asked == [200_000]
    # What is held in the name of the owner is released in its name.
    thread.join(LIMIT_S)
    assert users.owner_of(200_000) == ANN


def test_many_ids_of_containers_hold_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user database that answers in 50 ms stopped the event loop for each id."""
    now_s = 1000.0
    asked = []

    def getpwuid(user: int) -> pwd.struct_passwd:
        nonlocal now_s
        asked.append(user)
        now_s += 0.05
        raise KeyError(user)

    monkeypatch.setattr("pwd.getpwuid", getpwuid)
    (path := tmp_path / "subuid").write_text(f"{ANN}:200000:65536\n")
    users = SubordinateUsers(path, lambda: now_s)
    begun_s = now_s
    assert {users.owner_of(200_000 + number) for number in range(1000)} == {ANN}
    assert now_s - begun_s < 0.2
    now_s += 100.0
    assert users.owner_of(250_000) == ANN
    assert asked[-1] == 250_000


def test_owners_are_looked_up_for_a_limited_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon starts, and ids of one owner have one budget, if not the owner's."""
    answers = threading.Event()

    def getpwnam(name: str) -> pwd.struct_passwd:
        answers.wait(LIMIT_S)
        raise KeyError(name)

    monkeypatch.setattr(subordinates, "_START_S", 0.05)
    monkeypatch.setattr("pwd.getpwnam", getpwnam)
    monkeypatch.setattr(subordinates, "user_name", lambda _: "")
    lines = "ann:300000:10\nbob:200000:10\nann:400000:10\n7:500000:10\n"
    (path := tmp_path / "subuid").write_text(lines)
    made: list[SubordinateUsers] = []
    thread = threading.Thread(target=lambda: made.append(SubordinateUsers(path)))
    thread.start()
    thread.join(LIMIT_S / 2)
    is_made = bool(made)
    answers.set()
    thread.join(LIMIT_S)
    assert is_made
    owners = [made[0].owner_of(user) for user in (300_005, 400_005, 200_005, 500_005)]
    assert owners[:3] == [300_000, 300_000, 200_000]


def test_without_a_file_everybody_is_its_own(tmp_path: Path) -> None:
    assert SubordinateUsers(tmp_path / "absent").owner_of(ANN) == ANN


def test_one_person_has_one_budget(users: SubordinateUsers) -> None:
    budgets = Budgets(400, users.owner_of)
    held = [budgets.hold(200_000 + n, Holding.PROCESSES, 0.0) for n in range(101)]
    assert held == [True] * 100 + [False]
    assert not budgets.may_hold(ANN, Holding.JOBS, 0.0)
    assert budgets.held(200_007, Holding.PROCESSES) == 100
    assert budgets.hold(BOB, Holding.JOBS, 0.0)
    (throttled, _) = budgets.throttled(0.0)
    assert throttled.user == ANN
    budgets.release(200_000, Holding.PROCESSES)
    assert budgets.hold(ANN, Holding.PROCESSES, 0.0)
    while budgets.take(200_001, Spending.CONNECTS, 0.0):
        pass
    assert not budgets.take(200_002, Spending.CONNECTS, 0.0)
