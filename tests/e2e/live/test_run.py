# SPDX-License-Identifier: MIT
"""``penstock run`` is transparent: a program starts, runs and ends as without it."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.daemons import Daemon
from support.users import NEEDS_ROOT, NOBODY, open_for_all
from support.waiting import until

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Return a daemon that shares plenty of bandwidth."""
    folder = tmp_path_factory.mktemp("run")
    with closing(Daemon(folder, bandwidth="10 GB/s", prefixes="/")) as made:
        open_for_all(made.data)
        made.start()
        yield made


# --- What a program inherits ----------------------------------------------------------

#: Prints all that a program inherits, apart from numbers of processes and pipes.
WITNESS = r"""
import os, resource
def read(name): return open(f"/proc/self/{name}").read().strip()
print("leads session, group", os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid())
print("terminal", read("stat").rpartition(")")[2].split()[4])
print("nice", os.getpriority(os.PRIO_PROCESS, 0))
print("scheduling", os.sched_getscheduler(0), sorted(os.sched_getaffinity(0)))
print("umask", oct(os.umask(0)))
print("folder", os.getcwd(), os.readlink("/proc/self/root"))
print("ids", os.getresuid(), os.getresgid(), sorted(os.getgroups()))
for name in sorted(n for n in dir(resource) if n.startswith("RLIMIT")):
    print(name, resource.getrlimit(getattr(resource, name)))
wanted = ("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "Cap", "NoNew", "Seccomp", "Mems")
for line in read("status").splitlines():
    if line.startswith(wanted):
        print(line)
for name in sorted(os.listdir("/proc/self/fd"), key=int):
    try:
        target = os.readlink(f"/proc/self/fd/{name}").partition("[")[0]
        print("descriptor", name, target, read(f"fdinfo/{name}").split()[3])
    except OSError:
        pass  # the one that listed the folder
print("children", read(f"task/{os.getpid()}/children"))
for name in ("timerslack_ns", "oom_score_adj", "personality", "cgroup"):
    print(name, read(name))
for entry in open("/proc/self/environ", "rb").read().split(b"\0"):
    print("variable", entry)
"""
#: The variables that `penstock run` sets (docs/background/preload-library.md).
DOCUMENTED = ("LD_PRELOAD", "PENSTOCK_PAGE", "PENSTOCK_CONTROLLED")


def ordinary() -> None:
    """Change nothing."""


def unusual() -> None:
    """Give a process what few processes have."""
    os.setsid()
    os.nice(7)
    os.umask(0o027)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, 400))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, 64 << 20))
    for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGTERM})
    os.dup2(os.open("/dev/null", os.O_RDONLY), 9)
    os.dup2(os.open("/dev/zero", os.O_RDWR), 200)
    Path("/proc/self/oom_score_adj").write_text("100")


def witness(
    prefix: list[str], environment: dict[str, str], prepare: Callable[[], None]
) -> list[str]:
    """Return what a program says that it inherits."""
    done = subprocess.run(
        [*prefix, sys.executable, "-c", WITNESS],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment,
        preexec_fn=prepare,
        check=True,
        timeout=120,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def run_command(home: Path, *options: str) -> list[str]:
    """Return the words that start a program under control."""
    command = [sys.executable, "-m", "penstock", "run", "--require-control"]
    return [*command, f"--folder={home}", *options, "--"]


@pytest.mark.parametrize("prepare", [ordinary, unusual])
@pytest.mark.parametrize("is_private", [False, True])
def test_a_program_inherits_the_same_but_for_the_documented_variables(
    daemon: Daemon, prepare: Callable[[], None], is_private: bool, tmp_path: Path
) -> None:
    home = tmp_path / "run" if is_private else daemon.home
    # Not sorted, one empty, one with signs that shells quote; no locale.
    environment = {"Z": "1", "PATH": os.environ["PATH"], "EMPTY": "", "A": "a=b\n'"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    environment["PENSTOCK_LINGER"] = "2 s"
    plain = witness([], environment, prepare)
    controlled = witness(run_command(home), environment, prepare)
    added = [line for line in controlled if line not in plain]
    assert [line for line in controlled if line not in added] == plain
    names = [line.removeprefix("variable b'").partition("=")[0] for line in added]
    assert sorted(names) == sorted(DOCUMENTED)


# --- The private daemon ---------------------------------------------------------------


def test_a_private_daemon_compiles_nothing(tmp_path: Path) -> None:
    """Compiling would hold up the first program of a new user for many seconds."""
    cache = tmp_path / "cache"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PENSTOCK_LINGER": "1 s"}
    command = [*run_command(tmp_path / "run"), "sh", "-c", "echo x > out"]
    subprocess.run(command, env=environment, cwd=tmp_path, check=True, timeout=120)
    assert (tmp_path / "out").read_text() == "x\n"
    assert list(cache.rglob("*.nbi")) == []
    until(lambda: not (tmp_path / "run" / "agent.sock").exists())


# --- Programs that change their user --------------------------------------------------


@NEEDS_ROOT
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_a_program_that_changes_its_user_can_load_the_library(daemon: Daemon) -> None:
    user = f"--reuid={NOBODY}"
    script = "cat /proc/self/maps | grep -c libpenstock; echo x > out; exit 7"
    command = (
        "setpriv",
        user,
        f"--regid={NOBODY}",
        "--clear-groups",
        "sh",
        "-c",
        script,
    )
    daemon.data.chmod(0o777)
    done = daemon.command("run", "--", *command)
    # The loader would print an error for each of the three programs.
    assert (done.returncode, done.stderr) == (7, "")
    assert int(done.stdout) > 0


# --- Control that is absent -----------------------------------------------------------


def without_control(
    home: Path, *command: str, options: tuple[str, ...] = (), setup: str = "pass"
) -> subprocess.CompletedProcess[str]:
    """Run a program with ``penstock run``, after some Python code."""
    words = ["run", f"--folder={home}", *options, "--", *command]
    script = (
        f"import sys; from penstock.cli import main; {setup}; sys.exit(main({words}))"
    )
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def assert_reported(
    home: Path, reason: str, *command: str, setup: str = "pass"
) -> None:
    """Assert that one line says why there is no control, and nothing else changes."""
    done = without_control(home, *command, setup=setup)
    assert (done.returncode, done.stdout) == (7, "done\n")
    assert done.stderr.startswith("penstock: without control: ")
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1
    done = without_control(home, *command, options=("--quiet",), setup=setup)
    assert (done.returncode, done.stdout, done.stderr) == (7, "done\n", "")
    required = ("--require-control",)
    done = without_control(home, *command, options=required, setup=setup)
    assert (done.returncode, done.stdout) == (2, "")
    assert reason in done.stderr


PROGRAM = ("sh", "-c", "echo done; exit 7")


def test_a_missing_library_is_reported(daemon: Daemon) -> None:
    absent = (
        "from pathlib import Path; import penstock.native.files as files; "
        "files.BUILT = Path('/nonexistent')"
    )
    assert_reported(daemon.home, "run `make native`", *PROGRAM, setup=absent)


def test_a_static_program_is_reported(daemon: Daemon, tmp_path: Path) -> None:
    source = '#include <stdio.h>\nint main(void) { puts("done"); return 7; }\n'
    program = tmp_path / "static"
    built = subprocess.run(
        ["gcc", "-static", "-xc", "-", "-o", program],
        input=source,
        text=True,
        capture_output=True,
        check=False,
    )
    if built.returncode != 0:
        pytest.skip("there is no static C library")
    assert_reported(daemon.home, "static", str(program))


@NEEDS_ROOT
def test_a_setuid_program_is_reported(daemon: Daemon, tmp_path: Path) -> None:
    program = tmp_path / "setuid"
    shutil.copy("/bin/sh", program)
    os.chown(program, NOBODY, NOBODY)
    program.chmod(0o4755)
    assert_reported(daemon.home, "more rights", str(program), *PROGRAM[1:])


def test_a_missing_agent_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert_reported(tmp_path / "file", "is not a folder", *PROGRAM)


@pytest.mark.parametrize("command", [("env", "-i"), ("env", "-u", "LD_PRELOAD")])
def test_a_program_that_loses_the_library_runs_as_ever(
    daemon: Daemon, command: tuple[str, ...]
) -> None:
    """`penstock run` is gone by then; ``ctl status`` shows the uncontrolled bytes."""
    done = daemon.command("run", "--", *command, "/bin/sh", *PROGRAM[1:])
    assert (done.returncode, done.stdout, done.stderr) == (7, "done\n", "")
