# SPDX-License-Identifier: MIT
"""Limits of metadata requests: rate, burst, folders that applications share."""

from __future__ import annotations

from ctypes import byref, c_bool

import pytest

from support.native_mount import driver, set_time

RATE = 10.0
LIMITED, OTHER = 1, 2


class Operations:
    def __init__(self) -> None:
        self._operations = driver().driver_operations_new(LIMITED, RATE)

    def charge(
        self,
        now: float,
        application: int = LIMITED,
        folder: int | None = None,
        second: int | None = None,
        *,
        of_mount: bool = False,
    ) -> float:
        """Return how long the answer is delayed (s)."""
        set_time(now)
        is_shared = c_bool()
        due_s: float = driver().driver_operations_charge(
            *(self._operations, application, folder, second),
            *(of_mount, byref(is_shared)),
        )
        self.is_shared = is_shared.value
        return max(0.0, due_s - now)


def test_answers_come_at_the_rate_of_the_limit() -> None:
    operations = Operations()
    delays = [operations.charge(100.0) for _ in range(21)]
    assert delays[0] == 0.0
    assert delays[20] == pytest.approx(20 / RATE, abs=0.021)
    assert operations.charge(100.0, OTHER) == 0.0


def test_unused_operations_are_not_saved() -> None:
    operations = Operations()
    operations.charge(100.0)
    assert operations.charge(200.0) == 0.0
    assert operations.charge(200.0) == pytest.approx(1 / RATE, abs=0.021)


def test_a_folder_that_others_use_does_not_delay_but_costs() -> None:
    operations, folder = Operations(), driver().driver_folder_new()
    operations.charge(100.0, OTHER, folder)
    delays = [operations.charge(100.0, LIMITED, folder) for _ in range(20)]
    assert delays == [0.0] * 20
    # The next request without a lock pays for all of them.
    assert operations.charge(100.0) == pytest.approx(20 / RATE, abs=0.021)
    # A second after the last use by another application the folder delays again.
    assert operations.charge(101.5, LIMITED, folder) > 0.0


def test_a_debt_is_bounded() -> None:
    operations, folder = Operations(), driver().driver_folder_new()
    for _ in range(1000):
        operations.charge(100.0, OTHER, folder)
        operations.charge(100.0, LIMITED, folder)
    # Beside the turn of the last request that came in time.
    assert operations.charge(100.0) <= 10.0 + 1 / RATE


def test_many_waiting_requests_do_not_exceed_the_limit() -> None:
    """An answer comes at its turn, also if the turn is later than a debt may be."""
    operations = Operations()
    delays = [operations.charge(100.0) for _ in range(1000)]
    for number in (200, 500, 999):
        assert delays[number] == pytest.approx(number / RATE, abs=0.021)


def test_a_locked_folder_is_soon_free_and_the_rest_of_the_wait_is_owed() -> None:
    operations, folder = Operations(), driver().driver_folder_new()
    for _ in range(100):
        operations.charge(100.0)
    assert operations.charge(100.0, LIMITED, folder) == pytest.approx(1.0)
    # The request that did not wait for its turn comes before this one.
    assert operations.charge(100.0) == pytest.approx(101 / RATE, abs=0.021)


def test_a_debt_is_paid_by_the_next_wait() -> None:
    operations, folder = Operations(), driver().driver_folder_new()
    for turn in range(1, 4):
        for _ in range(1000):
            operations.charge(100.0, OTHER, folder)
            operations.charge(100.0, LIMITED, folder)
        assert operations.charge(100.0) == pytest.approx(10.0 * turn, abs=0.4)


def test_a_renaming_does_not_wait_if_others_use_either_of_its_folders() -> None:
    operations = Operations()
    own, shared = driver().driver_folder_new(), driver().driver_folder_new()
    operations.charge(100.0, OTHER, shared)
    for folders in ((own, shared), (shared, own)):
        delays = [operations.charge(100.0, LIMITED, *folders) for _ in range(5)]
        assert delays == [0.0] * 5


def test_a_renaming_between_own_folders_does_not_hold_up_those_of_others() -> None:
    """The kernel lets one renaming between folders of a mount go at a time."""
    operations = Operations()
    own = driver().driver_folder_new(), driver().driver_folder_new()
    delays = []
    for _ in range(20):
        delays.append(operations.charge(100.0, LIMITED, *own, of_mount=True))
        assert operations.is_shared
        # The next renaming would wait for the lock of its folder.
        delays += [operations.charge(100.0, LIMITED, folder) for folder in own]
    assert delays == [0.0] * 60
    # The next request without a lock pays for all of them.
    assert operations.charge(100.0) == pytest.approx(60 / RATE, abs=0.021)
    assert not operations.is_shared


def test_a_lock_of_own_folders_is_not_shared() -> None:
    operations = Operations()
    own = driver().driver_folder_new(), driver().driver_folder_new()
    for _ in range(20):
        last = operations.charge(100.0, LIMITED, *own)
    assert last == pytest.approx(1.0)
    assert not operations.is_shared
