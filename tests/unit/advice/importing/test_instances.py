# SPDX-License-Identifier: MIT
"""Records become an instance: clock, caps, bandwidth."""

from __future__ import annotations

import pytest

from penstock.advice.importing.instances import (
    Assumptions,
    assumed_platform,
    build,
    named,
    releases_of,
)
from penstock.advice.logs.record import Burst
from penstock.errors import InputError
from penstock.model import Platform
from penstock.sim import simulate
from unit.advice.importing.records import record

TWO = (Burst(10.0, 12.0, 200.0, 2.0), Burst(50.0, 52.0, 100.0, 1.0))


def test_the_cap_of_a_job_is_its_rate_in_the_log() -> None:
    platform, notes = assumed_platform([record(*TWO)], Assumptions())
    instance, (row,) = build([record(*TWO)], platform, Assumptions())
    assert instance.caps.tolist() == [100.0]
    assert row.io_seconds_instance == row.io_seconds_log == 3.0
    assert row.bytes_instance == row.bytes_log == 300.0
    assert row.operations == 2
    assert len(notes) == 2


def test_a_job_takes_as_long_alone_as_in_its_log() -> None:
    platform, _ = assumed_platform([record(*TWO)], Assumptions())
    instance, _ = build([record(*TWO)], platform, Assumptions())
    (ends,) = instance.dedicated
    assert ends[-1] == pytest.approx(100.0)
    assert instance.window.end == pytest.approx(100.0)


def test_with_a_node_bandwidth_the_cap_is_that_of_the_model() -> None:
    given = Assumptions(bandwidth=1000.0, node_bandwidth=30.0)
    platform, notes = assumed_platform([record(*TWO, nodes=2)], given)
    instance, (row,) = build([record(*TWO, nodes=2)], platform, given)
    assert instance.caps.tolist() == [60.0]
    assert row.io_seconds_instance == pytest.approx(5.0)
    assert notes == []


def test_the_bandwidth_is_the_highest_rate_of_jobs_together() -> None:
    a = record(Burst(0.0, 10.0, 1000.0, 10.0))
    b = record(Burst(0.0, 10.0, 500.0, 10.0), start_s=1005.0)
    c = record(Burst(0.0, 10.0, 1400.0, 10.0), start_s=5000.0)
    platform, _ = assumed_platform([a, b, c], Assumptions())
    assert platform.bandwidth == pytest.approx(150.0)


def test_jobs_that_are_aligned_did_not_run_together() -> None:
    a = record(Burst(0.0, 10.0, 1000.0, 10.0))
    b = record(Burst(0.0, 10.0, 500.0, 10.0), start_s=5000.0)
    other = record(Burst(0.0, 10.0, 900.0, 10.0), clock="elsewhere")
    platform, _ = assumed_platform([a, b, other], Assumptions(align=True))
    assert platform.bandwidth == pytest.approx(100.0)


def test_without_any_rate_the_bandwidth_must_be_given() -> None:
    total_only = record(Burst(0.0, 100.0, 1000.0, 0.0, is_exact=False))
    with pytest.raises(InputError, match="--bandwidth"):
        assumed_platform([total_only], Assumptions())
    platform, _ = assumed_platform([total_only], Assumptions(bandwidth=50.0))
    assert platform == Platform(50.0, 50.0)


def test_a_rate_above_the_given_bandwidth_is_noted() -> None:
    given = Assumptions(bandwidth=50.0)
    platform, _ = assumed_platform([record(*TWO)], given)
    instance, (row,) = build([record(*TWO)], platform, given)
    assert instance.caps.tolist() == [50.0]
    assert any("more than the whole bandwidth" in note for note in row.notes)


def test_io_that_does_not_fit_into_the_job_is_noted() -> None:
    given = Assumptions(bandwidth=10.0)
    long = record(Burst(0.0, 100.0, 5000.0, 0.0, is_exact=False))
    platform, _ = assumed_platform([long], given)
    _, (row,) = build([long], platform, given)
    assert row.io_seconds_log is None
    assert any("8.333 min at its cap" in note for note in row.notes)


def test_a_log_without_bytes_gets_an_assumed_part_of_its_time() -> None:
    given = Assumptions(bandwidth=10.0, io_fraction=0.2)
    silent = record(detail="accounting", log_bytes=None)
    platform, _ = assumed_platform([silent], given)
    instance, (row,) = build([silent], platform, given)
    assert (row.bytes_log, row.bytes_instance) == (None, 200.0)
    assert row.io_seconds_instance == pytest.approx(20.0)
    assert any("20 % of the time" in note for note in row.notes)
    assert instance.applications[0].volume.tolist() == [200.0]


def test_one_clock() -> None:
    jobs = [record(*TWO, start_s=1500.0), record(*TWO, start_s=1200.0)]
    assert releases_of(jobs, align=False) == [300.0, 0.0]
    assert releases_of(jobs, align=True) == [0.0, 0.0]


def test_names_are_made_different() -> None:
    jobs = [record(*TWO), record(*TWO), record(*TWO, name="a-2"), record(*TWO)]
    assert [job.name for job in named(jobs)] == ["a", "a-2", "a-2-2", "a-3"]


def test_jobs_that_do_not_meet_have_a_yield_of_one() -> None:
    jobs = named([record(*TWO), record(*TWO, start_s=1020.0)])
    platform, _ = assumed_platform(jobs, Assumptions())
    instance, _ = build(jobs, platform, Assumptions())
    done = simulate(instance, "fair-share", steady=False)
    assert done.yields.min() == pytest.approx(1.0)


def test_policies_do_not_see_the_end_of_a_window_of_past_jobs() -> None:
    """Live control shows policies a window that ends an hour later."""
    past, log = record(*TWO, detail="history"), record(*TWO, name="b")
    instance, _ = build([past], Platform(100.0, 100.0), Assumptions())
    assert instance.window.end == pytest.approx(100.0 + 3600.0)
    mixed, _ = build([past, log], Platform(100.0, 100.0), Assumptions())
    assert mixed.window.end == pytest.approx(100.0)
