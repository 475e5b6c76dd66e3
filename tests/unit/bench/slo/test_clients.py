# SPDX-License-Identifier: MIT
"""Client processes: the rate they issue at, and their end."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import pytest

from penstock.bench.slo import clients
from penstock.bench.slo.clients import ClientPlan, file_of, finish, rate_at, start, stop
from penstock.errors import InputError
from support.waiting import processes_of, until


def test_rates_are_interpolated_between_points() -> None:
    rates = ((1.0, 0.0), (2.0, 10.0), (4.0, 20.0))
    times = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 9.0)
    assert [rate_at(rates, t) for t in times] == [0.0, 0.0, 5.0, 10.0, 15.0, 20.0, 20.0]


def test_clients_issue_no_faster_than_their_rate(tmp_path: Path) -> None:
    begin = time.monotonic() + 1.0
    rates = ((0.0, 0.0), (0.2, 0.0), (0.2001, 400e3), (0.6, 400e3), (0.6001, 0.0))
    plan = ClientPlan((str(tmp_path),), "write", 10_000, 4, begin, begin + 1.0, rates)
    answers = sorted(finish(start(plan), plan))
    assert min(a.issued for a in answers) >= 0.2
    # Four processes, 40 requests per second for 0.4 s, and none afterwards. A busy
    # machine issues them later.
    assert 4 <= len(answers) <= 20
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"write-{number}" for number in range(4)
    ]


def test_processes_use_the_folders_in_turn(tmp_path: Path) -> None:
    """Groups of one application on several nodes have different files."""
    folders = [tmp_path / "A", tmp_path / "B"]
    for folder in folders:
        folder.mkdir()
    begin = time.monotonic()
    plan = ClientPlan(
        *(tuple(map(str, folders)), "write", 4096, 3, begin, begin + 0.05),
        span=4096,
        first=5,
    )
    finish(start(plan), plan)
    names = [sorted(path.name for path in folder.iterdir()) for folder in folders]
    assert names == [["write-6"], ["write-5", "write-7"]]
    assert file_of(plan, 0) == folders[1] / "write-5"


def test_a_group_is_started_by_another_command(tmp_path: Path) -> None:
    begin = time.monotonic()
    plan = ClientPlan((str(tmp_path),), "write", 4096, 1, begin, begin + 0.05)
    before = {"a": ["env", f"HOME={tmp_path}"], "b": ["false"]}
    assert clients.run_groups({"a": plan}, before)["a"]
    with pytest.raises(InputError, match="a client of the benchmark failed"):
        clients.run_groups({"b": plan}, before)


def test_reads_stay_in_the_file_and_visit_all_positions(tmp_path: Path) -> None:
    """Without a rate a process issues a request as soon as the last is answered."""
    (tmp_path / "read-0").write_bytes(bytes(4 * 4096))
    begin = time.monotonic() + 0.5
    plan = ClientPlan(
        (str(tmp_path),), "read", 4096, 1, begin, begin + 0.1, span=4 * 4096
    )
    answers = finish(start(plan), plan)
    assert answers
    assert all(a.issued <= a.answered for a in answers)
    assert all(a.answered <= b.issued for a, b in pairwise(answers))


def test_a_client_that_fails_is_reported(tmp_path: Path) -> None:
    begin = time.monotonic()
    plan = ClientPlan((str(tmp_path / "none"),), "write", 4096, 2, begin, begin + 0.1)
    with pytest.raises(InputError, match="a client of the benchmark failed"):
        finish(start(plan), plan)


def test_stop_ends_all_processes_of_a_group(tmp_path: Path) -> None:
    begin = time.monotonic()
    plan = ClientPlan((str(tmp_path),), "write", 4096, 3, begin, begin + 600.0)
    group = start(plan)
    until(lambda: len(list(tmp_path.iterdir())) == 3)
    stop(group)
    until(lambda: not processes_of(group.pid))
    stop(group)


def test_clients_are_ended_with_the_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = time.monotonic()
    plan = ClientPlan((str(tmp_path),), "write", 4096, 2, begin, begin + 600.0)
    groups: list[subprocess.Popen[bytes]] = []

    def started(plan: ClientPlan, _: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        groups.append(start(plan))
        # Ctrl-C does not reach the group.
        assert os.getpgid(groups[-1].pid) != os.getpgid(0)
        return groups[-1]

    def interrupted(*_: object) -> NoReturn:
        # Wait until both clients of the second group have started.
        until(lambda: len(list(tmp_path.iterdir())) >= 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(clients, "start", started)
    monkeypatch.setattr(clients, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clients.run_groups({"a": plan, "b": plan})
    assert len(groups) == 2
    for group in groups:
        assert group.returncode is not None
    # A killed process may end a little later than the first process of its group.
    until(lambda: not any(processes_of(group.pid) for group in groups))
