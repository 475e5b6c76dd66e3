# SPDX-License-Identifier: MIT
"""Ctrl-C in a benchmark of objectives: its clients neither hear it nor stay."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest

from penstock.live.bench import slo
from penstock.live.bench.slo_clients import Plan, start


def alive(group: int) -> list[str]:
    """Return the processes of a group that still run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, number = path.read_text().rpartition(")")[2].split()[:3]
            if int(number) == group and state != "Z":
                found.append(path.parent.name)
    return found


def test_clients_are_ended_with_the_benchmark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = time.monotonic()
    plan = Plan(str(tmp_path), "write", 4096, 2, begin, begin + 600.0)
    groups: list[subprocess.Popen[bytes]] = []

    def started(plan: Plan) -> subprocess.Popen[bytes]:
        groups.append(start(plan))
        # Ctrl-C does not reach it.
        assert os.getpgid(groups[-1].pid) != os.getpgid(0)
        return groups[-1]

    def interrupted(*_: object) -> NoReturn:
        # Until both clients of the second group are there.
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.01)
        raise KeyboardInterrupt

    monkeypatch.setattr(slo, "start", started)
    monkeypatch.setattr(slo, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        slo._answers({"a": plan, "b": plan})
    assert len(groups) == 2
    for group in groups:
        assert group.returncode is not None
        assert not alive(group.pid)
