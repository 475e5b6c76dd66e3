# SPDX-License-Identifier: MIT
"""The starter waits for the release, joins the job and executes the program."""

from __future__ import annotations

import io
import sys
import time
from typing import Any

import pytest

from penstock.bench import starter
from penstock.live.node.launch.run import JobClaims

WORDS = ["/daemon", "job", "3", "/program", "path", "4096", "w5"]


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], object, float]]:
    """Record command, environment and time instead of executing a program."""
    calls: list[tuple[list[str], object, float]] = []

    def environment(settings: Any, job: str, claims: JobClaims) -> dict[str, str]:
        return {"FOLDER": settings.folder, "JOB": job, "NODES": str(claims.nodes)}

    def execute(command: list[str], variables: object) -> None:
        calls.append((command, variables, time.monotonic()))

    monkeypatch.setattr(starter, "controlled_environment", environment)
    monkeypatch.setattr(starter, "execute_program", execute)
    return calls


def test_the_program_starts_at_the_release_not_before(
    executed: list[tuple[list[str], object, float]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    release_ns = time.monotonic_ns() + 50_000_000
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{release_ns}\n"))
    starter.main(WORDS)
    ((command, variables, started_s),) = executed
    assert command == ["/program", str(release_ns), "path", "4096", "w5"]
    assert variables == {"FOLDER": "/daemon", "JOB": "job", "NODES": "3"}
    assert started_s >= release_ns * 1e-9
    assert capsys.readouterr().out == "ready\n"


def test_a_release_in_the_past_starts_at_once(
    executed: list[tuple[list[str], object, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("1\n"))
    starter.main(WORDS)
    assert len(executed) == 1


def test_without_a_release_nothing_is_executed(
    executed: list[tuple[list[str], object, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The benchmark was interrupted and has closed the pipe."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    starter.main(WORDS)
    assert executed == []
