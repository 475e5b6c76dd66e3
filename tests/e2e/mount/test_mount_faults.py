# SPDX-License-Identifier: MIT
# ruff: noqa: PTH208 - the calls themselves are tested
"""Mounts that end in every way, and what cannot be mounted."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.mounts import BROKEN, Mounted, penstock
from support.waiting import until

Mounting = Callable[..., Mounted]

#: Writes numbered blocks, records acknowledged ones, and prints the first error.
WRITER = """
import os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
count = 0
try:
    while True:
        os.pwrite(fd, count.to_bytes(8, "big") * 4096, count * 32768)
        count += 1
except OSError as error:
    print(count, error.errno, flush=True)
"""


def start_writer(mounted: Mounted, name: str) -> subprocess.Popen[str]:
    program = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(mounted.point / name)],
        stdout=subprocess.PIPE,
        text=True,
    )
    until(lambda: _size(mounted.backing / name) > 0)
    return program


def check_intact(path: Path, acknowledged: int) -> None:
    """Check that all acknowledged blocks are in the file."""
    data = path.read_bytes()
    assert len(data) >= acknowledged * 32768
    for block in range(acknowledged):
        place = data[block * 32768 : (block + 1) * 32768]
        assert place == block.to_bytes(8, "big") * 4096


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_unmounts(mount: Mounting, number: signal.Signals) -> None:
    mounted = mount("--limit", "100 MB/s")
    os.kill(mounted.pid, number)
    until(lambda: not mounted.is_mounted() and _gone(mounted.pid))
    assert list((mounted.home / "run" / "mounts").glob("*.sock")) == []


def test_unmounting_under_load_ends_in_time_and_loses_nothing(mount: Mounting) -> None:
    mounted = mount("--limit", "5 MB/s")
    programs = [start_writer(mounted, f"f{number}") for number in range(4)]
    os.kill(mounted.pid, signal.SIGTERM)
    until(lambda: not mounted.is_mounted() and _gone(mounted.pid))
    for number, program in enumerate(programs):
        output, _ = program.communicate(timeout=120)
        count, code = map(int, output.split())
        assert code in BROKEN
        check_intact(mounted.backing / f"f{number}", count)


def test_a_killed_mount_gives_errors_and_keeps_the_data(mount: Mounting) -> None:
    mounted = mount("--limit", "20 MB/s")
    programs = [start_writer(mounted, f"f{number}") for number in range(2)]
    os.kill(mounted.pid, signal.SIGKILL)
    for number, program in enumerate(programs):
        output, _ = program.communicate(timeout=120)
        count, code = map(int, output.split())
        assert code in BROKEN
        check_intact(mounted.backing / f"f{number}", count)
    until(lambda: _gone(mounted.pid))
    with pytest.raises(OSError, match="not connected"):
        os.listdir(mounted.point)
    shown = mounted.command("--status", str(mounted.point))
    assert (shown.returncode, shown.stderr.count("\n")) == (2, 1)
    assert "has ended without unmounting" in shown.stderr
    assert "penstock mount --unmount" in shown.stderr
    # A new mount takes over the mount point.
    mounted.start()
    assert sorted(os.listdir(mounted.point)) == ["f0", "f1"]
    mounted.ask("--unmount")
    assert not mounted.is_mounted()


def test_the_folders_of_a_killed_mount_can_be_unmounted(mount: Mounting) -> None:
    mounted = mount()
    os.kill(mounted.pid, signal.SIGKILL)
    until(lambda: _gone(mounted.pid))
    mounted.ask("--unmount")
    assert not mounted.is_mounted()
    assert list((mounted.home / "run" / "mounts").glob("*.sock")) == []


def test_the_status_names_a_folder_that_was_replaced(mount: Mounting) -> None:
    mounted = mount()
    assert "warning" not in mounted.ask("--status")
    mounted.backing.rename(mounted.home / "old")
    mounted.backing.mkdir()
    warning = f"warning: {mounted.backing} was replaced by another folder; the mount "
    assert warning in mounted.ask("--status")
    (mounted.point / "new").touch()
    assert (mounted.home / "old" / "new").exists()


def test_a_killed_mount_that_is_in_use_can_be_forced(mount: Mounting) -> None:
    mounted = mount()
    folder = os.open(mounted.point, os.O_RDONLY)
    os.kill(mounted.pid, signal.SIGKILL)
    until(lambda: _gone(mounted.pid))
    refused = mounted.command("--unmount", str(mounted.point))
    assert "busy" in refused.stderr
    mounted.ask("--unmount", "--force")
    assert not mounted.is_mounted()
    os.close(folder)


def test_a_folder_of_sockets_without_the_mount_is_named(
    mount: Mounting, tmp_path: Path
) -> None:
    mounted = mount()
    shown = penstock("mount", "--status", str(mounted.point), home=tmp_path)
    assert "does not answer" in shown.stderr
    assert "with the same --folder" in shown.stderr


def test_unmount_of_a_busy_mount_is_refused_unless_forced(mount: Mounting) -> None:
    mounted = mount("--limit", "5 MB/s")
    program = start_writer(mounted, "f")
    refused = mounted.command("--unmount", str(mounted.point))
    assert refused.returncode == 2
    assert "busy" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert program.poll() is None
    mounted.ask("--unmount", "--force")
    until(lambda: not mounted.is_mounted() and _gone(mounted.pid))
    output, _ = program.communicate(timeout=120)
    check_intact(mounted.backing / "f", int(output.split()[0]))


def test_killed_programs_do_not_hold_up_others(mount: Mounting) -> None:
    mounted = mount("--limit", "50 MB/s")
    steady = start_writer(mounted, "steady")
    for turn in range(20):
        victims = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, str(mounted.point / f"v{number}")],
                stdout=subprocess.DEVNULL,
            )
            for number in range(3)
        ]
        time.sleep(0.01 * turn)
        for victim in victims:
            victim.kill()
            victim.wait(120)
    before = _size(mounted.backing / "steady")
    until(lambda: _size(mounted.backing / "steady") > before)
    steady.kill()
    steady.communicate(timeout=120)
    mounted.ask("--unmount")


def test_a_full_file_system_gives_enospc(mount: Mounting, tmp_path: Path) -> None:
    small = tmp_path / "m0" / "backing"
    small.mkdir(parents=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], check=True
    )
    try:
        mounted = mount()
        with pytest.raises(OSError) as caught:
            (mounted.point / "a").write_bytes(bytes(4 << 20))
        assert caught.value.errno == errno.ENOSPC
        (mounted.point / "a").unlink()
        # The kernel reports the end of a file to the mount after unlink() returns.
        until(lambda: shutil.disk_usage(small).free > 1 << 19)
        (mounted.point / "a").write_bytes(bytes(1 << 19))
        mounted.end()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False)


@pytest.mark.parametrize("garbage", [b"", b"\n", b"\xff" * 100_000, b'{"type":1}\n'])
def test_garbage_on_the_control_socket_does_no_harm(
    mount: Mounting, garbage: bytes
) -> None:
    mounted = mount()
    (path,) = (mounted.home / "run" / "mounts").glob("*.sock")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10.0)
        connection.connect(str(path))
        try:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1 << 16)
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert mounted.status()["pid"] == mounted.pid


def _error_line(home: Path, *arguments: str) -> str:
    done = penstock("mount", *arguments, home=home)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_an_impossible_mount_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    (tmp_path / "file").touch()
    a, b, c = str(tmp_path / "a"), str(tmp_path / "a/b"), str(tmp_path / "c")
    file, no = str(tmp_path / "file"), str(tmp_path / "no")
    assert "No such file" in _error_line(tmp_path, no, c)
    assert "No such file" in _error_line(tmp_path, a, no)
    assert "is not a folder" in _error_line(tmp_path, a, file)
    for pair in ((a, b), (b, a), (a, a)):
        assert "or contains it" in _error_line(tmp_path, *pair)
    assert "already a mount point (proc)" in _error_line(tmp_path, a, "/proc")
    assert "1 folder given" in _error_line(tmp_path, a)
    assert "2 folders given" in _error_line(tmp_path, "--status", a, b)
    for rate in ("0", "-5 MB/s", "fast", "nan", "5 furlongs"):
        assert "--limit" in _error_line(tmp_path, a, c, f"--limit={rate}")
    assert "not a penstock mount" in _error_line(tmp_path, "--unmount", c)
    assert "exclude" in _error_line(tmp_path, "--unmount", "--status", c)
    far = tmp_path / ("x" * 120)
    done = penstock("mount", a, c, home=far)
    assert done.returncode == 2
    assert "--folder" in done.stderr


def test_a_mount_point_can_be_used_only_once(mount: Mounting) -> None:
    mounted = mount()
    again = mounted.command(str(mounted.backing), str(mounted.point))
    assert again.returncode == 2
    assert "already a mount point (fuse.penstock)" in again.stderr


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()
