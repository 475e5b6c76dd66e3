# SPDX-License-Identifier: MIT
"""Applications, schedulers and SLOs on real mounts.

The tests count the bytes of each application, not their speed, so that they also pass
on a slow machine.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.mount.control import all_statuses
from support.mounts import BROKEN, Mounted, penstock
from support.waiting import until

Mounting = Callable[..., Mounted]

SLO_FILE = """
scheduler = "{scheduler}"
default = "rest"
[applications.one]
throughput = "{one}"
latency = "100 ms"
[applications.two]
throughput = "1 MB/s"
latency = "300 ms"
[applications.rest]
throughput = "1 MB/s"
latency = "1 s"
"""
BY_PATH = """
[[rules]]
application = "one"
path = "one"
[[rules]]
application = "two"
path = "/two/"
"""


def slo_file(
    folder: Path,
    rules: str = BY_PATH,
    scheduler: str = "two-level",
    one: str = "3 MB/s",
) -> str:
    path = folder / "slo.toml"
    path.write_text(SLO_FILE.format(scheduler=scheduler, one=one) + rules)
    return str(path)


def moved(mounted: Mounted) -> dict[str, int]:
    """Return the bytes that each application has moved."""
    (status,) = all_statuses(mounted.home / "run" / "mounts")
    assert status.scheduling is not None
    return {line.name: line.moved_bytes for line in status.scheduling.applications}


# --- Which application owns a request ---------------------------------------------


def test_files_belong_to_applications_by_path(mount: Mounting, tmp_path: Path) -> None:
    mounted = mount("--slo", slo_file(tmp_path))
    for name, size in (("one", 1000), ("two", 200), ("two/sub", 30), ("onemore", 4)):
        (mounted.point / name).mkdir()
        (mounted.point / name / "file").write_bytes(bytes(size))
    assert moved(mounted) == {"one": 1000, "two": 230, "rest": 4}
    # A file stays with the application that opened it, wherever it goes.
    with (mounted.point / "one" / "file").open("r+b") as stream:
        (mounted.point / "one" / "file").rename(mounted.point / "two" / "other")
        stream.write(bytes(100_000))
    assert moved(mounted)["one"] == 101_000


def test_files_belong_to_applications_by_program_and_user(
    mount: Mounting, tmp_path: Path
) -> None:
    rules = """
    [[rules]]
    application = "one"
    program = "d[d]"
    user = 0
    [[rules]]
    application = "two"
    user = 4321
    """
    mounted = mount("--slo", slo_file(tmp_path, rules))
    copy = ["dd", "if=/dev/zero", "bs=1000", "count=3", "status=none"]
    subprocess.run([*copy, f"of={mounted.point / 'a'}"], check=True, timeout=120)
    (mounted.point / "b").write_bytes(bytes(7))
    assert moved(mounted) == {"one": 3000, "two": 0, "rest": 7}


def test_files_belong_to_jobs_of_live_control(mount: Mounting, tmp_path: Path) -> None:
    rules = """
    [[rules]]
    application = "one"
    job = "night-*"
    """
    mounted = mount("--slo", slo_file(tmp_path, rules))
    note = tmp_path / "x.note"
    note.write_text(json.dumps({"job": f"{os.geteuid()}:night-1", "user": 0}))
    for page, size in ((tmp_path / "x.page", 1000), (tmp_path / "y.page", 20)):
        subprocess.run(
            ["sh", "-c", f"head -c {size} /dev/zero > {mounted.point / page.name}"],
            env={**os.environ, "PENSTOCK_PAGE": str(page)},
            check=True,
            timeout=120,
        )
    assert moved(mounted) == {"one": 1000, "two": 0, "rest": 20}


# --- Shares -----------------------------------------------------------------------


WRITER = """
import os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
while True: os.pwrite(fd, bytes(65536), 0)
"""


@contextmanager
def writers(point: Path, names: dict[str, int]) -> Iterator[None]:
    """Run the given number of endless writers in each folder."""
    programs = []
    try:
        for name, count in names.items():
            (point / name).mkdir(exist_ok=True)
            programs += [
                subprocess.Popen(
                    [sys.executable, "-c", WRITER, str(point / name / f"f{number}")],
                    stderr=subprocess.DEVNULL,
                )
                for number in range(count)
            ]
        yield
    finally:
        for program in programs:
            program.kill()
        for program in programs:
            program.wait(120)


def growth(mounted: Mounted, least: int) -> dict[str, int]:
    """Wait until one and two have moved `least` bytes each; return what all moved."""
    before = moved(mounted)

    def grown() -> dict[str, int]:
        return {name: n - before[name] for name, n in moved(mounted).items()}

    until(lambda: min(grown()["one"], grown()["two"]) >= least)
    return grown()


def test_an_application_moves_no_more_than_its_bandwidth(
    mount: Mounting, tmp_path: Path
) -> None:
    path = Path(slo_file(tmp_path))
    path.write_text(
        path.read_text().replace(
            "[applications.one]", '[applications.one]\nbandwidth = "10 MB/s"'
        )
    )
    mounted = mount("--slo", str(path))
    (mounted.point / "one").mkdir()
    begin_s = time.monotonic()
    (mounted.point / "one" / "file").write_bytes(bytes(10_000_000))
    # A burst of 50 ms and the last request are paid for later.
    assert time.monotonic() - begin_s >= 0.8


def test_shares_follow_the_slos_whatever_the_number_of_programs(
    mount: Mounting, tmp_path: Path
) -> None:
    file = slo_file(tmp_path, scheduler="sfq:depth=1")
    mounted = mount("--limit", "4 MB/s", "--slo", file)
    with writers(mounted.point, {"one": 4, "two": 12}):
        until(lambda: min(moved(mounted)["one"], moved(mounted)["two"]) > 0)
        grown = growth(mounted, 20 * 65536)
        assert grown["one"] / grown["two"] == pytest.approx(3.0, rel=0.3)
        # Reverse the shares while the programs run.
        mount_point = str(mounted.point)
        done = penstock(
            "ctl", "slo", mount_point, "two", "9 MB/s", "1 s", home=mounted.home
        )
        assert done.returncode == 0, done.stderr
        assert "9 MB/s" in done.stdout
        grown = growth(mounted, 20 * 65536)
        assert grown["two"] / grown["one"] == pytest.approx(3.0, rel=0.3)


@pytest.mark.parametrize("scheduler", ["sfq:depth=2", "two-level"])
def test_none_of_a_hundred_programs_starves(
    mount: Mounting, tmp_path: Path, scheduler: str
) -> None:
    options = "--limit", "20 MB/s", "--slo", slo_file(tmp_path, scheduler=scheduler)
    mounted = mount(*options)
    script = "head -c 20000 /dev/zero > $0; cmp -n 20000 $0 /dev/zero && rm $0"
    for name in ("one", "two", "three"):
        (mounted.point / name).mkdir()
    programs = [
        subprocess.Popen(
            [
                "sh",
                "-c",
                script,
                mounted.point / ("one", "two", "three")[n % 3] / f"{n}",
            ]
        )
        for n in range(100)
    ]
    assert [program.wait(120) for program in programs] == [0] * 100
    assert moved(mounted) == {
        "one": 34 * 40_000,
        "two": 33 * 40_000,
        "rest": 33 * 40_000,
    }
    assert mounted.status()["waiting"] == 0


# --- As a file system -------------------------------------------------------------


@pytest.mark.skipif(shutil.which("fio") is None, reason="no fio")
def test_fio_verifies_what_it_wrote(mount: Mounting, tmp_path: Path) -> None:
    mounted = mount("--slo", slo_file(tmp_path))
    (mounted.point / "one").mkdir()
    command = [
        *("fio", "--name=v", f"--directory={mounted.point / 'one'}", "--rw=randrw"),
        *("--bsrange=512-128k", "--size=2m", "--numjobs=4", "--verify=crc32c"),
        *("--verify_fatal=1", "--fallocate=none", "--fsync=16", "--ioengine=psync"),
        *("--randseed=1", "--minimal"),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert mounted.status()["metadata"]["fsync"] > 0


def test_programs_that_append_to_one_file_lose_nothing(
    mount: Mounting, tmp_path: Path
) -> None:
    mounted = mount("--limit", "20 MB/s", "--slo", slo_file(tmp_path))
    path = mounted.point / "log"
    text = (
        "import os, sys\n"
        "fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_APPEND)\n"
        "for n in range(40):\n"
        "    os.write(fd, f'{sys.argv[2]} {n} {5000 * chr(120)}\\n'.encode())\n"
    )
    programs = [
        subprocess.Popen([sys.executable, "-c", text, str(path), str(number)])
        for number in range(6)
    ]
    assert [program.wait(120) for program in programs] == [0] * 6
    lines = [line.split() for line in path.read_text().splitlines()]
    assert all(line[2] == "x" * 5000 for line in lines)
    for number in range(6):
        own = [int(line[1]) for line in lines if line[0] == str(number)]
        assert own == list(range(40))


def test_a_killed_mount_gives_errors_and_keeps_the_data(
    mount: Mounting, tmp_path: Path
) -> None:
    mounted = mount("--limit", "10 MB/s", "--slo", slo_file(tmp_path))
    (mounted.point / "one").mkdir()
    log = tmp_path / "log"
    text = (
        "import os, sys\n"
        "fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)\n"
        "count = 0\n"
        "try:\n"
        "    while True:\n"
        "        os.pwrite(fd, count.to_bytes(8, 'big') * 512, count * 4096)\n"
        "        count += 1\n"
        "except OSError as error: print(count, error.errno)\n"
    )
    path = mounted.point / "one" / "f"
    with log.open("wb") as stream:
        program = subprocess.Popen(
            [sys.executable, "-c", text, str(path)], stdout=stream
        )
    until(lambda: moved(mounted)["one"] > 40960)
    os.kill(mounted.pid, signal.SIGKILL)
    assert program.wait(120) == 0
    count, code = map(int, log.read_text().split())
    assert code in BROKEN
    data = (mounted.backing / "one" / "f").read_bytes()
    for number in range(count):
        block = data[number * 4096 : (number + 1) * 4096]
        assert block == number.to_bytes(8, "big") * 512


def test_a_backing_folder_that_vanishes_gives_errors_only(
    mount: Mounting, tmp_path: Path
) -> None:
    mounted = mount("--slo", slo_file(tmp_path))
    (mounted.point / "one").mkdir()
    with (mounted.point / "one" / "open").open("wb", buffering=0) as stream:
        shutil.rmtree(mounted.backing)
        # An open file can still be written; all names are gone.
        assert stream.write(b"still") == 5
        with pytest.raises(FileNotFoundError):
            (mounted.point / "new").touch()
    assert list(mounted.point.iterdir()) == []
    assert mounted.status()["pid"] == mounted.pid


def test_a_full_file_system_gives_an_error(mount: Mounting, tmp_path: Path) -> None:
    small = tmp_path / "m0" / "backing"
    small.mkdir(parents=True)
    options = ["-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)]
    subprocess.run(["mount", *options], check=True)
    try:
        mounted = mount("--limit", "100 MB/s", "--slo", slo_file(tmp_path))
        with pytest.raises(OSError, match="No space left"):
            (mounted.point / "a").write_bytes(bytes(4 << 20))
        (mounted.point / "a").unlink()
        # The kernel reports the end of a file to the mount after unlink() returns.
        until(lambda: shutil.disk_usage(small).free > 1 << 19)
        (mounted.point / "a").write_bytes(bytes(1 << 19))
        mounted.end()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False)


# --- Status and changes -----------------------------------------------------------


def test_prometheus_and_top_show_applications(mount: Mounting, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        metrics = f"127.0.0.1:{free.getsockname()[1]}"
    mounted = mount("--slo", slo_file(tmp_path), "--metrics", metrics)
    (mounted.point / "one").mkdir()
    (mounted.point / "one" / "a").write_bytes(bytes(12345))
    with urllib.request.urlopen(f"http://{metrics}/metrics", timeout=120) as answer:
        text = answer.read().decode()
    label = f'{{application="one",mount="{mounted.point}"}}'
    assert f"penstock_application_bytes_total{label} 12345.0" in text
    assert f"penstock_application_promised_seconds{label} 0.1" in text
    assert f'penstock_mount_depth{{mount="{mounted.point}"}}' in text
    shown = penstock("top", "--once", home=mounted.home)
    assert shown.returncode == 0, shown.stderr
    assert str(mounted.point) in shown.stdout.replace("\n", "")
    for name in ("one", "two", "rest", "p95", "queued"):
        assert name in shown.stdout


def test_slos_are_shown_and_changed(mount: Mounting, tmp_path: Path) -> None:
    mounted = mount("--slo", slo_file(tmp_path))
    point, home = str(mounted.point), mounted.home
    assert "3 MB/s" in penstock("ctl", "slo", point, home=home).stdout
    file = slo_file(tmp_path, one="5 MB/s")
    done = penstock("ctl", "slo", point, file, "--json", "-", home=home)
    slo = json.loads(done.stdout)["applications"][0]
    assert (slo["name"], slo["throughput"]) == ("one", 5e6)
    for words, message in (
        (["no", "1 MB/s", "1 s"], "unknown application 'no'"),
        (["one", "0", "1 s"], "applications.one.throughput: '0' is not positive"),
        (["one", "1 MB/s", "0 s"], "applications.one.latency"),
        (["one", "5", "1 s"], "THROUGHPUT: '5' has no unit"),
        (["one", "1 MB/s", "5"], "LATENCY: '5' has no unit"),
        (["one", "1 MB/s"], "2 words given"),
        ([str(tmp_path / "no.toml")], "cannot be read"),
        (
            [slo_file(tmp_path, scheduler="edf")],
            "slo.toml: scheduler: cannot be changed while mounted",
        ),
    ):
        done = penstock("ctl", "slo", point, *words, home=home)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert message in done.stderr
    assert json.loads(penstock("ctl", "slo", point, "--json", "-", home=home).stdout)[
        "applications"
    ][0] == {**slo, "bytes_per_s": 0.0, "p95_s": None}


def test_a_mistake_in_the_slo_file_gets_one_line(
    mount: Mounting, tmp_path: Path
) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    wrong = slo_file(tmp_path, BY_PATH.replace('"two"', '"tow"'))
    done = penstock("mount", *map(str, folders), "--slo", wrong, home=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "slo.toml: rules[1].application: unknown application 'tow'" in done.stderr
    mounted = mount("--slo", slo_file(tmp_path))
    slo_file(tmp_path, BY_PATH.replace('"two"', '"tow"'))
    done = penstock("ctl", "slo", str(mounted.point), wrong, home=mounted.home)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"penstock: {wrong}: rules[1].application: unknown" in done.stderr
    assert str(mounted.point) not in done.stderr
    plain = mount()
    done = penstock("ctl", "slo", str(plain.point), home=plain.home)
    assert "without --slo" in done.stderr


def test_slos_above_the_limit_are_reported_at_once(
    mount: Mounting, tmp_path: Path
) -> None:
    mounted = Mounted(tmp_path / "m")
    try:
        done = mounted.command(
            *(str(mounted.backing), str(mounted.point), "--limit", "4 MB/s"),
            *("--slo", slo_file(tmp_path)),
        )
        assert (done.returncode, done.stderr.count("\n")) == (0, 1)
        assert "add up to 5 MB/s" in done.stderr
        assert "4 MB/s" in done.stderr
        mounted.pid = mounted.status()["pid"]
        assert "add up to" in mounted.status()["order"]["unmet"]
    finally:
        mounted.end()
