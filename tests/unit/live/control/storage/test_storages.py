# SPDX-License-Identifier: MIT
"""Which storage a job is on, which storages decide, and which are dropped."""

from __future__ import annotations

from math import inf

import pytest

from penstock.errors import InputError
from penstock.live.control.storage.bandwidth import BandwidthEstimator
from penstock.live.control.storage.shared_storage import SharedStorage
from penstock.live.control.storage.storages import UNUSED_S, Storages
from support.controllers import controller_with


def storages(*, learns: bool = True) -> Storages:
    """Return storages of which only the first one exists."""
    estimator = (lambda _: BandwidthEstimator()) if learns else None
    return Storages(controller_with("fair-share"), estimator)


def add_job(storage: SharedStorage, job_key: str) -> None:
    """Register a job on a storage at time 0."""
    storage.controller.register(job_key, 0.0)
    storage.join()


def names(some: Storages) -> list[str]:
    """Return the names of all storages."""
    return [storage.name for storage in some]


def test_each_file_system_is_a_storage_if_the_bandwidth_is_learnt() -> None:
    made = storages()
    assert made.get("x") is made.get("x")
    assert made.get("x") is not made.get("y")
    assert names(made) == ["", "x", "y"]


def test_all_jobs_share_the_first_storage_if_the_bandwidth_is_a_number() -> None:
    made = storages(learns=False)
    assert made.get("x") is made.get("y") is made.first
    made.set_bandwidth(None, 0.0)
    assert made.get("x") is not made.first
    made.set_bandwidth(5.0, 0.0)
    assert made.get("x") is made.first
    assert [storage.bandwidth for storage in made.shown()] == [5.0]


def test_a_useless_bandwidth_changes_nothing() -> None:
    made = storages()
    with pytest.raises(InputError):
        made.set_bandwidth(-1.0, 0.0)
    assert made.first.learns


def test_a_storage_decides_if_it_was_touched_or_its_time_has_come() -> None:
    made = storages()
    for name, wake_s in (("", inf), ("x", 2.0), ("y", 3.0)):
        made.get(name).is_touched, made.get(name).wake_s = False, wake_s
    assert (made.due(1.0), made.wake_s) == ([], 2.0)
    assert [storage.name for storage in made.due(2.0)] == ["x"]
    made.get("y").is_touched = True
    assert [storage.name for storage in made.due(1.0)] == ["y"]


def test_a_storage_is_dropped_long_after_its_last_job() -> None:
    made = storages()
    add_job(made.get("used"), "a")
    add_job(made.get("left"), "b")
    made.get("left").leave("b", 1.0)
    made.get("measured")
    made.drop_unused(1.0 + UNUSED_S)
    assert names(made) == ["", "used", "left", "measured"]
    made.drop_unused(2.0 + UNUSED_S)
    # What was measured at the start is kept for the first job.
    assert names(made) == ["", "used", "measured"]


def test_a_storage_that_is_used_again_is_kept() -> None:
    made = storages()
    storage = made.get("x")
    add_job(storage, "a")
    storage.leave("a", 1.0)
    add_job(storage, "a")
    made.drop_unused(10.0 * UNUSED_S)
    assert made.get("x") is storage
