# SPDX-License-Identifier: MIT
"""Names of users are found in a thread, which nobody waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest

from penstock.web.identity import user_names as module
from penstock.web.identity.user_names import UserNames
from support.waiting import LIMIT_S, until

Names = dict[str, str]


def _known(names: UserNames, users: list[int], expected: Names) -> Callable[[], bool]:
    return lambda: names.known(users) == expected


def test_names_are_known_soon_and_unknown_users_have_none() -> None:
    names = UserNames({7: "ann", 8: ""}.__getitem__)
    assert names.known([]) == {}
    until(_known(names, [7, 8], {"7": "ann"}))
    # Of those who are asked for.
    assert names.known([8]) == {}


def test_nobody_waits_for_a_name_that_does_not_come() -> None:
    never = threading.Event()

    def find(user: int) -> str:
        if user == 8:
            never.wait(LIMIT_S)
        return "ann"

    names = UserNames(find)
    try:
        until(_known(names, [7], {"7": "ann"}))
        assert names.known([7, 8, 9]) == {"7": "ann"}
        assert names.known([7, 8, 9]) == {"7": "ann"}
    finally:
        never.set()
    until(_known(names, [7, 9], {"7": "ann", "9": "ann"}))


def test_a_name_is_asked_for_once_an_hour() -> None:
    asked: list[int] = []
    now_s = [0.0]

    def find(user: int) -> str:
        asked.append(user)
        return f"name{len(asked)}"

    names = UserNames(find, lambda: now_s[0])
    until(_known(names, [7], {"7": "name1"}))
    now_s[0] = 3599.0
    assert names.known([7]) == {"7": "name1"}
    now_s[0] = 3600.0
    # Until the new one is known, the old one is shown.
    until(_known(names, [7], {"7": "name2"}))
    assert asked == [7, 7]


def test_many_users_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 10)
    names = UserNames(str)
    for user in range(25):
        until(partial(names.known, [user]))
    assert len(names._names) <= 10
    assert len(names._asked_s) <= 10
