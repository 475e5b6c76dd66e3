# SPDX-License-Identifier: MIT
"""The APEX workload: phases by hand, windows, seeds, pressures, every policy."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest
from numpy.random import SeedSequence, default_rng

from penstock.errors import InputError, UnknownNameError
from penstock.model import Platform
from penstock.policies import POLICIES
from penstock.sim import simulate
from penstock.workloads import Apex, get_workload
from penstock.workloads.apex.phases import job_phases, phases_left
from penstock.workloads.apex.schedule import Schedule, draw_schedule
from penstock.workloads.apex.table import JobClass, Machine, job_classes, scaled_celio
from penstock.workloads.apex.workload import window_statistics
from penstock.workloads.parameters import describe, range_of

CASES = [("NERSC", 0), ("NERSC", 10), ("TRILAB", 0), ("TRILAB", 10)]

#: Nodes of 100 bytes and 5 bytes/s, storage of 40 bytes/s.
HOST = Machine(20, 1, 100.0, Platform(40.0, 5.0))
#: On 4 nodes: 200 bytes in, checkpoints of 40, 400 out; at 20 bytes/s.
KIND = JobClass("X", 0.1, 1.0, 4, input=0.5, output=1.0, checkpoint=0.1, period=3600.0)


def _schedule(trace: str, age: int, seed: int, number: int) -> Schedule:
    """Return the schedule that the workload draws from the stream (seed, number)."""
    generator = default_rng(SeedSequence(seed, spawn_key=(number,)))
    return draw_schedule(job_classes(trace), scaled_celio(age), 90.0, generator)


# --- Phases -----------------------------------------------------------------------


def test_phases_by_hand() -> None:
    # 10 s of input, three cycles of 3,602 s, 1,234 s of work, 20 s of output.
    work, volume = job_phases(KIND, 4, 10 + 3 * 3602 + 1234 + 20, HOST)
    assert work.tolist() == [0, 3600, 3600, 3600, 1234, 0]
    assert volume.tolist() == [200, 40, 40, 40, 400]


def test_the_storage_may_limit_a_job() -> None:
    # 16 nodes could draw 80 bytes/s; the storage gives 40: 20 s, 4 s, 40 s.
    work, volume = job_phases(KIND, 16, 20 + 3604 + 100 + 40, HOST)
    assert work.tolist() == [0, 3600, 100, 0]
    assert volume.tolist() == [800, 160, 1600]


def test_a_checkpoint_must_fit_before_the_end() -> None:
    work, volume = job_phases(KIND, 4, 10 + 3602 + 20, HOST)
    assert work.tolist() == [0, 3600, 0, 0]
    work, volume = job_phases(KIND, 4, 10 + 3601 + 20, HOST)
    assert work.tolist() == [0, 3601, 0]
    assert volume.tolist() == [200, 400]


def test_no_operation_without_volume() -> None:
    kind = JobClass("X", 0.1, 1.0, 4, 0.0, 1.0, 0.0, 3600.0)
    work, volume = job_phases(kind, 4, 8020, HOST)
    assert work.tolist() == [8000, 0]
    assert volume.tolist() == [400]
    kind = JobClass("X", 0.1, 1.0, 4, 0.0, 1.0, 0.1, 3600.0)
    work, volume = job_phases(kind, 4, 8020, HOST)
    assert work.tolist() == [3600, 3600, 796, 0]
    assert volume.tolist() == [40, 40, 400]


@pytest.mark.parametrize(
    ("elapsed", "work", "volume"),
    [
        (0, [0, 3600, 3600, 500, 0], [200, 40, 40, 400]),
        (4, [0, 3600, 3600, 500, 0], [120, 40, 40, 400]),  # in the input
        (10, [3600, 3600, 500, 0], [40, 40, 400]),  # at its end
        (1010, [2600, 3600, 500, 0], [40, 40, 400]),
        (3610, [0, 3600, 500, 0], [40, 40, 400]),  # the first checkpoint begins
        (3611.5, [0, 3600, 500, 0], [10, 40, 400]),  # in the first checkpoint
        (3612, [3600, 500, 0], [40, 400]),
        (7212.5, [0, 500, 0], [30, 400]),  # in the second
        (7700, [14, 0], [400]),
        (7719, [0, 0], [300]),
    ],
)
def test_the_remaining_phases_by_hand(
    elapsed: float, work: list[float], volume: list[float]
) -> None:
    # 10 | 3600 2 | 3600 2 | 500 | 20 s.
    phases = job_phases(KIND, 4, 7734, HOST)
    left = phases_left(*phases, 20.0, elapsed)
    assert left[0] == pytest.approx(np.array(work), abs=1e-9)
    assert left[1] == pytest.approx(np.array(volume), abs=1e-9)
    assert left[0].sum() + left[1].sum() / 20 == pytest.approx(7734 - elapsed)


# --- Instances --------------------------------------------------------------------


@pytest.mark.parametrize(("trace", "age"), CASES)
def test_every_job_of_the_window_is_there_and_ends_as_scheduled(
    trace: str, age: int
) -> None:
    schedule = _schedule(trace, age, 5, 1)
    classes, host = job_classes(trace), scaled_celio(age)
    workload = Apex(trace=trace, machine=age)
    for rank, (begin, end) in enumerate(schedule.windows(90.0)[:20]):
        instance = workload.instance(5, 20 + rank)
        assert instance.platform == host.platform
        assert instance.window.begin == 0.0
        assert instance.window.length == pytest.approx(end - begin, rel=1e-12)
        assert instance.window.length <= end - begin
        running = (schedule.begin <= begin) & (schedule.end >= end)
        names = [
            f"{classes[schedule.kind[job]].name}-{job}"
            for job in np.flatnonzero(running)
        ]
        assert [a.name for a in instance.applications] == names
        for application, cap in instance.with_caps():
            group, job = application.name.split("-")
            assert application.group == group
            assert application.nodes == schedule.nodes[int(job)]
            assert (application.release, application.start) == (0.0, 0.0)
            assert (application.done_work, application.done_volume) == (0.0, 0.0)
            alone = application.dedicated_times(cap)[-1]
            scheduled = schedule.end[int(job)] - begin
            assert alone == pytest.approx(scheduled, rel=1e-12, abs=1e-8)
            assert alone >= instance.window.end
        assert sum(a.nodes for a in instance.applications) <= host.nodes


def test_the_progress_of_jobs_is_that_of_the_schedule() -> None:
    schedule = _schedule("TRILAB", 0, 1, 0)
    classes, host = job_classes("TRILAB"), scaled_celio(0)
    for rank, (begin, _) in enumerate(schedule.windows(90.0)[:20]):
        for application in Apex(trace="TRILAB").instance(1, rank).applications:
            kind = next(c for c in classes if c.name == application.group)
            job = int(application.name.split("-")[1])
            memory = application.nodes * 32 * 2**30
            cap = host.platform.cap(application.nodes)
            # Without a loop over phases: position in the cycle of work and checkpoint.
            age = begin - schedule.begin[job] - kind.input * memory / cap
            cycle = 3600 + kind.checkpoint * memory / cap
            lasts = schedule.end[job] - schedule.begin[job]
            lasts -= (kind.input + kind.output) * memory / cap
            if not 0 <= age < lasts // cycle * cycle:
                continue
            into = age % cycle
            assert application.work[0] == pytest.approx(max(3600 - into, 0), abs=1e-6)
            left = min(cycle - into, kind.checkpoint * memory / cap)
            assert application.volume[0] / cap == pytest.approx(left, abs=1e-6)


def test_the_longest_window_of_nersc_is_the_first() -> None:
    # All begin at 0; the shortest job is 0.95 x 4 h.
    instance = Apex().instance(1, 0)
    assert instance.window.length == 13_680.0
    for application in instance.applications:
        kind = next(c for c in job_classes("NERSC") if c.name == application.group)
        assert (application.work[0] == 0.0) == (kind.input > 0)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("trace", "age"), CASES)
def test_no_job_ends_inside_a_window(trace: str, age: int, policy: str) -> None:
    workload = Apex(trace=trace, machine=age)
    for index in range(workload.windows):
        run = simulate(workload.instance(2, index), policy)
        assert np.all(run.yields <= 1 + 1e-9)


# --- Seeds ------------------------------------------------------------------------


def test_seed_and_index_decide_alone() -> None:
    workload = Apex(trace="TRILAB", windows=3)
    digests = {workload.instance(s, k).digest() for s in range(2) for k in range(7)}
    assert len(digests) == 14
    assert workload.instance(1, 4).digest() == workload.instance(1, 4).digest()


def test_how_many_windows_are_kept_does_not_change_them() -> None:
    few, many = Apex(trace="TRILAB", windows=2), Apex(trace="TRILAB")
    assert few.instance(1, 3).digest() == many.instance(1, 21).digest()


def test_another_process_draws_the_same_bytes() -> None:
    script = (
        "from penstock.workloads import get_workload\n"
        "w = get_workload('apex', ['trace=NERSC', 't=3'])\n"
        "print(w.instance(7, 23).digest())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == Apex(machine=3).instance(7, 23).digest()


# --- Parameters -------------------------------------------------------------------


def test_settings_of_the_apex_workload() -> None:
    made = get_workload("apex", ["trace=TRILAB", "t=4", "days=30", "windows=5"])
    assert made == Apex(trace="TRILAB", machine=4, days=30.0, windows=5)
    assert made.batch == 5


def test_words_are_described_with_their_choices() -> None:
    assert describe(Apex)[0] == "trace=NERSC  table of jobs; NERSC or TRILAB [trace]"
    assert range_of(fields(Apex)[0]) == "NERSC or TRILAB"


def test_an_unknown_trace_lists_the_known() -> None:
    with pytest.raises(UnknownNameError) as caught:
        get_workload("apex", ["trace=TRILAP"])
    assert str(caught.value) == (
        "unknown trace 'TRILAP' (did you mean 'TRILAB'? known: NERSC, TRILAB)"
    )


@pytest.mark.parametrize("setting", ["t=11", "t=-1", "days=0", "days=inf", "windows=0"])
def test_values_out_of_range_are_refused(setting: str) -> None:
    with pytest.raises(InputError, match="out of range"):
        get_workload("apex", [setting])


def test_a_schedule_without_enough_windows_is_refused() -> None:
    # No TRILAB job ends before 2.5 days.
    with pytest.raises(InputError, match="has 0 windows in 2 days, not 20"):
        Apex(trace="TRILAB", days=2.0).instance(1, 0)


# --- Statistics -------------------------------------------------------------------


def _means(trace: str, age: int, schedules: int) -> dict[str, float]:
    rows = window_statistics(trace, age, schedules, 1)
    assert len(rows) == 20 * schedules
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def test_statistics_of_one_window() -> None:
    instance = Apex(trace="TRILAB", machine=3).instance(4, 0)
    row = window_statistics("TRILAB", 3, 1, 4)[0]
    nodes = sum(a.nodes for a in instance.applications)
    assert row == {
        "applications": len(instance.applications),
        "nodes": nodes,
        "usage": nodes / scaled_celio(3).nodes,
        "duration": instance.window.length,
        "pressure": instance.pressure(),
    }


@pytest.mark.parametrize(
    ("trace", "age", "pressure"),
    # Bandwidth sharing: W is about 0.15 on average on Celio, and from 0.15 to 1.4
    # over all machines.
    [("NERSC", 0, 0.15), ("TRILAB", 0, 0.19), ("NERSC", 10, 1.3), ("TRILAB", 10, 1.5)],
)
def test_mean_pressure(trace: str, age: int, pressure: float) -> None:
    means = _means(trace, age, 10)
    assert means["pressure"] == pytest.approx(pressure, rel=0.12)
    assert 0.95 < means["usage"] <= 1.0
