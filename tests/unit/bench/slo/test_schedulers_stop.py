# SPDX-License-Identifier: MIT
"""Ctrl-C in a benchmark of objectives: its clients neither hear it nor stay."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import NoReturn

import pytest

from penstock.bench.slo import schedulers as slo
from penstock.bench.slo.clients import ClientPlan, start
from support.waiting import processes_of, until


def test_clients_are_ended_with_the_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = time.monotonic()
    plan = ClientPlan(str(tmp_path), "write", 4096, 2, begin, begin + 600.0)
    groups: list[subprocess.Popen[bytes]] = []

    def started(plan: ClientPlan) -> subprocess.Popen[bytes]:
        groups.append(start(plan))
        # Ctrl-C does not reach it.
        assert os.getpgid(groups[-1].pid) != os.getpgid(0)
        return groups[-1]

    def interrupted(*_: object) -> NoReturn:
        # Until both clients of the second group are there.
        until(lambda: len(list(tmp_path.iterdir())) >= 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(slo, "start", started)
    monkeypatch.setattr(slo, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        slo._answers({"a": plan, "b": plan})
    assert len(groups) == 2
    for group in groups:
        assert group.returncode is not None
    # The clients were sent the signal with the first of their group; each dies of
    # it when it is next scheduled, which may be after the end of that one.
    until(lambda: not any(processes_of(group.pid) for group in groups))
