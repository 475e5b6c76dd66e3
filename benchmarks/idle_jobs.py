# SPDX-License-Identifier: MIT
"""What idle jobs cost the daemon, and how soon it notices the first call of one.

``python benchmarks/idle_jobs.py [--jobs N] [--seconds S] [--rounds R] [--json FILE]
[--against FOLDER]``

Every round starts a real ``penstock serve`` with N jobs. A job is a ``sleep`` that a
process attached as ``penstock run`` does; all jobs idle. Printed are, of the daemon:
processor time as a share of one core, threads, open descriptors, the times of
``/metrics`` and of a status, and the time from the first call of a job among the idle
ones until its new grant is in its page. With ``--against``, rounds alternate with the
code in the source folder given, e.g. an older version.

More than 500 jobs need root: they are divided among users of 500 jobs each.
The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from penstock.bench.cost.page_latency import BUSY, PHASES
from penstock.errors import UnavailableError
from penstock.live.node.launch.run import controlled_environment
from penstock.live.settings import Settings
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import AttachProcess, GetStatus

HERE = Path(__file__).resolve()
JOBS_PER_USER = 500
FIRST_USER = 60_000
PORT = 9411
TIMEOUT_S = 300.0
#: How long the jobs idle before the daemon is measured.
SETTLE_S = 40.0
#: Goals: share of a core, threads, and seconds of /metrics.
GOALS = {"cpu": 0.02, "threads": 10, "metrics_s": 0.1}


# --- The jobs -------------------------------------------------------------------------


def hold_jobs(folder: Path, jobs: int) -> None:
    """Attach processes, print how many, and keep them until standard input ends."""
    resource.setrlimit(resource.RLIMIT_NPROC, (jobs + 4096, jobs + 4096))
    environment = controlled_environment(Settings(folder=str(folder)), "first")
    library = Path(environment["LD_PRELOAD"].partition(":")[0])
    for path in (library, library.parent):
        path.chmod(0o755)
    children: list[int] = []
    with ExitStack() as stack:
        stack.callback(kill, children)
        for number in range(jobs):
            child = os.fork()
            if child == 0:
                attach(folder, number, environment)
            children.append(child)
            if number % 50 == 49:
                # The agent answers at most 256 connections of a user at a time.
                wait_for_sleep(children)
        wait_for_sleep(children)
        print(len(children), flush=True)
        sys.stdin.read()


def kill(children: list[int]) -> None:
    """End processes."""
    for child in children:
        os.kill(child, signal.SIGKILL)


def attach(folder: Path, number: int, environment: dict[str, str]) -> None:
    """Become a job that sleeps."""
    try:
        if os.geteuid() == 0:
            os.setuid(FIRST_USER + number // JOBS_PER_USER)
        with Client(folder / "agent.sock", limit_s=60.0) as client:
            page = client.ask(AttachProcess(f"job{number}")).page
        own = environment | {"PENSTOCK_PAGE": page}
        os.execve("/bin/sleep", ["sleep", "1000000"], own)  # noqa: S606
    finally:
        os._exit(1)


def wait_for_sleep(children: list[int]) -> None:
    """Wait until the last processes have become ``sleep``."""
    for child in children[-50:]:
        while Path(f"/proc/{child}/comm").read_text() != "sleep\n":
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                sys.exit("a job could not be attached")
            time.sleep(0.01)


# --- The daemon -----------------------------------------------------------------------


@contextmanager
def running(
    command: list[str], source: Path, folder: Path, **rest: object
) -> Iterator[subprocess.Popen[str]]:
    """Run a Python command with the code in `source` during the block."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    own = {"PYTHONPATH": str(source), "XDG_CACHE_HOME": str(folder / "cache")}
    process: subprocess.Popen[str] = subprocess.Popen(  # type: ignore[call-overload]
        [sys.executable, *command],
        env=kept | own,
        cwd=folder / "data",
        text=True,
        **rest,
    )
    try:
        yield process
    finally:
        if process.stdin:
            process.stdin.close()
            process.wait(TIMEOUT_S)
        process.terminate()
        process.wait(TIMEOUT_S)


def measure(source: Path, jobs: int, seconds: float) -> dict[str, float]:
    """Return what a daemon with this code costs."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        run = folder / "run"
        (folder / "data").mkdir()
        (folder / "cache").mkdir()
        for path in (folder, folder / "data", folder / "cache"):
            path.chmod(0o777)
        users = "all" if os.geteuid() == 0 else "own"
        flags = ["--bandwidth=1 GB/s", f"--users={users}", f"--folder={run}"]
        flags += [f"--prefixes={folder / 'data'}", f"--metrics=127.0.0.1:{PORT}"]
        serve = ["-m", "penstock", "serve", *flags]
        daemon = stack.enter_context(running(serve, source, folder))
        while not (run / "agent.sock").exists():
            time.sleep(0.05)
        hold = [str(HERE), "--hold", str(run), "--jobs", str(jobs)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        holder = stack.enter_context(running(hold, source, folder, **pipes))
        if not holder.stdout or holder.stdout.readline() != f"{jobs}\n":
            sys.exit("not all jobs could be attached")
        # Jobs that have just come are looked at more often.
        time.sleep(SETTLE_S)
        return {
            "cpu": share_of_a_core(daemon.pid, seconds),
            **resources(daemon.pid),
            "metrics_s": min(time_of(read_metrics) for _ in range(3)),
            "status_s": status_time(source, folder),
            "to_page_ms": latency_ms(source, folder),
        }


def share_of_a_core(pid: int, seconds: float) -> float:
    """Return the processor time of a process divided by the elapsed time."""
    before = processor_time(pid)
    time.sleep(seconds)
    return (processor_time(pid) - before) / seconds


def processor_time(pid: int) -> float:
    """Return the processor time that a process has used (s)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resources(pid: int) -> dict[str, float]:
    """Return the numbers of threads and descriptors of a process."""
    proc = Path(f"/proc/{pid}")
    return {
        "threads": len(list((proc / "task").iterdir())),
        "descriptors": len(list((proc / "fd").iterdir())),
    }


def time_of(action: Callable[[], None]) -> float:
    """Return how long an action takes (s); inf if the daemon does not answer."""
    begin = time.perf_counter()
    try:
        action()
    except (OSError, UnavailableError):
        return math.inf
    return time.perf_counter() - begin


def read_metrics() -> None:
    """Read the metrics as Prometheus does."""
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics") as answer:
        answer.read()


def read_status(folder: Path) -> None:
    """Read the status as ``penstock ctl status`` and ``penstock top`` do."""
    with Client(folder / "agent.sock", limit_s=60.0) as client:
        client.ask(GetStatus())


def status_time(source: Path, folder: Path) -> float:
    """Return the time of a status, asked for by the same code (s)."""
    command = [str(HERE), "--status", str(folder / "run")]
    with running(command, source, folder, stdout=subprocess.PIPE) as program:
        return float(program.communicate(timeout=TIMEOUT_S)[0])


def latency_ms(source: Path, folder: Path) -> float:
    """Return the median time from a first call to the grant that it causes (ms)."""
    run = ["-m", "penstock", "run", f"--folder={folder / 'run'}"]
    busy = [*run, "--job=busy", "--", sys.executable, "-c", BUSY]
    phases = [*run, "--job=phases", "--", sys.executable, "-c", PHASES, "30"]
    with (
        running(busy, source, folder, stdout=subprocess.DEVNULL),
        running(phases, source, folder, stdout=subprocess.PIPE) as program,
    ):
        text, _ = program.communicate(timeout=TIMEOUT_S)
    return statistics.median(float(line) for line in text.split()) * 1e3


# --- The command ----------------------------------------------------------------------


def main() -> int:
    """Measure all rounds and print them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--against", type=Path, help="source folder of other code")
    parser.add_argument("--hold", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--status", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.status:
        print(min(time_of(lambda: read_status(options.status)) for _ in range(3)))
        return 0
    if options.hold:
        hold_jobs(options.hold, options.jobs)
        return 0
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    codes = {"now": HERE.parents[1] / "src"}
    if options.against:
        codes["against"] = options.against.resolve()
    rounds: list[tuple[str, dict[str, float]]] = []
    for _ in range(options.rounds):
        for name, source in codes.items():
            figures = measure(source, options.jobs, options.seconds)
            rounds.append((name, figures))
            print(name, *(f"{key} {value:.4g}" for key, value in figures.items()))
    if options.json:
        document = [{"code": name, **figures} for name, figures in rounds]
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    own = [figures for name, figures in rounds if name == "now"]
    return int(any(min(f[key] for f in own) > goal for key, goal in GOALS.items()))


if __name__ == "__main__":
    sys.exit(main())
