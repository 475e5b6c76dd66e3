# SPDX-License-Identifier: MIT
"""The testbed of live benchmarks: folders, environment, daemons."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.bench import testbed
from penstock.bench.testbed import BenchDaemon
from penstock.errors import InputError


def test_a_temporary_folder_is_removed_also_after_an_error(tmp_path: Path) -> None:
    def fail() -> None:
        with testbed.temporary_folder(tmp_path) as folder:
            (folder / "file").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_reported_with_its_name(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with (
        pytest.raises(InputError, match=f"^{missing}: no temporary folder"),
        testbed.temporary_folder(missing),
    ):
        pytest.fail("there is no folder")


def test_the_environment_has_no_settings_of_penstock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_POLICY", "fcfs")
    monkeypatch.setenv("OTHER", "kept")
    environment = testbed.clean_environment()
    assert environment["OTHER"] == "kept"
    assert not any(name.startswith("PENSTOCK_") for name in environment)


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("first\npenstock: no such policy\n\n", "ended: no such policy"),
        ("", "printed no message"),
    ],
)
def test_a_daemon_that_has_ended_is_reported_with_its_last_line(
    tmp_path: Path, log: str, message: str
) -> None:
    (tmp_path / "serve.log").write_text(log)
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(60)
    with pytest.raises(InputError, match=message):
        BenchDaemon(tmp_path / "run", process).await_ready()


def test_an_error_of_penstock_mount_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot use a mount: .*not a penstock mount"):
        testbed.run_mount_command(tmp_path, "--status", str(tmp_path))


def test_the_priority_is_restored() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with testbed.high_priority():
        during = os.getpriority(os.PRIO_PROCESS, 0)
    assert during == (-15 if os.geteuid() == 0 else before)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
