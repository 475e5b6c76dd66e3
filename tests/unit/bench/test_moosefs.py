# SPDX-License-Identifier: MIT
"""A MooseFS in namespaces: what it needs, and that nothing is left behind."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from penstock.bench import moosefs
from penstock.bench.moosefs import (
    MOUNT,
    check_requirements,
    namespace_command,
    namespace_environment,
)
from penstock.errors import InputError
from support.waiting import until


def test_missing_programs_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "dd").write_text("#!/bin/sh\n")
    (tmp_path / "dd").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(moosefs, "_PATH", "")
    with pytest.raises(
        InputError, match=r"not installed: mfsmaster, .*, tc \("
    ) as error:
        check_requirements()
    assert "apt install moosefs-master" in str(error.value)


def test_a_user_is_told_to_be_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moosefs, "_TOOLS", ())
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InputError, match=r"needs root.*sudo"):
        check_requirements()


@contextmanager
def started_moosefs(folder: Path, script: str) -> Iterator[subprocess.Popen[str]]:
    """Run a script where MooseFS is mounted; skip where that is not possible.

    The first line of its output names the namespace of its processes.
    """
    try:
        check_requirements()
    except InputError as error:
        pytest.skip(str(error))
    script = f"readlink /proc/self/ns/pid; {script}"
    process = subprocess.Popen(
        namespace_command(folder, 50e6, ["bash", "-c", script, "script", str(folder)]),
        env=namespace_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def processes_in(namespace: str) -> int:
    """Return the number of processes in a namespace."""
    count = 0
    for entry in Path("/proc").glob("[0-9]*/ns/pid"):
        with suppress(OSError):
            count += str(entry.readlink()) == namespace
    return count


def test_a_server_holds_the_file_and_all_end_with_the_command(tmp_path: Path) -> None:
    script = 'cd "$1/mnt" && head -c 300000 /dev/zero >f && sync f && stat -c %s f'
    with started_moosefs(tmp_path, script) as process:
        output, _ = process.communicate(timeout=120)
    namespace, size = output.split()
    assert (process.returncode, size) == (0, "300000")
    # One server has the file; the probe that was written first is smaller.
    chunks = [path.stat().st_size for path in tmp_path.glob("1?/data/**/chunk_*")]
    assert len([size for size in chunks if size > 200_000]) == 1, chunks
    until(lambda: processes_in(namespace) == 0)
    assert not os.path.ismount(tmp_path / MOUNT)


def test_nothing_is_left_if_it_is_killed(tmp_path: Path) -> None:
    with started_moosefs(tmp_path, "sleep 600") as process:
        assert process.stdout is not None
        namespace = process.stdout.readline().strip()
        # The shell, the master, four chunk servers, the mount.
        assert processes_in(namespace) > 6
    until(lambda: processes_in(namespace) == 0)
    assert not os.path.ismount(tmp_path / MOUNT)
