# SPDX-License-Identifier: MIT
"""Client processes: the rate they issue at, and their end."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest

from penstock.bench.slo.clients import ClientPlan, finish, rate_at, start, stop
from penstock.errors import InputError
from support.waiting import processes_of, until


def test_rates_are_interpolated_between_points() -> None:
    rates = ((1.0, 0.0), (2.0, 10.0), (4.0, 20.0))
    times = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 9.0)
    assert [rate_at(rates, t) for t in times] == [0.0, 0.0, 5.0, 10.0, 15.0, 20.0, 20.0]


def test_clients_issue_no_faster_than_their_rate(tmp_path: Path) -> None:
    begin = time.monotonic() + 1.0
    rates = ((0.0, 0.0), (0.2, 0.0), (0.2001, 400e3), (0.6, 400e3), (0.6001, 0.0))
    plan = ClientPlan(str(tmp_path), "write", 10_000, 4, begin, begin + 1.0, rates)
    answers = sorted(finish(start(plan), plan))
    assert min(a.issued for a in answers) >= 0.2
    assert max(a.issued for a in answers) <= 0.6001 + 0.3
    # Four processes, 40 requests per second: at most 10 each, for 0.4 s.
    assert 4 <= len(answers) <= 20
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"write-{number}" for number in range(4)
    ]


def test_reads_stay_in_the_file_and_visit_all_positions(tmp_path: Path) -> None:
    """Without a rate a process issues a request as soon as the last is answered."""
    (tmp_path / "read-0").write_bytes(bytes(4 * 4096))
    begin = time.monotonic() + 0.5
    plan = ClientPlan(str(tmp_path), "read", 4096, 1, begin, begin + 0.1, span=4 * 4096)
    answers = finish(start(plan), plan)
    assert answers
    assert all(a.issued <= a.answered for a in answers)
    assert all(a.answered <= b.issued for a, b in pairwise(answers))


def test_a_client_that_fails_is_reported(tmp_path: Path) -> None:
    begin = time.monotonic()
    plan = ClientPlan(str(tmp_path / "none"), "write", 4096, 2, begin, begin + 0.1)
    with pytest.raises(InputError, match="a client of the benchmark failed"):
        finish(start(plan), plan)


def test_stop_ends_all_processes_of_a_group(tmp_path: Path) -> None:
    begin = time.monotonic()
    plan = ClientPlan(str(tmp_path), "write", 4096, 3, begin, begin + 600.0)
    group = start(plan)
    until(lambda: len(list(tmp_path.iterdir())) == 3)
    stop(group)
    until(lambda: not processes_of(group.pid))
    stop(group)
