# SPDX-License-Identifier: MIT
"""Logs are read in worker processes; what was read is remembered."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.advice.importing.reading import (
    ImportJournal,
    LogOutcome,
    _crashed,
    _ReadLog,
    read_logs,
)
from penstock.advice.importing.sources import LogFile
from penstock.errors import InputError
from support.darshan_logs import LOGS, need_darshan

CSV = "job,begin,end,bytes\n{name},0,1,5\n"


def _logs(folder: Path, count: int) -> list[LogFile]:
    paths = [folder / f"{number}.csv" for number in range(count)]
    for path in paths:
        path.write_text(CSV.format(name=path.stem))
    return [LogFile(path, "csv") for path in paths]


def _names(outcomes: list[LogOutcome]) -> list[str]:
    return [job.name for outcome in outcomes for job in outcome.jobs]


def test_results_are_in_the_order_of_the_logs(tmp_path: Path) -> None:
    shown: list[tuple[int, int]] = []
    outcomes = read_logs(
        _logs(tmp_path, 9),
        0.05,
        workers=2,
        show=lambda done, total: shown.append((done, total)),
    )
    assert _names(outcomes) == [str(number) for number in range(9)]
    assert shown == [(done, 9) for done in range(10)]


def test_a_log_that_cannot_be_read_is_skipped_with_the_reason(tmp_path: Path) -> None:
    good, bad = _logs(tmp_path, 2)
    bad.path.write_text("job,begin,end,bytes\na,1,0,5\n")
    gone = LogFile(tmp_path / "gone.csv", "csv")
    outcomes = read_logs([good, bad, gone], 0.05, workers=1)
    assert _names(outcomes) == ["0"]
    reasons = [item.reason for outcome in outcomes for item in outcome.skipped]
    assert "not a valid row" in reasons[0]
    assert "No such file" in reasons[1]


def test_a_log_with_times_that_are_not_numbers_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.swf"
    path.write_text("1 0 0 inf 16 -1 -1 16 7200 -1 1 3 4 -1 1 -1 -1 -1\n")
    (outcome,) = read_logs([LogFile(path, "swf")], 0.05, workers=1)
    assert "not numbers" in outcome.skipped[0].reason


def test_darshan_logs_are_read_by_workers_in_the_order_of_the_logs(
    tmp_path: Path,
) -> None:
    need_darshan()
    logs = [LogFile(path, "darshan") for path in sorted(LOGS.glob("*.darshan"))]
    cut = LogFile(tmp_path / "cut.darshan", "darshan")
    cut.path.write_bytes(logs[0].path.read_bytes()[:400])
    outcomes = read_logs([*logs[:2], cut, logs[2]], 0.05, workers=2)
    found = [[job.source for job in outcome.jobs] for outcome in outcomes]
    assert found == [[str(log.path)] for log in logs[:2]] + [[], [str(logs[2].path)]]
    assert "damaged" in outcomes[2].skipped[0].reason


def test_a_log_that_ends_its_workers_is_skipped() -> None:
    task = _ReadLog(0, LogFile(Path("a.darshan"), "darshan"), 0.05)
    (item,) = _crashed(task, "7 died (Aborted)").skipped
    assert item.source == "a.darshan"
    assert item.reason.endswith("the process that reads it died (Aborted)")


def test_the_journal_remembers_logs_that_have_not_changed(tmp_path: Path) -> None:
    logs = _logs(tmp_path, 3)
    path = tmp_path / "i.json.partial"
    with ImportJournal(path, 0.05) as journal:
        first = read_logs(logs[:2], 0.05, workers=1, journal=journal)
    logs[0].path.write_text(CSV.format(name="changed"))
    with ImportJournal(path, 0.05) as journal:
        assert journal.recall(logs[0]) is None
        assert journal.recall(logs[1]) == first[1]
        assert journal.recall(logs[2]) is None
        outcomes = read_logs(logs, 0.05, workers=1, journal=journal)
        journal.finish()
    assert _names(outcomes) == ["changed", "1", "2"]
    assert not path.exists()


def test_a_journal_that_was_cut_off_or_is_of_other_settings(tmp_path: Path) -> None:
    logs = _logs(tmp_path, 2)
    path = tmp_path / "i.json.partial"
    with ImportJournal(path, 0.05) as journal:
        read_logs(logs, 0.05, workers=1, journal=journal)
    path.write_bytes(path.read_bytes()[:-20])
    with ImportJournal(path, 0.05) as journal:
        known = [journal.recall(log) is not None for log in logs]
    assert known == [True, False]
    with ImportJournal(path, 1.0) as journal:
        assert journal.recall(logs[0]) is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_names_the_journal_and_leaves_none(tmp_path: Path) -> None:
    path = tmp_path / "x.json.partial"
    log = LogFile(tmp_path / "log", "csv")
    full = Path("/dev/full").open("wb", buffering=0)  # noqa: SIM115 - closed below

    def fill() -> None:
        with full, ImportJournal(path, 0.05) as journal:
            journal._stream = full
            journal.add(log, LogOutcome())

    with pytest.raises(InputError) as caught:
        fill()
    assert str(caught.value) == (
        f"{path}: cannot write the journal of the import: No space left on device "
        "(free space there, or name another file for the instance)"
    )
    assert list(tmp_path.iterdir()) == []
