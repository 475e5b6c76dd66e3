# SPDX-License-Identifier: MIT
"""Runs of one program with and without control: their order, times and failures."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.bench.cost.paired_runs import PairedRuns, RunTimes
from penstock.errors import InputError

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[PairedRuns]:
    """Return runs of three rounds, with a variable of their own."""
    with PairedRuns(tmp_path, 3, {"WORD": "x"}) as made:
        yield made


def test_the_time_of_a_program_is_its_own(runs: PairedRuns, tmp_path: Path) -> None:
    times = runs.run(["sleep", "0.2"], tmp_path, controlled=False)
    assert 0.2 <= times.own_s <= times.total_s
    assert 0.0 <= times.processor_s < times.own_s


def test_rounds_alternate_and_are_prepared(
    runs: PairedRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    def run(words: object, work: object, *, controlled: bool) -> RunTimes:
        events.append("run" if controlled else "plain")
        return RunTimes(float(controlled), 0.0, 0.0)

    monkeypatch.setattr(runs, "run", run)
    pairs = list(runs.pairs(["true"], tmp_path, lambda: events.append("prepare")))
    assert [(plain.own_s, run.own_s) for plain, run in pairs] == [(0.0, 1.0)] * 3
    assert events[::2] == ["prepare"] * 6
    assert events[1::2] == ["run", "plain", "plain", "run", "run", "plain"]


def test_a_program_that_fails_is_an_error(runs: PairedRuns, tmp_path: Path) -> None:
    script = ["sh", "-c", "echo because $WORD >&2; exit 3"]
    with pytest.raises(InputError, match="sh failed without penstock: because x"):
        runs.run(script, tmp_path, controlled=False)
    with pytest.raises(InputError, match="failed without penstock: no message"):
        runs.run(["/no/such/program"], tmp_path, controlled=False)


def test_a_program_without_control_is_an_error(
    runs: PairedRuns, tmp_path: Path
) -> None:
    (tmp_path / "daemon").write_text("not a folder")
    with pytest.raises(InputError, match=r"failed under penstock run: .*controlled"):
        runs.run(["true"], tmp_path, controlled=True)


def test_a_daemon_that_was_never_started_need_not_end(tmp_path: Path) -> None:
    with PairedRuns(tmp_path, 1):
        pass
