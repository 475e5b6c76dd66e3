# SPDX-License-Identifier: MIT
"""Schedules of APEX jobs: mix, noise, first fit, end, windows, by brute force."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.random import default_rng

from penstock.errors import InternalError
from penstock.kernels import interpreted
from penstock.model import Platform
from penstock.workloads.apex import schedule as apex_schedule
from penstock.workloads.apex.schedule import Schedule, draw_schedule, wanted_jobs
from penstock.workloads.apex.table import (
    LITERAL,
    READINGS,
    JobClass,
    Machine,
    celio_successor,
    job_classes,
)

DAY = 86_400.0
FULL_SIZE = [("NERSC", 0), ("NERSC", 10), ("TRILAB", 0), ("TRILAB", 2), ("TRILAB", 10)]

#: A machine on which every second can be looked at.
SMALL = Machine(40, 4, 1.0, Platform(1.0, 1.0))
#: Shares that sum to less than 1/2, so that more jobs are wanted after a while.
SMALL_CLASSES = tuple(
    JobClass(name, share, walltime, cores, 0.0, 1.0, 0.0, 3600.0)
    for name, share, walltime, cores in (
        ("wide", 0.1, 200.0, 70),
        ("long", 0.1, 700.0, 30),
        ("tiny", 0.15, 40.0, 9),
    )
)
SMALL_DAYS = 4000.0 / DAY


@pytest.fixture(scope="module", params=FULL_SIZE, ids=str)
def full_size(request: pytest.FixtureRequest) -> tuple[str, Machine, Schedule]:
    trace, age = request.param
    machine = celio_successor(age)
    return (
        trace,
        machine,
        draw_schedule(job_classes(trace), machine, 90.0, default_rng(age)),
    )


@pytest.fixture(scope="module", params=range(6))
def small(request: pytest.FixtureRequest) -> Schedule:
    return draw_schedule(SMALL_CLASSES, SMALL, SMALL_DAYS, default_rng(request.param))


def _used(schedule: Schedule) -> np.ndarray:
    """Return the nodes used between an event and the next one."""
    times = np.concatenate([schedule.begin, schedule.end])
    change = np.concatenate([schedule.nodes, -schedule.nodes])
    events, where = np.unique(times, return_inverse=True)
    return np.cumsum(np.bincount(where, change, len(events)))


def _first_fit(used: np.ndarray, nodes: int, duration: int, capacity: int) -> int:
    """Return the first second from which `nodes` are free for `duration`."""
    taken = np.flatnonzero(used + nodes > capacity)
    edges = np.concatenate([[-1], taken, [len(used)]])
    return int(edges[np.argmax(np.diff(edges) > duration)]) + 1


def _balanced(classes: Any, machine: Any, days: float, placed: Any) -> bool:
    """Return True if the mix of classes is that of the table."""
    wanted = np.array(wanted_jobs(classes, machine, days))
    for _ in range(40):
        off = np.abs(placed - wanted)
        if np.all((off < 1.0) | (off <= 0.1 * wanted)):
            return True
        wanted *= 1.1
    return False


# --- The tables -------------------------------------------------------------------


def test_celio() -> None:
    celio = celio_successor(0)
    assert (celio.nodes, celio.cores_per_node, celio.memory) == (8894, 16, 32 * 2**30)
    assert celio.platform == Platform(200 * 2**30, 1.2 * 2**30)


@pytest.mark.parametrize("reading", READINGS)
def test_celio_is_the_same_in_both_readings(reading: str) -> None:
    assert celio_successor(0, reading) == celio_successor(0)


@pytest.mark.parametrize("age", range(1, 11))
def test_literal_machines_grow_in_nodes_and_bandwidth_only(age: int) -> None:
    celio, grown = celio_successor(0), celio_successor(age, LITERAL)
    factor = 2 ** (age / 10)
    assert 0 <= grown.nodes - 8894 * factor < 1
    bandwidth = celio.platform.bandwidth * factor / age
    assert grown.platform.bandwidth == pytest.approx(bandwidth, rel=1e-12)
    assert grown.platform.node_bandwidth == celio.platform.node_bandwidth
    assert (grown.memory, grown.cores_per_node) == (celio.memory, 16)


@pytest.mark.parametrize(
    ("age", "nodes", "cores", "factor"),
    # 2^(t/10), 5^(t/10): 1.0718, 1.1746; 1.4142, 2.2361; 2, 5.
    [(1, 9533, 19, 1.88030), (5, 12579, 36, 0.49622), (10, 17788, 80, 0.35088)],
)
def test_inferred_machines_by_hand(
    age: int, nodes: int, cores: int, factor: float
) -> None:
    celio, grown = celio_successor(0), celio_successor(age)
    assert (grown.nodes, grown.cores_per_node) == (nodes, cores)
    assert grown.memory == celio.memory
    for name in ("bandwidth", "node_bandwidth"):
        ratio = getattr(grown.platform, name) / getattr(celio.platform, name)
        assert ratio == pytest.approx(factor, rel=1e-5)


@pytest.mark.parametrize("age", range(11))
def test_a_job_saturates_an_inferred_machine_from_167_nodes_on(age: int) -> None:
    platform = celio_successor(age).platform
    assert platform.cap(166) < platform.bandwidth
    assert platform.cap(167) == platform.bandwidth


def test_classes_of_the_table() -> None:
    names = {
        trace: [c.name for c in job_classes(trace)] for trace in ("NERSC", "TRILAB")
    }
    assert names == {
        "NERSC": ["ALS", "CESM", "GTS", "HipMer", "Materials", "MILC", "SkySurvey"],
        "TRILAB": ["EAP", "LAP", "Silverton", "VPIC", "DakotaA", "DakotaS"],
    }
    cesm = job_classes("NERSC")[1]
    assert cesm == JobClass("CESM", 0.06, 864_000.0, 8000, 0.0, 10.2795, 0.32, 3600.0)
    shares = {t: math.fsum(c.share for c in job_classes(t)) for t in names}
    assert shares == pytest.approx({"NERSC": 0.482, "TRILAB": 0.36})


def test_wanted_jobs_by_hand() -> None:
    (wanted, *_) = wanted_jobs(SMALL_CLASSES, SMALL, 1.0)
    # 70 cores are 18 nodes of 4 cores.
    assert wanted == pytest.approx(0.1 * 40 * 2 * DAY / (200 * 18))
    by_name = dict(
        zip(
            (c.name for c in job_classes("TRILAB")),
            wanted_jobs(job_classes("TRILAB"), celio_successor(2, LITERAL), 90.0),
            strict=True,
        )
    )
    assert by_name["VPIC"] == pytest.approx(4.493, abs=0.001)


# --- Full size --------------------------------------------------------------------


def test_never_more_nodes_than_there_are(full_size: Any) -> None:
    _, machine, schedule = full_size
    used = _used(schedule)
    assert used.max() <= machine.nodes
    assert used[-1] == 0
    assert schedule.begin.min() == 0.0


def test_the_machine_is_full_for_90_days(full_size: Any) -> None:
    _, machine, schedule = full_size
    inside = np.minimum(schedule.end, 90 * DAY) - np.minimum(schedule.begin, 90 * DAY)
    usage = float(inside @ schedule.nodes) / (machine.nodes * 90 * DAY)
    assert 0.94 < usage <= 1.0


def test_every_class_is_within_a_tenth_of_its_number(full_size: Any) -> None:
    trace, machine, schedule = full_size
    classes = job_classes(trace)
    placed = np.bincount(schedule.job_class, minlength=len(classes))
    assert _balanced(classes, machine, 90.0, placed)


def test_noise_has_a_floor_and_the_right_mean(full_size: Any) -> None:
    trace, machine, schedule = full_size
    classes = job_classes(trace)
    need = np.array([k.cores / machine.cores_per_node for k in classes])[
        schedule.job_class
    ]
    walltime = np.array([k.walltime_s for k in classes])[schedule.job_class]
    duration = schedule.end - schedule.begin
    assert np.all(schedule.nodes >= np.ceil(0.95 * need))
    assert np.all(duration >= 0.95 * walltime)
    assert np.array_equal(duration, np.round(duration))
    # E max(-1/2, Z) = 0.1978, P(Z < -1/2) = 0.3085.
    factor = duration / walltime
    error = 4 * 0.08 / math.sqrt(len(factor))
    assert abs(factor.mean() - 1.01978) < error + 1.0 / walltime.min()
    floor = np.mean(factor <= 0.95 + 1.0 / walltime.min())
    assert abs(floor - 0.3085) < 4 * math.sqrt(0.21 / len(factor)) + 0.01


def test_nodes_are_rounded_up(full_size: Any) -> None:
    trace, machine, schedule = full_size
    for number, job_class in enumerate(job_classes(trace)):
        nodes = schedule.nodes[schedule.job_class == number]
        mean = 1.01978 * job_class.cores / machine.cores_per_node + 0.5
        assert abs(nodes.mean() - mean) < 4 * 0.08 * mean / math.sqrt(len(nodes)) + 0.5


def test_even_ten_deviations_fit_on_the_machine() -> None:
    for trace in ("NERSC", "TRILAB"):
        largest = max(c.cores for c in job_classes(trace))
        assert 2 * largest / 16 < celio_successor(0).nodes


def test_a_machine_that_is_too_small_is_noticed() -> None:
    with pytest.raises(InternalError, match="does not fit"):
        draw_schedule(
            SMALL_CLASSES, Machine(18, 4, 1.0, SMALL.platform), 1.0, default_rng(0)
        )


# --- Second by second -------------------------------------------------------------


def test_no_job_could_begin_earlier(small: Schedule) -> None:
    used = np.zeros(40_000, dtype=np.int64)
    for nodes, begin, end in zip(
        small.nodes.tolist(),
        small.begin.astype(int).tolist(),
        small.end.astype(int).tolist(),
        strict=True,
    ):
        assert begin == _first_fit(used, nodes, end - begin, SMALL.nodes)
        used[begin:end] += nodes
    assert used.max() <= SMALL.nodes


def _first_free_slot(schedule: Schedule, jobs: int) -> int:
    """Return when the smallest job of any class would begin after some `jobs`."""
    used = np.zeros(40_000, dtype=np.int64)
    for job in range(jobs):
        used[int(schedule.begin[job]) : int(schedule.end[job])] += schedule.nodes[job]
    return min(
        _first_fit(
            used, math.ceil(0.95 * c.cores / 4), math.ceil(0.95 * c.walltime_s), 40
        )
        for c in SMALL_CLASSES
    )


def test_the_schedule_ends_with_the_first_job_after_which_all_is_full(
    small: Schedule,
) -> None:
    jobs = len(small.job_class)
    placed = np.bincount(small.job_class, minlength=3)
    before = np.bincount(small.job_class[:-1], minlength=3)
    assert _first_free_slot(small, jobs) >= 4000
    assert _balanced(SMALL_CLASSES, SMALL, SMALL_DAYS, placed)
    assert _first_free_slot(small, jobs - 1) < 4000 or not _balanced(
        SMALL_CLASSES, SMALL, SMALL_DAYS, before
    )


def test_a_class_need_not_be_closer_than_one_job() -> None:
    # Of VPIC 1.5 jobs are wanted: within 10 % only after the schedule has grown.
    classes, machine = job_classes("TRILAB"), celio_successor(2, LITERAL)
    schedule = draw_schedule(classes, machine, 30.0, default_rng(0))
    area = float((schedule.end - schedule.begin) @ schedule.nodes)
    assert area < 1.25 * machine.nodes * 30 * DAY


def test_classes_are_drawn_by_what_is_left_of_them() -> None:
    # Without placing: the first job of many schedules.
    wanted = np.array(wanted_jobs(SMALL_CLASSES, SMALL, SMALL_DAYS))
    first = [
        draw_schedule(SMALL_CLASSES, SMALL, SMALL_DAYS, default_rng(seed)).job_class[0]
        for seed in range(600)
    ]
    share = np.bincount(first, minlength=3) / 600
    expected = wanted / wanted.sum()
    error = 4 * np.sqrt(expected * (1 - expected) / 600)
    assert np.all(np.abs(share - expected) < error)


def test_no_class_runs_ahead_while_others_are_wanted() -> None:
    schedule = draw_schedule(
        job_classes("NERSC"), celio_successor(0), 90.0, default_rng(3)
    )
    wanted = np.array(wanted_jobs(job_classes("NERSC"), celio_successor(0), 90.0))
    early = schedule.job_class[: int(wanted.sum()) - 7]
    assert np.all(np.bincount(early, minlength=7) <= np.ceil(wanted))


def test_compiled_and_interpreted_schedules_are_equal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled = draw_schedule(SMALL_CLASSES, SMALL, SMALL_DAYS, default_rng(1))
    monkeypatch.setattr(apex_schedule, "_fill", interpreted(apex_schedule._fill))
    plain = draw_schedule(SMALL_CLASSES, SMALL, SMALL_DAYS, default_rng(1))
    for name in ("job_class", "nodes", "begin", "end"):
        assert np.array_equal(getattr(compiled, name), getattr(plain, name))


def test_the_size_of_a_block_does_not_limit_a_schedule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apex_schedule, "_BLOCK", 7)
    schedule = draw_schedule(SMALL_CLASSES, SMALL, SMALL_DAYS, default_rng(1))
    assert len(schedule.job_class) > 50
    assert _first_free_slot(schedule, len(schedule.job_class)) >= 4000


# --- Windows ----------------------------------------------------------------------


def test_windows_by_hand() -> None:
    schedule = Schedule(
        job_class=np.zeros(4, dtype=np.int64),
        nodes=np.ones(4, dtype=np.int64),
        begin=np.array([0.0, 0.0, 10.0, 30.0]) * 3600,
        end=np.array([10.0, 25.0, 30.0, 80.0]) * 3600,
    )
    # Events at 0, 10, 25, 30, 80 h; the last is past the two days.
    assert (schedule.windows(2.0) / 3600).tolist() == [[10, 25], [0, 10], [25, 30]]
    assert (schedule.windows(4.0) / 3600).tolist()[0] == [30, 80]


def test_windows_are_between_neighbouring_events(full_size: Any) -> None:
    _, _, schedule = full_size
    windows = schedule.windows(90.0)
    events = np.unique(np.concatenate([schedule.begin, schedule.end]))
    assert windows.min() >= 0.0
    assert windows.max() <= 90 * DAY
    assert len(windows) == np.sum(events <= 90 * DAY) - 1
    for begin, end in windows[:200]:
        assert begin in events
        assert end in events
        assert not np.any((events > begin) & (events < end))
    assert np.all(np.diff(windows[:, 1] - windows[:, 0]) <= 0)


def test_of_windows_of_one_length_the_earlier_is_first(full_size: Any) -> None:
    _, _, schedule = full_size
    windows = schedule.windows(90.0)
    length = windows[:, 1] - windows[:, 0]
    ties = np.flatnonzero(np.diff(length) == 0)
    assert np.all(windows[ties, 0] < windows[ties + 1, 0])
