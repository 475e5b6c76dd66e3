# SPDX-License-Identifier: MIT
"""Members of an ensemble differ, but agree with the totals of the log."""

from __future__ import annotations

import pytest

from penstock.advice.importing.ensembles import draw_ensemble
from penstock.advice.importing.instances import Assumptions, build
from penstock.advice.logs.record import Burst, LoggedJob
from penstock.model import Instance, Platform
from unit.advice.importing.records import record

PLATFORM = Platform(1000.0, 100.0)
ASSUMED = Assumptions(bandwidth=1000.0)


def _members(job: LoggedJob, seed: int = 1) -> list[Instance]:
    return list(draw_ensemble([job], PLATFORM, ASSUMED, count=8, seed=seed))


def _digests(members: list[Instance]) -> list[str]:
    return [member.digest() for member in members]


def test_the_first_member_is_the_instance_itself() -> None:
    job = record(Burst(0.0, 3600.0, 50000.0, 500.0, is_exact=False), run_s=3600.0)
    instance, _ = build([job], PLATFORM, ASSUMED)
    assert _members(job)[0].digest() == instance.digest()


@pytest.mark.parametrize(
    "burst",
    [
        Burst(0.0, 3600.0, 50001.0, 500.0, is_exact=False),
        Burst(0.0, 3600.0, 50001.0, 0.0, is_exact=False),
        Burst(1000.0, 1006.4, 7.0, 1.0, is_exact=False),
    ],
)
def test_all_members_move_the_bytes_of_the_log_inside_the_burst(burst: Burst) -> None:
    job = record(burst, run_s=3600.0)
    members = _members(job)
    assert len(set(_digests(members))) > 4
    for member in members:
        (application,) = member.applications
        assert application.volume.sum() == burst.volume_bytes
        (ends,) = member.dedicated
        assert application.work[0] >= burst.begin_s
        assert ends[-2] <= burst.end_s * (1 + 1e-9)
        assert ends[-1] == pytest.approx(3600.0)


def test_the_time_in_io_stays_between_its_bounds() -> None:
    burst = Burst(0.0, 3600.0, 50000.0, 500.0, is_exact=False)
    job = record(burst, run_s=3600.0, io_low_s=100.0, io_high_s=2500.0)
    times = [50000.0 / float(member.caps[0]) for member in _members(job)[1:]]
    assert all(99.9 <= time <= 2501.0 for time in times)
    assert max(times) > 2 * min(times)


def test_an_exact_log_leaves_nothing_to_draw() -> None:
    job = record(Burst(1.0, 2.0, 50.0, 1.0))
    assert len(set(_digests(_members(job)))) == 1


def test_a_log_without_bytes_is_drawn_between_half_and_double() -> None:
    job = record(detail="accounting", log_bytes=None, run_s=1000.0)
    volumes = [float(m.applications[0].volume.sum()) for m in _members(job)]
    assert volumes[0] == 10000.0
    assert all(5000 <= volume <= 20000 for volume in volumes)
    assert len(set(volumes)) == len(volumes)


def test_the_seed_decides() -> None:
    job = record(Burst(0.0, 3600.0, 50000.0, 500.0, is_exact=False), run_s=3600.0)
    assert _digests(_members(job)) == _digests(_members(job))
    assert _digests(_members(job))[1:] != _digests(_members(job, seed=2))[1:]
