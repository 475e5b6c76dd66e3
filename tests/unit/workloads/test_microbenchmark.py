# SPDX-License-Identifier: MIT
"""The microbenchmark of burst-buffer coordination, and real applications."""

from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.sim import simulate
from penstock.workloads.microbenchmark import SHAPES, Microbenchmark, WritePattern
from penstock.workloads.parameters import parse_settings


def test_the_default_is_that_of_section_v_b() -> None:
    """Two groups of 256 processes, 32 blocks of 1 MB: 8 GB, 30 s alone."""
    instance = Microbenchmark().instance(1, 0)
    a, b = instance.applications
    assert a.volume.sum() == b.volume.sum() == 256 * 32e6
    assert len(a.volume) == 32
    assert a.dedicated_times(instance.caps[0])[-1] == pytest.approx(30.0)
    assert a.work.sum() == 0.0


def test_delays_lie_between_requests() -> None:
    a, b = (
        Microbenchmark(delay=0.75, offset=4.0, requests=3).instance(1, 0).applications
    )
    assert a.work.tolist() == b.work.tolist() == [0.0, 0.75, 0.75, 0.0]
    assert (a.start, b.start) == (0.0, 4.0)


def test_nothing_is_random() -> None:
    workload = Microbenchmark(offset=3.0)
    assert workload.instance(1, 0).digest() == workload.instance(2, 7).digest()


@pytest.mark.parametrize(
    ("name", "megabytes"), [("cm1", 52), ("lanl-app1", 50), ("lanl-app2", 50)]
)
def test_shapes_of_real_applications(name: str, megabytes: int) -> None:
    shape = SHAPES[name]
    assert shape.processes == 256
    assert shape.volume / shape.processes == megabytes * 1e6
    a, b = Microbenchmark(first=name).instance(1, 0).applications
    assert a.volume.sum() == shape.volume
    assert b.volume.sum() == 256 * 32e6
    assert WritePattern(2, 3, 5.0).volume == 30.0


def test_the_microbenchmark_runs_under_any_policy() -> None:
    run = simulate(Microbenchmark(offset=10.0).instance(1, 0), "fair-share")
    assert run.instance.window.end == pytest.approx(30.0)
    # A is alone for 10 s of the 30 and has half the storage for 20 s.
    assert run.yields.tolist() == pytest.approx([2 / 3, 1 / 2])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("size=0", "size: 0.0 is out of range"),
        ("delay=-1", "delay: -1.0 is out of range"),
        ("offset=-1", "offset: -1.0 is out of range"),
        ("requests=0", "requests: 0 is out of range"),
        ("requests=100000000000", r"requests: 100000000000 is out of range \(.*1e\+08"),
        ("bandwidth=0", "bandwidth: 0.0 is out of range"),
        ("first=cm2", "unknown first 'cm2'"),
    ],
)
def test_bad_parameters(setting: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Microbenchmark(**parse_settings(Microbenchmark, [setting]))
