# SPDX-License-Identifier: MIT
"""The APEX workload: phases by hand, windows, seeds, pressures, every policy."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import fields
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import SeedSequence, default_rng

from penstock.errors import InputError, UnknownNameError
from penstock.model import Platform
from penstock.policies import POLICIES
from penstock.sim import simulate
from penstock.workloads import Apex, get_workload
from penstock.workloads.apex.phases import (
    carry_short,
    is_busy,
    job_phases,
    may_do_io,
    phases_around,
    phases_left,
)
from penstock.workloads.apex.schedule import Schedule, draw_schedule
from penstock.workloads.apex.table import (
    INFERRED,
    LITERAL,
    READINGS,
    JobClass,
    Machine,
    celio_successor,
    job_classes,
)
from penstock.workloads.apex.workload import window_statistics
from penstock.workloads.parameters import describe, range_of

CASES = [("NERSC", 0), ("NERSC", 10), ("TRILAB", 0), ("TRILAB", 10)]

#: Nodes of 100 bytes and 5 bytes/s, storage of 40 bytes/s.
MACHINE = Machine(20, 1, 100.0, Platform(40.0, 5.0))
#: On 4 nodes: 200 bytes in, checkpoints of 40, 400 out; at 20 bytes/s.
JOB_CLASS = JobClass(
    "X", 0.1, 1.0, 4, input=0.5, output=1.0, checkpoint=0.1, period_s=3600.0
)


def _schedule(
    trace: str, age: int, seed: int, number: int, reading: str = INFERRED
) -> Schedule:
    """Return the schedule that the workload draws from the stream (seed, number)."""
    generator = default_rng(SeedSequence(seed, spawn_key=(number,)))
    machine = celio_successor(age, reading)
    return draw_schedule(job_classes(trace), machine, 90.0, generator)


# --- Phases -----------------------------------------------------------------------


def test_phases_by_hand() -> None:
    # 10 s of input, three cycles of 3,602 s, 1,234 s of work, 20 s of output.
    work, volume = job_phases(JOB_CLASS, 4, 10 + 3 * 3602 + 1234 + 20, MACHINE)
    assert work.tolist() == [0, 3600, 3600, 3600, 1234, 0]
    assert volume.tolist() == [200, 40, 40, 40, 400]


def test_the_storage_may_limit_a_job() -> None:
    # 16 nodes could draw 80 bytes/s; the storage gives 40: 20 s, 4 s, 40 s.
    work, volume = job_phases(JOB_CLASS, 16, 20 + 3604 + 100 + 40, MACHINE)
    assert work.tolist() == [0, 3600, 100, 0]
    assert volume.tolist() == [800, 160, 1600]


def test_a_checkpoint_must_fit_before_the_end() -> None:
    work, volume = job_phases(JOB_CLASS, 4, 10 + 3602 + 20, MACHINE)
    assert work.tolist() == [0, 3600, 0, 0]
    work, volume = job_phases(JOB_CLASS, 4, 10 + 3601 + 20, MACHINE)
    assert work.tolist() == [0, 3601, 0]
    assert volume.tolist() == [200, 400]


def test_no_operation_without_volume() -> None:
    job_class = JobClass("X", 0.1, 1.0, 4, 0.0, 1.0, 0.0, 3600.0)
    work, volume = job_phases(job_class, 4, 8020, MACHINE)
    assert work.tolist() == [8000, 0]
    assert volume.tolist() == [400]
    job_class = JobClass("X", 0.1, 1.0, 4, 0.0, 1.0, 0.1, 3600.0)
    work, volume = job_phases(job_class, 4, 8020, MACHINE)
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
    phases = job_phases(JOB_CLASS, 4, 7734, MACHINE)
    left = phases_left(*phases, 20.0, elapsed)
    assert left[0] == pytest.approx(np.array(work), abs=1e-9)
    assert left[1] == pytest.approx(np.array(volume), abs=1e-9)
    assert left[0].sum() + left[1].sum() / 20 == pytest.approx(7734 - elapsed)


@given(st.data())
def test_the_phases_around_a_window_are_those_of_the_job(data: st.DataObject) -> None:
    classes = job_classes(data.draw(st.sampled_from(["NERSC", "TRILAB"])))
    machine = celio_successor(data.draw(st.integers(0, 10)))
    job_class = data.draw(st.sampled_from(classes))
    nodes = data.draw(st.integers(1, 3000))
    cap = machine.platform.cap(nodes)
    duration = job_class.walltime_s * data.draw(st.floats(0.95, 1.5))
    elapsed = duration * data.draw(st.floats(0, 0.999))
    length = (duration - elapsed) * data.draw(st.floats(0.001, 1))
    whole = phases_left(*job_phases(job_class, nodes, duration, machine), cap, elapsed)
    part = phases_around(
        job_class, nodes, duration, machine, (elapsed, elapsed + length)
    )
    assert len(part[1]) <= len(whole[1])
    assert part[0].sum() + part[1].sum() / cap >= length - 1e-6
    for now in np.linspace(0.0, length, 7):
        seconds = [_io_seconds(*phases, cap, float(now)) for phases in (whole, part)]
        assert seconds[1] == pytest.approx(seconds[0], rel=1e-9, abs=1e-6)


def _io_seconds(work: np.ndarray, volume: np.ndarray, cap: float, now: float) -> float:
    """Return the time spent in I/O until `now`, phase by phase."""
    done = 0.0
    for w, v in zip(work, volume, strict=False):
        now -= w
        done += float(min(max(now, 0.0), v / cap))
        now -= v / cap
    return done


# --- Short operations -------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "volume", "expected"),
    [
        # At 20 bytes/s, 20 bytes take the 1 s that an operation needs.
        ([5, 6, 7], [20, 30], ([5, 6, 7], [20, 30])),
        ([5, 6, 7], [19, 30], ([11, 7], [49])),
        ([5, 6, 7, 0], [8, 8, 8], ([18, 0], [24])),  # again and again
        ([5, 6, 7, 0], [8, 12, 40], ([11, 7, 0], [20, 40])),  # until it takes 1 s
        ([0, 6, 7], [1, 19], ([6, 7], [20])),  # what the window left of the first
        ([5, 6], [3], ([5, 6], [3])),  # there is no next one
        ([5, 6, 7], [30, 3], ([5, 6, 7], [30, 3])),
        ([5], [], ([5], [])),
    ],
)
def test_short_operations_are_carried_to_the_next_one(
    work: list[float], volume: list[float], expected: tuple[list[float], list[float]]
) -> None:
    carried = carry_short(np.array(work, float), np.array(volume, float), 20.0)
    assert (carried[0].tolist(), carried[1].tolist()) == expected


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 60)), min_size=1, max_size=12),
    st.floats(0, 300),
)
def test_carrying_keeps_all_work_and_volume_and_delays_transfers(
    phases: list[tuple[float, float]], now: float
) -> None:
    work = np.array([*(w for w, _ in phases), 0.0])
    volume = np.array([v for _, v in phases])
    carried_work, carried_volume = carry_short(work, volume, 20.0)
    assert carried_work.sum() == pytest.approx(work.sum())
    assert carried_volume.sum() == pytest.approx(volume.sum())
    assert np.all(carried_volume[:-1] >= 20.0)
    before = _io_seconds(work, volume, 20.0, now)
    assert _io_seconds(carried_work, carried_volume, 20.0, now) <= before + 1e-6


@pytest.mark.parametrize(
    ("length", "busy"), [(4, False), (5, False), (5.9, False), (6, True), (90, True)]
)
def test_a_job_counts_if_an_operation_spends_1_s_in_the_window(
    length: float, busy: bool
) -> None:
    # 5 s of work, 2 s of I/O.
    assert is_busy(np.array([5.0, 80.0]), np.array([40.0]), 20.0, length) is busy


def test_two_half_seconds_of_io_are_not_1_s_of_an_operation() -> None:
    work, volume = np.array([5.0, 5.0, 0.0]), np.array([10.0, 10.0])
    assert not is_busy(work, volume, 20.0, 90.0)
    assert is_busy(*carry_short(work, volume, 20.0), 20.0, 90.0)


@given(st.data())
def test_the_filter_leaves_out_only_jobs_that_are_dropped(data: st.DataObject) -> None:
    classes = job_classes(data.draw(st.sampled_from(["NERSC", "TRILAB"])))
    machine = celio_successor(data.draw(st.integers(0, 10)))
    job_class = data.draw(st.integers(0, len(classes) - 1))
    nodes = data.draw(st.integers(1, 3000))
    cap = machine.platform.cap(nodes)
    duration = classes[job_class].walltime_s * data.draw(st.floats(0.95, 1.5))
    elapsed = duration * data.draw(st.floats(0, 0.999))
    length = (duration - elapsed) * data.draw(st.floats(0.001, 1))
    work, volume = job_phases(classes[job_class], nodes, duration, machine)
    work, volume = phases_left(work, volume, cap, elapsed)
    (candidate,) = may_do_io(
        classes,
        np.array([job_class]),
        np.array([nodes * machine.memory / cap]),
        np.array([duration]),
        (np.array([elapsed]), np.array([elapsed + length])),
    ).tolist()
    if candidate:
        return
    assert _io_seconds(work, volume, cap, length) == pytest.approx(0.0, abs=1e-3)
    assert not is_busy(*carry_short(work, volume, cap), cap, length)


# --- Instances --------------------------------------------------------------------


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize(("trace", "age"), CASES)
def test_jobs_of_a_window_run_throughout_and_end_as_scheduled(
    trace: str, age: int, reading: str
) -> None:
    schedule = _schedule(trace, age, 5, 1, reading)
    machine = celio_successor(age, reading)
    workload = Apex(trace=trace, machine=age, reading=reading)
    for rank, (begin, end) in enumerate(schedule.windows(90.0)[:20]):
        instance = workload.instance(5, 20 + rank)
        assert instance.platform == machine.platform
        assert instance.window.begin == 0.0
        assert instance.window.length == pytest.approx(end - begin, rel=1e-12)
        assert instance.window.length <= end - begin
        for application, cap in instance.with_caps():
            job = int(application.name.split("-")[1])
            assert schedule.begin[job] <= begin
            assert schedule.end[job] >= end
            assert application.nodes == schedule.nodes[job]
            assert (application.release, application.start) == (0.0, 0.0)
            assert (application.done_work, application.done_volume) == (0.0, 0.0)
            alone = application.dedicated_times(cap)[-1]
            scheduled = schedule.end[job] - begin
            assert instance.window.end <= alone <= scheduled * (1 + 1e-12) + 1e-8
            if reading == LITERAL:
                assert alone == pytest.approx(scheduled, rel=1e-12, abs=1e-8)
        assert sum(a.nodes for a in instance.applications) <= machine.nodes


def _names(schedule: Schedule, trace: str, begin: float, end: float) -> list[str]:
    """Return the names of all jobs that run in a window."""
    classes = job_classes(trace)
    running = (schedule.begin <= begin) & (schedule.end >= end)
    return [
        f"{classes[schedule.job_class[job]].name}-{job}"
        for job in np.flatnonzero(running)
    ]


@pytest.mark.parametrize(("trace", "age"), CASES)
def test_the_literal_reading_keeps_every_job(trace: str, age: int) -> None:
    schedule = _schedule(trace, age, 5, 1, LITERAL)
    workload = Apex(trace=trace, machine=age, reading=LITERAL)
    for rank, (begin, end) in enumerate(schedule.windows(90.0)[:20]):
        applications = workload.instance(5, 20 + rank).applications
        assert [a.name for a in applications] == _names(schedule, trace, begin, end)
        for application in applications:
            assert application.group == application.name.split("-")[0]


@pytest.mark.parametrize(("trace", "age"), CASES)
def test_the_inferred_reading_drops_exactly_the_jobs_that_only_work(
    trace: str, age: int
) -> None:
    schedule, machine = _schedule(trace, age, 5, 1), celio_successor(age)
    classes_by_name = {c.name: c for c in job_classes(trace)}
    workload = Apex(trace=trace, machine=age)
    for rank, (begin, end) in enumerate(schedule.windows(90.0)[:20]):
        applications = workload.instance(5, 20 + rank).applications
        kept = {a.name: a for a in applications}
        running = _names(schedule, trace, begin, end)
        assert list(kept) == [name for name in running if name in kept]
        for name in running:
            group, job = name.split("-")
            nodes, began = int(schedule.nodes[int(job)]), schedule.begin[int(job)]
            cap = machine.platform.cap(nodes)
            lasts = schedule.end[int(job)] - began
            work, volume = job_phases(classes_by_name[group], nodes, lasts, machine)
            work, volume = phases_left(work, volume, cap, begin - began)
            work, volume = carry_short(work, volume, cap)
            if not is_busy(work, volume, cap, end - begin):
                assert name not in kept
                continue
            # What is left out of the end of a job cannot begin inside the window.
            own = kept[name]
            for now in np.linspace(0.0, end - begin, 9):
                expected = _io_seconds(work, volume, cap, float(now))
                found = _io_seconds(own.work, own.volume, cap, float(now))
                assert found == pytest.approx(expected, abs=1e-6)


def test_a_window_without_jobs_is_skipped() -> None:
    # The longest windows all have jobs; the many short ones do not.
    workload = Apex(days=8.0, windows=800)
    instances = [workload.instance(1, k) for k in range(workload.windows)]
    assert min(len(i.applications) for i in instances) >= 1
    lengths = np.array([i.window.length for i in instances])
    generator = default_rng(SeedSequence(1, spawn_key=(0,)))
    schedule = draw_schedule(job_classes("NERSC"), celio_successor(0), 8.0, generator)
    windows = schedule.windows(8.0)[: workload.windows]
    every = windows[:, 1] - windows[:, 0]
    assert lengths[:20] == pytest.approx(every[:20])
    assert np.all(lengths <= every + 1e-6)
    assert lengths[-1] < every[-1] - 1e-6


def test_the_progress_of_jobs_is_that_of_the_schedule() -> None:
    schedule = _schedule("TRILAB", 0, 1, 0, LITERAL)
    classes, machine = job_classes("TRILAB"), celio_successor(0)
    workload = Apex(trace="TRILAB", reading=LITERAL)
    for rank, (begin, _) in enumerate(schedule.windows(90.0)[:20]):
        for application in workload.instance(1, rank).applications:
            job_class = next(c for c in classes if c.name == application.group)
            job = int(application.name.split("-")[1])
            memory = application.nodes * 32 * 2**30
            cap = machine.platform.cap(application.nodes)
            # Without a loop over phases: position in the cycle of work and checkpoint.
            age = begin - schedule.begin[job] - job_class.input * memory / cap
            cycle = 3600 + job_class.checkpoint * memory / cap
            lasts = schedule.end[job] - schedule.begin[job]
            lasts -= (job_class.input + job_class.output) * memory / cap
            if not 0 <= age < lasts // cycle * cycle:
                continue
            into = age % cycle
            assert application.work[0] == pytest.approx(max(3600 - into, 0), abs=1e-6)
            left = min(cycle - into, job_class.checkpoint * memory / cap)
            assert application.volume[0] / cap == pytest.approx(left, abs=1e-6)


def test_the_longest_window_of_nersc_is_the_first() -> None:
    # All begin at 0; the shortest job is 0.95 x 4 h.
    instance = Apex().instance(1, 0)
    assert instance.window.length == 13_680.0
    for application in instance.applications:
        job_class = next(c for c in job_classes("NERSC") if c.name == application.group)
        assert (application.work[0] == 0.0) == (job_class.input > 0)


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
    settings = ["trace=TRILAB", "t=4", "days=30", "windows=5", "reading=literal"]
    made = get_workload("apex", settings)
    assert made == Apex("TRILAB", 4, days=30.0, windows=5, reading=LITERAL)
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


def test_statistics_of_one_window() -> None:
    workload = Apex(trace="TRILAB", machine=3)
    instance = workload.instance(4, 0)
    row = window_statistics(workload, 1, 4)[0]
    sizes = np.array([a.nodes for a in instance.applications])
    assert row == {
        "applications": len(sizes),
        "nodes": sizes.sum(),
        "mean_capped_nodes": pytest.approx(np.minimum(sizes, 167).mean()),
        "usage": sizes.sum() / celio_successor(3).nodes,
        "duration": instance.window.length,
        "pressure": instance.pressure(),
    }


class Published(NamedTuple):
    """Statistics of the authors' windows, of 100 schedules per machine."""

    jobs: float
    """Mean number of jobs in a window."""
    nodes: float
    """Mean over windows of the mean of min(nodes, 167) over jobs."""
    length: float
    """Median length of a window (s)."""


#: Of apex/windows.csv of lucasperotin/stochasticIO.
PUBLISHED = {
    ("TRILAB", 0): Published(12.0, 167.0, 131_499),
    ("TRILAB", 5): Published(37.3, 148.2, 57_317),
    ("TRILAB", 10): Published(110.2, 115.2, 22_888),
    ("NERSC", 5): Published(56.8, 77.8, 1_537),
    ("NERSC", 10): Published(109.6, 38.8, 554),
}
PUBLISHED_SCHEDULES = 100


@cache
def _columns(trace: str, age: int, schedules: int, seed: int) -> dict[str, np.ndarray]:
    """Return each statistic, one row per schedule and one column per window."""
    rows = window_statistics(Apex(trace=trace, machine=age), schedules, seed)
    return {
        key: np.array([row[key] for row in rows]).reshape(schedules, 20)
        for key in rows[0]
    }


def _schedules(trace: str) -> int:
    """Return how many schedules the statistics use: those of NERSC take longer."""
    return 10 if trace == "TRILAB" else 5


def _error(values: np.ndarray) -> float:
    """Return 4 standard errors of the difference to the published value.

    Schedules are independent, windows of one schedule are not. The published value has
    the error of its own 100 schedules.
    """
    count = len(values)
    spread = values.mean(axis=1).std(ddof=1)
    return 4 * float(spread) * math.sqrt(1 / count + 1 / PUBLISHED_SCHEDULES)


def _median_error(values: np.ndarray) -> float:
    """Return 4 standard errors of a median, from resampled schedules."""
    count = len(values)
    picks = default_rng(0).integers(0, count, (400, count))
    spread = np.median(values[picks].reshape(400, -1), axis=1).std()
    return 4 * float(spread) * math.sqrt(1 + count / PUBLISHED_SCHEDULES)


@pytest.mark.parametrize(("trace", "age"), PUBLISHED)
def test_windows_are_like_the_published_ones(trace: str, age: int) -> None:
    published = PUBLISHED[trace, age]
    columns = _columns(trace, age, _schedules(trace), 1)
    nodes, lengths = columns["mean_capped_nodes"], columns["duration"]
    assert abs(nodes.mean() - published.nodes) <= _error(nodes) + 0.05
    assert abs(np.median(lengths) - published.length) <= _median_error(lengths)
    # The authors also count a job that ends when the window begins, if checkpoints are
    # left to it: about 0.8 jobs on M_0 and 0.6 on M_5, less than the error on M_10.
    jobs = columns["applications"]
    twice = 1.0 if trace == "TRILAB" else 0.1
    difference = published.jobs - jobs.mean()
    assert -_error(jobs) - 0.05 <= difference <= twice + _error(jobs) + 0.05


def test_the_literal_machines_do_not_give_the_published_windows() -> None:
    rows = window_statistics(Apex("TRILAB", 10, reading=LITERAL), 2, 1)
    jobs = np.mean([row["applications"] for row in rows])
    assert jobs < PUBLISHED["TRILAB", 10].jobs / 4


def test_the_pressure_of_the_last_machine_is_that_of_figure_5() -> None:
    pressure = _columns("TRILAB", 10, _schedules("TRILAB"), 1)["pressure"]
    assert abs(np.median(pressure) - 1.15) <= _median_error(pressure)


@pytest.mark.parametrize(
    ("trace", "age", "pressure"),
    # Bandwidth sharing: W is about 0.15 on average on Celio.
    [("NERSC", 0, 0.15), ("TRILAB", 0, 0.19), ("NERSC", 10, 0.68)],
)
def test_mean_pressure(trace: str, age: int, pressure: float) -> None:
    columns = _columns(trace, age, _schedules(trace), 1)
    assert columns["pressure"].mean() == pytest.approx(pressure, rel=0.12)


@pytest.mark.parametrize("age", [0, 10])
def test_the_literal_reading_fills_the_machine(age: int) -> None:
    rows = window_statistics(Apex("TRILAB", age, reading=LITERAL), 3, 1)
    assert 0.95 < np.mean([row["usage"] for row in rows]) <= 1.0
