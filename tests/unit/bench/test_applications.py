# SPDX-License-Identifier: MIT
"""Applications as processes: their arguments, yields and failures."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.bench import applications
from penstock.bench.applications import RunPlace, live_yields
from penstock.errors import InputError
from penstock.model import Application, Instance, Platform, Window


def test_phases_are_nanoseconds_of_work_and_bytes_of_io() -> None:
    phases = [("work", 0.25), ("io", 1e6), ("work", 1e-9)]
    app = Application.from_phases("a", 1, phases)
    assert applications._phase_words(app) == ["w250000000", "i1000000", "w1"]


def test_a_yield_is_progress_over_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 s of work and 10 MB at 5 MB/s are 4 s of progress, in 8 s and in 5 s."""
    phases = [("work", 2.0), ("io", 10e6)]
    apps = (
        Application.from_phases("a", 1, phases),
        Application.from_phases("b", 1, phases, release=3.0),
    )
    instance = Instance(Platform(20e6, 5e6), Window(0.0, 100.0), apps)

    def ends(_place: RunPlace, _apps: Sequence[Application]) -> list[list[float]]:
        return [[2.0, 8.0], [5.5, 8.0]]

    monkeypatch.setattr(applications, "run_applications", ends)
    daemon: Any = None
    yields = live_yields(RunPlace(Path(), daemon, Path()), instance)
    assert yields.tolist() == pytest.approx([0.5, 0.8])


def process(script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_ends_of_phases_are_read_from_the_output() -> None:
    running = process("echo ready; read release; echo $release; echo 7")
    applications._await_ready(running)
    applications._send_release(running, 12345)
    assert applications._phase_ends_ns(running, "a") == [12345, 7]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo first >&2; echo No space left >&2; exit 1", "No space left"),
        ("exit 1", "it could not write"),
    ],
)
def test_a_failed_application_is_reported_with_its_last_line(
    script: str, reason: str
) -> None:
    running = process(script)
    running.wait(60)
    applications._send_release(running, 1)
    with pytest.raises(InputError, match=f"application a failed: {reason}"):
        applications._phase_ends_ns(running, "a")
