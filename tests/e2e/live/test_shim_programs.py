# SPDX-License-Identifier: MIT
"""Real programs have the same results whatever state the page is in."""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.live.node.pages.page import IoClass, Mode, Page
from penstock.live.node.pages.page_layout import BucketWords, CurveWords, PageWords
from support.jobs import Job

PYTHON_BUFFERED = "open('out', 'w').write(open('text').read() * 2)"
PYTHON_UNBUFFERED = "open('out', 'wb', 0).write(open('data', 'rb', 0).read())"
PYTHON_COPY = "import shutil; shutil.copyfile('data', 'out')"
PYTHON_CHILDREN = (
    "import subprocess\n"
    "for i in range(5):\n"
    "    with open('out', 'ab') as out:\n"
    "        subprocess.run(['cat', 'text'], stdout=out, check=True)\n"
)
PYTHON_MAPPED = (
    "import mmap\n"
    "with open('out', 'w+b') as f:\n"
    "    f.truncate(8192); m = mmap.mmap(f.fileno(), 8192); m[:5] = b'hello'; m.flush()"
)
PYTHON_DATABASE = (
    "import sqlite3; c = sqlite3.connect('base'); c.execute('create table t (a)')\n"
    "c.executemany('insert into t values (?)', [(i,) for i in range(5000)])\n"
    "c.commit(); print(c.execute('select sum(a) from t').fetchone())"
)
PYTHON_PROCESSES = (
    "import multiprocessing as m\n"
    "with m.get_context('fork').Pool(3) as p: print(p.map(abs, range(-9, 0)))"
)
GIT = (
    "git init -q . && git add data && git -c user.name=a -c user.email=b commit -qm m"
    " && git gc -q && git fsck && git ls-files && rm -rf .git"
)
NODE = "require('fs').writeFileSync('out', require('fs').readFileSync('data'))"

#: Name -> command, and whether the shim can see what it writes to ``out``.
PROGRAMS: dict[str, tuple[list[str], bool | None]] = {
    "dd": (["dd", "if=data", "of=out", "bs=64k", "status=none"], True),
    "cp": (["cp", "data", "out"], True),
    "cat": (["sh", "-c", "cat data text > out"], True),
    "sort": (["sort", "-o", "out", "text"], True),
    "sort-redirected": (["sh", "-c", "sort text > out"], True),
    "tar": (["tar", "--mtime=@0", "-cf", "out", "data", "text"], True),
    "bash": (["bash", "-c", "for i in {1..500}; do echo line $i; done > out"], True),
    "bash-append": (["bash", "-c", "echo a > out; echo b >> out; cat < out"], True),
    "python-buffered": (["python", "-c", PYTHON_BUFFERED], True),
    "python-unbuffered": (["python", "-c", PYTHON_UNBUFFERED], True),
    "python-copy": (["python", "-c", PYTHON_COPY], True),
    "python-children": (["python", "-c", PYTHON_CHILDREN], True),
    "python-mapped": (["python", "-c", PYTHON_MAPPED], False),
    "node": (["node", "-e", NODE], True),
    "python-database": (["python", "-c", PYTHON_DATABASE], None),
    "python-processes": (["python", "-c", PYTHON_PROCESSES], None),
    "git": (["sh", "-c", GIT], None),
    "gcc": (["sh", "-c", "echo 'int main(void) {}' > a.c; gcc -o b a.c && ./b"], None),
    "failing": (["sh", "-c", "cat none > out; exit 3"], False),
    "silent": (["true"], False),
    "speaking": (["echo", "hello"], False),
}


def _control(job: Job) -> dict[str, str]:
    job.page.grant(50e6)
    return job.environment


def _control_without_limit(job: Job) -> dict[str, str]:
    job.page.grant(math.inf)
    return job.environment


def _dry_run(job: Job) -> dict[str, str]:
    job.page.mode = Mode.DRY_RUN
    job.page.grant(1e6)
    return job.environment


def _off(job: Job) -> dict[str, str]:
    job.page.grant(0.0)
    job.page.mode = Mode.OFF
    return job.environment


def _expired(job: Job) -> dict[str, str]:
    job.page.grant(0.0)
    job.page.renew(0.0)
    return job.environment


def _vanished(job: Job) -> dict[str, str]:
    job.page.grant(0.0)
    environment = job.environment
    job.page.path.unlink()
    return environment


def _disabled(job: Job) -> dict[str, str]:
    job.page.grant(0.0)
    return job.environment | {"PENSTOCK_DISABLE": "1"}


def _no_prefixes(job: Job) -> dict[str, str]:
    job.page.grant(0.0)
    return job.environment | {"PENSTOCK_CONTROLLED": ""}


def _nothing_but_the_library(job: Job) -> dict[str, str]:
    kept = {"LD_PRELOAD", "PATH"}
    return {key: job.environment[key] for key in kept}


Circumstance = Callable[[Job], dict[str, str]]
CIRCUMSTANCES: tuple[Circumstance, ...] = (
    _control,
    _control_without_limit,
    _dry_run,
    _off,
    _expired,
    _vanished,
    _disabled,
    _no_prefixes,
    _nothing_but_the_library,
)


@pytest.mark.parametrize("value", ["", "0", "no", "No", "false", "off"])
def test_a_negation_does_not_disable_control(job: Job, value: str) -> None:
    environment = job.environment | {"PENSTOCK_DISABLE": value}
    job.run("sh", "-c", "echo 1234567 > out", environment=environment)
    assert job.page.counters(IoClass.WRITE).moved_bytes == 8


@pytest.mark.parametrize("value", ["1", "yes", "true", "on"])
def test_other_values_disable_control(job: Job, value: str) -> None:
    environment = job.environment | {"PENSTOCK_DISABLE": value}
    job.run("sh", "-c", "echo 1234567 > out", environment=environment)
    assert job.page.counters(IoClass.WRITE).moved_bytes == 0


def _fill(folder: Path) -> None:
    (folder / "data").write_bytes(bytes(range(256)) * 2000)
    (folder / "text").write_text(
        "".join(f"line {i * 7919 % 1000}\n" for i in range(999))
    )
    for left in ("out", "base", "b", "a.c"):
        (folder / left).unlink(missing_ok=True)


def _result(
    job: Job, command: list[str], environment: dict[str, str]
) -> tuple[int, bytes, bytes, bytes | None]:
    _fill(job.folder)
    done = job.run(*command, environment=environment)
    out = job.folder / "out"
    left = out.read_bytes() if out.exists() else None
    return done.returncode, done.stdout, done.stderr, left


def _command(name: str, python: str) -> list[str]:
    command, _ = PROGRAMS[name]
    program = python if command[0] == "python" else command[0]
    for needed in (program, name):
        if needed in {"git", "gcc", "node"} and shutil.which(needed) is None:
            pytest.skip(f"needs {needed}")
    return [program, *command[1:]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_the_same_in_all_circumstances(
    job: Job, python: str, name: str, tmp_path: Path
) -> None:
    command = _command(name, python)
    expected = _result(job, command, dict(os.environ))
    for circumstance in CIRCUMSTANCES:
        folder = tmp_path / circumstance.__name__
        folder.mkdir()
        with Page.create(folder / "page") as page:
            page.renew(60.0)
            other = Job(job.root, page)
            assert _result(other, command, circumstance(other)) == expected, (
                circumstance
            )


@pytest.mark.parametrize(
    "name", [name for name, (_, seen) in PROGRAMS.items() if seen is not None]
)
def test_the_bytes_that_a_program_writes_are_counted(
    job: Job, python: str, name: str
) -> None:
    _, seen = PROGRAMS[name]
    command = _command(name, python)
    *_, left = _result(job, command, job.environment)
    assert job.volume(IoClass.WRITE) == (len(left or b"") if seen else 0)


def test_a_program_continues_when_the_daemon_dies(job: Job) -> None:
    """The page is removed and its lease ends while a program waits."""
    job.page.grant(100.0)
    job.page.renew(1.0)
    _fill(job.folder)
    process = job.start("dd", "if=data", "of=out", "bs=4k", "status=none")
    job.page.path.unlink()
    assert process.wait(timeout=120) == 0
    assert (job.folder / "out").read_bytes() == (job.folder / "data").read_bytes()


def _garbage(path: Path) -> None:
    path.write_bytes(os.urandom(4096))


def _short(path: Path) -> None:
    os.truncate(path, 100)


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _long(path: Path) -> None:
    os.truncate(path, 8192)


def _other_version(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[8] += 1
    path.write_bytes(content)


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage",
    [_garbage, _short, _empty, _long, _other_version, _fifo, _link, _folder],
)
def test_a_damaged_page_is_ignored(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    page = Page.create(tmp_path / "page")
    page.renew(60.0)
    page.grant(0.0)
    page.close()
    (tmp_path / "controlled").mkdir()
    job = Job(tmp_path, page)
    environment = job.environment
    damage(page.path)
    target = page.path.with_name("elsewhere") if damage is _link else page.path
    before = target.read_bytes() if target.is_file() else None
    done = job.run("sh", "-c", "echo hello > a; cat a", environment=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hello\n", b"")
    assert before is None or target.read_bytes() == before


def test_a_torn_grant_is_no_limit(job: Job) -> None:
    job.page.grant(0.0)
    with job.page.path.open("r+b") as page:
        for number in range(2):
            curves = PageWords.buckets.offset + BucketWords.curve.offset
            page.seek(curves + number * ctypes.sizeof(CurveWords))
            page.write(b"\xff" * 8)
    done = job.run("sh", "-c", "echo hello > a")
    assert done.returncode == 0
    assert job.page.counters(IoClass.WRITE).held_up_s == 0.0


_EARLY = r"""
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void early(void)
{
    int fd = open("early", O_WRONLY | O_CREAT, 0600);
    if (write(fd, "hello", 5) != 5)
        _exit(9);
}
"""


def test_io_before_our_library_has_started_passes(job: Job, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    (tmp_path / "early.c").write_text(_EARLY)
    library = tmp_path / "early.so"
    command = ["gcc", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "early.c")]
    subprocess.run(command, check=True, timeout=120)
    job.page.grant(0.0)
    both = f"{job.environment['LD_PRELOAD']}:{library}"
    done = job.run("true", environment=job.environment | {"LD_PRELOAD": both})
    assert (done.returncode, done.stderr) == (0, b"")
    assert (job.folder / "early").read_bytes() == b"hello"


def test_hundreds_of_short_programs_leave_consistent_counters(job: Job) -> None:
    job.page.grant(1e9)
    script = "for i in $(seq 200); do /bin/echo $i > f; done; cat f"
    assert job.run("sh", "-c", script).stdout == b"200\n"
    counters = job.page.counters(IoClass.WRITE)
    # One write of each program, and the close of its standard output.
    assert counters.ended_calls == counters.begun_calls == 2 * 200
    assert counters.waiting_calls == 0
