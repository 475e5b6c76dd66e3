# SPDX-License-Identifier: MIT
"""Learnt bandwidths survive a restart; a useless file does not disturb."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from penstock.live.control.activity.usage import Kind
from penstock.live.control.storage.bandwidth import Reason
from penstock.live.daemon.learnt import LearntBandwidths


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a file that does not exist."""
    return tmp_path / "bandwidth.json"


def test_what_was_learnt_is_known_after_a_restart(path: Path) -> None:
    first = LearntBandwidths(path, lambda: 1000.0)
    assert first.known("nfs server:/") == {}
    first.save({"nfs server:/": {Kind.WRITES: 4e7, Kind.READS: 9e7}})
    second = LearntBandwidths(path)
    assert second.known("nfs server:/") == {
        Kind.WRITES: (4e7, Reason.REMEMBERED),
        Kind.READS: (9e7, Reason.REMEMBERED),
    }
    assert second.known("another") == {}
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_what_is_known_changes_at_once(path: Path) -> None:
    """The control loop asks while another thread saves."""
    learnt = LearntBandwidths(path)

    class Rates(dict[Kind, float]):
        def items(self) -> Any:
            for item in super().items():
                yield item
                assert learnt.known("a") == {}

    learnt.save({"a": Rates({Kind.WRITES: 1.0, Kind.READS: 2.0})})
    assert set(learnt.known("a")) == {Kind.WRITES, Kind.READS}


def test_a_storage_without_a_bandwidth_is_not_kept(path: Path) -> None:
    LearntBandwidths(path).save({"a": {}, "b": {Kind.WRITES: 1.0}})
    assert list(json.loads(path.read_text())["storages"]) == ["b"]


def test_storages_that_are_not_used_now_are_kept(path: Path) -> None:
    LearntBandwidths(path).save({"a": {Kind.WRITES: 1.0}})
    LearntBandwidths(path).save({"b": {Kind.MIXED: 2.0}})
    again = LearntBandwidths(path)
    assert again.known("a") == {Kind.WRITES: (1.0, Reason.REMEMBERED)}
    assert again.known("b") == {Kind.MIXED: (2.0, Reason.REMEMBERED)}


def test_a_small_change_writes_no_file(path: Path) -> None:
    learnt = LearntBandwidths(path)
    learnt.save({"a": {Kind.WRITES: 100.0}})
    path.unlink()
    learnt.save({"a": {Kind.WRITES: 101.0}})
    assert not path.exists()
    learnt.save({"a": {Kind.WRITES: 150.0}})
    assert path.exists()


def test_the_oldest_storages_are_forgotten(path: Path) -> None:
    times = iter(range(1000))
    learnt = LearntBandwidths(path, lambda: float(next(times)))
    for number in range(130):
        learnt.save({f"s{number}": {Kind.WRITES: 1.0}})
    kept = json.loads(path.read_text())["storages"]
    assert list(kept) == [f"s{number}" for number in range(30, 130)]


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b'{"version": 9, "storages": {}}'),
        *(
            b'{"version": 1, "storages": 3}',
            b'{"version": 1, "storages": {"\xff": {}}}',
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_ignored(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        learnt = LearntBandwidths(path)
    assert learnt.known("a") == {}
    assert "is ignored" in caplog.text
    learnt.save({"a": {Kind.WRITES: 5.0}})
    assert LearntBandwidths(path).known("a") == {Kind.WRITES: (5.0, Reason.REMEMBERED)}


def test_a_file_that_cannot_be_written_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    learnt = LearntBandwidths(tmp_path / "file" / "bandwidth.json")
    with caplog.at_level(logging.WARNING):
        for rate in (1.0, 2.0, 3.0):
            learnt.save({"a": {Kind.WRITES: rate}})
    assert caplog.text.count("control goes on") == 1
    assert learnt.known("a") == {Kind.WRITES: (3.0, Reason.REMEMBERED)}
