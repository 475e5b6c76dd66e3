# SPDX-License-Identifier: MIT
"""A daemon under a long mixture of troubles, and what it costs over time.

``python benchmarks/soak.py [--duration 1h] [--seed N] [-o FOLDER]`` (``make soak``)

Six jobs at a time come and go, of three users who need not trust one another; every
third one stages its writes, and now and then one is killed at work. Further users
attack the daemon, one after the other (`hostile.attacker`). Meanwhile the clock of the
daemon jumps by up to two days forwards or backwards, the disk of its pages and its
state is full for some seconds, and the daemon itself is killed and started again, early
and in the middle. What programs write is checked: a job that ended by itself has
written its whole file. No job may run without control unless the daemon was killed in
its time.

``soak.json`` holds the samples, ``soak.svg`` a drawing of them. The exit status is 1 if
the daemon exceeds the budget (`BUDGET`), or if a job lost data or failed.

As root the disk is a small file system of its own; for other users, there is no full
disk, no attack, and all jobs are theirs.
The clock jumps by a library that is preloaded into the daemon, and needs gcc.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from hostile.attacker import ATTACKS
from hostile.scene import small_disk, start_attack, start_victim
from penstock.errors import PenstockError
from penstock.live.staging.rules import Staging
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import GetStatus
from penstock.native.files import shim_path
from penstock.units import parse_time
from support.daemons import Daemon, resident_bytes

JOBS = 6
BLOCK_BYTES = 65536
#: Users of the jobs.
USERS = (65_000, 65_001, 65_002)
#: The first user who attacks; the others follow.
FIRST_ATTACKER = 65_100
#: How long an attack lasts (s).
ATTACK_S = (3.0, 8.0)
#: When the daemon is killed, as parts of the duration: it then lives for long.
KILLS = (0.05, 0.1, 0.5)
#: Mean times between two troubles, as parts of the duration, and their limits (s).
CLOCK_JUMPS, FULL_DISKS = (1 / 60, 5.0, 60.0), (1 / 40, 7.0, 90.0)
ATTACKED = (1 / 40, 8.0, 90.0)
FULL_S = 3.0
#: What the daemon may take.
BUDGET = {
    "memory_growth_bytes": 30e6,  # from a fifth of a life of the daemon to its end
    # An attacker holds up to 256 connections, and 200 jobs with their processes.
    "descriptors": 60 + 8 * JOBS + 700,
    "threads": 40,
    "log_bytes_per_job": 1000.0,
    "latency_s": 5.0,  # of any status while a daemon runs; the clients' patience
    "uncontrolled_jobs": 0,
}
#: Adds the number of seconds in the file CLOCK_OFFSET to the time of day.
CLOCK = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile long *offset;
__attribute__((constructor)) static void open_offset(void)
{
    const char *path = getenv("CLOCK_OFFSET");
    int fd = path ? open(path, O_RDONLY) : -1;
    void *memory = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
    offset = memory == MAP_FAILED ? 0 : memory;
    close(fd);
}
int clock_gettime(clockid_t clock, struct timespec *now)
{
    long answer = syscall(SYS_clock_gettime, clock, now);
    if (answer == 0 && clock == CLOCK_REALTIME && offset)
        now->tv_sec += *offset;
    return (int)answer;
}
"""


@dataclass(frozen=True)
class Sample:
    """The daemon at one instant."""

    time_s: float
    life: int
    """How often the daemon was started before."""
    memory_bytes: int
    descriptors: int
    threads: int
    log_bytes: int
    latency_s: float
    """Time to answer a request for the status."""
    jobs: int
    trouble: str


class Clock:
    """The time of day of the daemon."""

    def __init__(self, folder: Path) -> None:
        self._offset = folder / "offset"
        self.environment: dict[str, str] = {}
        self.jump(0)
        library = folder / "clock.so"
        if shutil.which("gcc"):
            words = ["gcc", "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o"]
            subprocess.run([*words, str(library)], input=CLOCK, text=True, check=True)
            self.environment = {
                "LD_PRELOAD": str(library),
                "CLOCK_OFFSET": str(self._offset),
            }

    def jump(self, offset_s: int) -> None:
        """Be this far from the true time."""
        # In place: the daemon has mapped the file.
        with self._offset.open("r+b" if self._offset.exists() else "wb") as stream:
            stream.write(offset_s.to_bytes(8, sys.byteorder, signed=True))


class SoakedDaemon(Daemon):
    """A daemon with a clock of its own."""

    def __init__(self, folder: Path, clock: Clock, **settings: str) -> None:
        super().__init__(folder, **settings)
        self.clock = clock
        self._more: dict[str, str] = {}

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the process that is started now."""
        return {**super().environment, **self._more}

    def begin(self) -> None:
        """Start the daemon; programs have the true time."""
        self._more = self.clock.environment
        super().begin()
        self._more = {}

    def forget(self, process: subprocess.Popen[str]) -> str:
        """Close the pipes of a program that has ended; return its errors."""
        if process in self._started:
            self._started.remove(process)
        said = process.stderr.read() if process.stderr else ""
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        return said


class Soak:
    """The run: jobs, troubles and samples.

    Parameters
    ----------
    daemon
        The daemon, not started.
    disk
        The small file system that it uses; None without root: no full disk, no other
        users.
    duration_s
        How long to run (s).
    """

    def __init__(
        self, daemon: SoakedDaemon, disk: Path | None, duration_s: float, seed: int
    ) -> None:
        self._daemon, self._disk = daemon, disk
        self._duration_s = duration_s
        self._random = Random(seed)  # noqa: S311 - the same run again
        self._begun_s = time.monotonic()
        self._jobs: dict[str, subprocess.Popen[str]] = {}
        #: Job -> size of its file, and instant at which it began (s).
        self._sizes: dict[str, int] = {}
        self._begun: dict[str, float] = {}
        self._attack: subprocess.Popen[bytes] | None = None
        self._attack_until_s = 0.0
        self._killed: set[str] = set()
        self._kills = [part * duration_s for part in KILLS]
        self._next_jump_s = self._after(CLOCK_JUMPS)
        self._next_full_s = self._after(FULL_DISKS)
        self._next_attack_s = self._after(ATTACKED)
        self._killed_daemon_s = -1.0
        self._full_until_s = 0.0
        self._trouble = ""
        self._life = 0
        self.started_jobs = 0
        """How many jobs there were."""
        self.attacks = 0
        """How many attacks there were."""
        self.uncontrolled_jobs = 0
        """How many jobs ran without control while a daemon was there."""
        self.samples: list[Sample] = []
        self.failures: list[str] = []
        """What went wrong with jobs."""

    @property
    def _now_s(self) -> float:
        return time.monotonic() - self._begun_s

    def _after(self, times: tuple[float, float, float]) -> float:
        part, least_s, most_s = times
        mean_s = min(max(part * self._duration_s, least_s), most_s)
        return self._now_s + mean_s * self._random.uniform(0.5, 1.5)

    def run(self) -> None:
        """Run to the end of the duration, then let the last jobs end."""
        self._daemon.start()
        pause_s = min(max(self._duration_s / 1800.0, 0.2), 2.0)
        while self._now_s < self._duration_s:
            self._trouble = ""
            self._make_trouble()
            if self._disk:
                self._attack_sometimes()
            self._replace_jobs()
            self._take_sample()
            time.sleep(pause_s)
        self._empty_disk()
        self._end_attack()
        deadline_s = time.monotonic() + 120.0
        while self._jobs and time.monotonic() < deadline_s:
            self._collect_ended()
            time.sleep(0.1)
        self.failures += [f"job {name} does not end" for name in self._jobs]
        if "Traceback" in self._daemon.log:
            self.failures.append("the log of the daemon has a traceback")

    # --- Jobs -------------------------------------------------------------------------

    def _replace_jobs(self) -> None:
        self._collect_ended()
        while len(self._jobs) < JOBS:
            name = f"job{self.started_jobs}"
            self.started_jobs += 1
            self._begun[name] = self._now_s
            self._jobs[name] = self._start_job(
                name, is_staged=self.started_jobs % 3 == 0
            )
        if self._random.random() < 0.02:
            name = self._random.choice(list(self._jobs))
            self._killed.add(name)
            self._jobs[name].kill()

    def _start_job(self, name: str, *, is_staged: bool) -> subprocess.Popen[str]:
        """Start a job of one of the users, as root; else one of this user."""
        mebibytes = self._random.randrange(1, 13)
        self._sizes[name] = mebibytes * 2**20
        if self._disk is None:
            stage = ("--stage", str(self._daemon.folder / "journals"))
            options = ("--quiet", *(stage if is_staged else ()))
            return self._daemon.write(name, mebibytes * 16, options=options)
        user = USERS[self.started_jobs % len(USERS)]
        journals = self._daemon.folder / f"journals-{user}"
        if not journals.exists():
            journals.mkdir(mode=0o700)
            os.chown(journals, user, user)
        variables = Staging(journals).environment() if is_staged else {}
        return start_victim(self._daemon, name, mebibytes, variables, user)

    def _collect_ended(self) -> None:
        for name, process in list(self._jobs.items()):
            if process.poll() is None:
                continue
            del self._jobs[name]
            said = self._daemon.forget(process)
            path, size = self._daemon.data / name, self._sizes[name]
            begun_s = self._begun.pop(name)
            if name in self._killed:
                continue  # data that it has staged is still written to its file
            if process.returncode != 0:
                self.failures.append(f"job {name} failed: {process.returncode}: {said}")
            elif path.stat().st_size != size:
                self.failures.append(f"job {name}: {path.stat().st_size} of {size}")
            if "not controlled" in said and begun_s > self._killed_daemon_s:
                self.uncontrolled_jobs += 1
                print(f"{self._now_s:.0f} s, {self._trouble}: {name}: {said}")
            path.unlink(missing_ok=True)

    # --- Troubles ---------------------------------------------------------------------

    def _make_trouble(self) -> None:
        now_s = self._now_s
        if self._kills and now_s > self._kills[0]:
            del self._kills[0]
            self._trouble = "killed"
            self._empty_disk()
            self._daemon.kill()
            self._daemon.start()
            self._killed_daemon_s = self._now_s
            self._life += 1
        elif now_s > self._next_jump_s:
            self._next_jump_s = self._after(CLOCK_JUMPS)
            self._trouble = "clock"
            self._daemon.clock.jump(self._random.randrange(-172_800, 172_800))
        elif self._full_until_s and now_s > self._full_until_s:
            self._empty_disk()
        elif self._disk and now_s > self._next_full_s:
            self._next_full_s = self._after(FULL_DISKS)
            self._full_until_s = now_s + FULL_S
            self._trouble = "full disk"
            with suppress(OSError), (self._disk / "filler").open("wb", 0) as filler:
                while True:
                    filler.write(bytes(BLOCK_BYTES))

    def _attack_sometimes(self) -> None:
        """Begin an attack, or end the one that goes on, when its time has come."""
        if self._attack is not None and self._now_s > self._attack_until_s:
            self._end_attack()
        elif self._attack is None and self._now_s > self._next_attack_s:
            kinds = [*ATTACKS, "fill"]
            kind = kinds[self.attacks % len(kinds)]
            user = FIRST_ATTACKER + self.attacks
            self._attack = start_attack(self._daemon.home / "agent.sock", kind, user)
            self._attack_until_s = self._now_s + self._random.uniform(*ATTACK_S)
            self.attacks += 1
            self._trouble = self._trouble or "attack"

    def _end_attack(self) -> None:
        if self._attack is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._attack.pid, signal.SIGKILL)
            self._attack.wait()
            assert self._attack.stdout is not None  # noqa: S101 - for the type checker
            self._attack.stdout.close()
            self._attack = None
            self._next_attack_s = self._after(ATTACKED)

    def _empty_disk(self) -> None:
        self._full_until_s = 0.0
        if self._disk:
            (self._disk / "filler").unlink(missing_ok=True)

    # --- Samples ----------------------------------------------------------------------

    def _take_sample(self) -> None:
        process = self._daemon.process
        if process is None or process.poll() is not None:
            self.failures.append("the daemon has ended by itself")
            self._daemon.start()
            return
        begun_s = time.monotonic()
        with (
            suppress(PenstockError),
            Client(self._daemon.home / "agent.sock") as client,
        ):
            client.ask(GetStatus())
        latency_s = time.monotonic() - begun_s
        proc = Path(f"/proc/{process.pid}")
        self.samples.append(
            Sample(
                self._now_s,
                self._life,
                resident_bytes(process.pid),
                sum(1 for _ in (proc / "fd").iterdir()),
                sum(1 for _ in (proc / "task").iterdir()),
                (self._daemon.folder / "serve.log").stat().st_size,
                latency_s,
                len(self._jobs),
                self._trouble,
            )
        )


# --- The result -----------------------------------------------------------------------


def used(soak: Soak) -> dict[str, float]:
    """Return what the daemon has used, by the keys of `BUDGET`."""
    samples, growths = soak.samples, []
    for life in {sample.life for sample in samples}:
        lived = [sample for sample in samples if sample.life == life]
        later = lived[len(lived) // 5 :]
        growths.append(later[-1].memory_bytes - later[0].memory_bytes)
    return {
        "memory_growth_bytes": max(growths),
        "descriptors": max(sample.descriptors for sample in samples),
        "threads": max(sample.threads for sample in samples),
        "log_bytes_per_job": samples[-1].log_bytes / soak.started_jobs,
        "latency_s": max(sample.latency_s for sample in samples),
        "uncontrolled_jobs": soak.uncontrolled_jobs,
    }


def draw(samples: list[Sample], path: Path) -> None:
    """Draw the samples over time, with a line at each trouble."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    panels = {
        "memory [MB]": [sample.memory_bytes / 1e6 for sample in samples],
        "descriptors": [sample.descriptors for sample in samples],
        "threads": [sample.threads for sample in samples],
        "log [kB]": [sample.log_bytes / 1e3 for sample in samples],
        "status [ms]": [1e3 * sample.latency_s for sample in samples],
    }
    colors = {"killed": "tab:red", "clock": "tab:blue", "full disk": "tab:orange"}
    colors["attack"] = "tab:green"
    times_min = [sample.time_s / 60.0 for sample in samples]
    figure, axes = plt.subplots(len(panels), 1, sharex=True, figsize=(8, 9))
    for axis, (label, values) in zip(axes, panels.items(), strict=True):
        for name, color in colors.items():
            marked = [each.time_s / 60.0 for each in samples if each.trouble == name]
            width = 2.0 if name == "killed" else 0.4
            place = axis.get_xaxis_transform()
            axis.vlines(marked, 0, 1, color=color, lw=width, transform=place)
        axis.plot(times_min, values, color="black", lw=0.8)
        axis.set_ylabel(label)
        axis.set_ylim(bottom=0)
    axes[-1].set_xlabel("time [min]")
    for name, color in colors.items():
        axes[0].plot([], [], color=color, label=name)
    axes[0].legend(loc="lower right", ncols=4, fontsize="small")
    figure.tight_layout()
    figure.savefig(path)


def _serve_all_users(daemon: SoakedDaemon, disk: Path) -> None:
    """Have the daemon on a disk, with all that jobs of other users need."""
    daemon.folder.chmod(0o711)
    daemon.data.chmod(0o777)
    daemon.home = disk / "run"
    daemon.settings |= {"folder": str(daemon.home), "users": "all"}
    # Other users need not have access to the folder of this checkout.
    library = disk / "libpenstock.so"
    shutil.copyfile(shim_path(), library)
    library.chmod(0o755)


def main() -> int:
    """Run, write the result and compare it with the budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--duration", default="1h", help="such as 1h or 60s")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", default="out/soak", type=Path)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="penstock-soak-"))
    with ExitStack() as stack:
        disk = None
        daemon = SoakedDaemon(folder, Clock(folder), bandwidth="40 MB/s")
        if os.geteuid() == 0:
            disk = folder / "small"
            stack.enter_context(small_disk(disk))
            _serve_all_users(daemon, disk)
        stack.enter_context(closing(daemon))
        soak = Soak(daemon, disk, parse_time(arguments.duration), arguments.seed)
        soak.run()
    shutil.rmtree(folder, ignore_errors=True)
    amounts = used(soak)
    arguments.output.mkdir(parents=True, exist_ok=True)
    document = {
        "jobs": soak.started_jobs,
        "attacks": soak.attacks,
        "budget": BUDGET,
        "used": amounts,
        "failures": soak.failures,
        "samples": [asdict(sample) for sample in soak.samples],
    }
    (arguments.output / "soak.json").write_text(json.dumps(document, indent=1) + "\n")
    draw(soak.samples, arguments.output / "soak.svg")
    print(
        f"{soak.started_jobs} jobs, {soak.attacks} attacks, "
        f"{len(soak.failures)} failures"
    )
    for failure in soak.failures[:20]:
        print(f"  {failure}")
    for name, amount in amounts.items():
        print(f"{name:<20} {amount:14.6g} of {BUDGET[name]:g}")
    exceeded = any(amount > BUDGET[name] for name, amount in amounts.items())
    return int(exceeded or bool(soak.failures))


if __name__ == "__main__":
    sys.exit(main())
