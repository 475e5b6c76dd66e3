# SPDX-License-Identifier: MIT
"""Sources of instances: files and workloads, small enough to send to workers."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.experiments.source import FilePoint, Source
from penstock.experiments.study import Point
from penstock.model import write_instance
from penstock.workloads import Synthetic
from unit.samples import pair

POINT = Point("synthetic", (("horizon", "20000"),))


@pytest.fixture
def file(tmp_path: Path) -> Source:
    write_instance(pair(), path := str(tmp_path / "a.json"))
    return Source(FilePoint(path))


def test_a_file_has_one_instance(file: Source) -> None:
    assert file.count == 1
    assert file.instance(0).digest() == pair().digest()


def test_a_file_is_read_once(file: Source) -> None:
    first = file.instance(0)
    Path(file.point.workload).unlink()
    assert file.instance(0) is first


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        Source(FilePoint(str(tmp_path / "none.json"))).instance(0)


def test_a_workload_draws_with_the_seed_and_the_number() -> None:
    source = Source(POINT, count=3, seed=5)
    for index in range(3):
        expected = Synthetic(horizon=20_000.0).instance(5, index).digest()
        assert source.instance(index).digest() == expected


def test_messages_name_the_file_or_the_number_of_the_instance() -> None:
    assert FilePoint("a.json").message_prefix(0) == "a.json: "
    assert POINT.message_prefix(2) == "instance 2: "


def test_the_aimed_pressure_is_that_of_the_workload(file: Source) -> None:
    assert Source(Point("synthetic", (("pressure", 0.7),))).aimed_pressure == 0.7
    assert Source(Point("io-sets")).aimed_pressure is None
    assert file.aimed_pressure is None


@pytest.mark.parametrize("source", [Source(FilePoint("a")), Source(POINT, 3, 5)])
def test_sources_travel_to_worker_processes(source: Source) -> None:
    data = pickle.dumps(source)
    assert pickle.loads(data) == source  # noqa: S301 - our own bytes
    assert len(data) < 1000
