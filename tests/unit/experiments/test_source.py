# SPDX-License-Identifier: MIT
"""Where instances come from: files and workloads, small enough to send about."""

from __future__ import annotations

import pickle

import pytest

from penstock.errors import InputError
from penstock.experiments.source import FileSource, WorkloadSource
from penstock.model import write_instance
from penstock.workloads import IOSets, Synthetic
from unit.samples import pair

WORKLOAD = Synthetic(horizon=20_000.0)


def test_a_file_has_one_instance(tmp_path) -> None:
    path = str(tmp_path / "a.json")
    write_instance(pair(), path)
    source = FileSource(path)
    assert source.count == 1
    assert source.instance(0).digest() == pair().digest()


def test_a_file_is_read_once(tmp_path) -> None:
    path = str(tmp_path / "a.json")
    write_instance(pair(), path)
    source = FileSource(path)
    assert source.instance(0) is source.instance(0)


def test_a_missing_file_is_said_so(tmp_path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        FileSource(str(tmp_path / "none.json")).instance(0)


def test_a_workload_has_as_many_as_asked_for() -> None:
    source = WorkloadSource(WORKLOAD, 5, 3)
    assert source.count == 3
    for index in range(3):
        expected = WORKLOAD.instance(5, index).digest()
        assert source.instance(index).digest() == expected


def test_the_last_instance_drawn_is_kept() -> None:
    source = WorkloadSource(WORKLOAD, 5, 3)
    assert source.instance(1) is source.instance(1)


def test_messages_say_which_instance_it_is() -> None:
    assert FileSource("a.json").place(0) == "a.json: "
    assert WorkloadSource(WORKLOAD, 5, 3).place(2) == "instance 2: "


def test_the_pressure_that_was_aimed_at() -> None:
    assert WorkloadSource(Synthetic(pressure=0.7), 1, 1).aimed_pressure == 0.7
    assert WorkloadSource(IOSets(), 1, 1).aimed_pressure is None
    assert FileSource("a.json").aimed_pressure is None


@pytest.mark.parametrize("source", [FileSource("a"), WorkloadSource(WORKLOAD, 5, 3)])
def test_sources_travel_to_worker_processes(source) -> None:
    data = pickle.dumps(source)
    assert pickle.loads(data) == source  # noqa: S301 - our own bytes
    assert len(data) < 1000
