# SPDX-License-Identifier: MIT
"""Limits of metadata requests: rate, burst, folders that applications share."""

from __future__ import annotations

import pytest

from support.native_mount import driver, set_time

RATE = 10.0
LIMITED, OTHER = 1, 2


class Operations:
    def __init__(self) -> None:
        self._operations = driver().driver_operations_new(LIMITED, RATE)

    def charge(
        self, now: float, application: int = LIMITED, folder: int | None = None
    ) -> float:
        """Return how long the answer is delayed (s)."""
        set_time(now)
        due_s: float = driver().driver_operations_charge(
            self._operations, application, folder
        )
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
    assert operations.charge(100.0) <= 10.0
