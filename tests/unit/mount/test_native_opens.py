# SPDX-License-Identifier: MIT
"""Budgets of open files: one for each user with the ids of its containers."""

from __future__ import annotations

import ctypes
from ctypes import c_uint32, c_void_p

from support.native_mount import driver

MOST = 3
ANN, BEN = 1_000, 1_001
#: User ids of Ann's containers; the second one shares a row of the table with Ben.
CONTAINERS = (100_000, BEN + 4_096)
#: The question for its owner fails.
UNKNOWN = 2_000


class Opens:
    """Budgets in C; every id of a container belongs to Ann."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self._ask = ctypes.CFUNCTYPE(c_uint32, c_uint32)(self._owner_of)
        pointer = ctypes.cast(self._ask, c_void_p)
        self._opens = driver().driver_opens_new(MOST, pointer)

    def _owner_of(self, user: int) -> int:
        self.asked.append(user)
        return ANN if user in CONTAINERS else 0 if user == UNKNOWN else user

    def open(self, user: int) -> bool:
        return bool(driver().driver_opens_take(self._opens, user))

    def close(self, user: int) -> None:
        driver().driver_opens_give_back(self._opens, user)


def test_ids_of_containers_have_no_budget_of_their_own() -> None:
    opens = Opens()
    assert [opens.open(user) for user in (ANN, *CONTAINERS, *CONTAINERS, ANN)] == [
        *[True] * MOST,
        *[False] * 3,
    ]
    assert opens.open(BEN)
    opens.close(CONTAINERS[0])
    assert opens.open(CONTAINERS[1])
    assert not opens.open(ANN)


def test_an_owner_is_asked_for_once() -> None:
    opens = Opens()
    for _ in range(2 * MOST):
        opens.open(CONTAINERS[0])
    assert opens.asked == [CONTAINERS[0]]


def test_only_root_has_no_budget() -> None:
    opens = Opens()
    assert all(opens.open(0) for _ in range(2 * MOST))
    assert opens.asked == []
    assert [opens.open(UNKNOWN) for _ in range(MOST + 1)] == [*[True] * MOST, False]
