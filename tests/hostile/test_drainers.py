# SPDX-License-Identifier: MIT
"""A user cannot use the drainers that root starts for it to leave its job."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from penstock.live.node.bypass import with_descendants
from penstock.live.node.pages.page import Page
from penstock.live.staging.cgroups import open_cgroups
from penstock.live.staging.drain_process import start_drainer
from penstock.live.staging.drainers import Drainer
from penstock.live.wire.identity import process_start_ticks
from support.users import as_user, strangers
from support.waiting import LIMIT_S, until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, to start drainers for another user"
)

(USER,) = strangers(1)
_PTRACE_SEIZE = 0x4206
#: Where a cgroup can be made: a hierarchy of version 1, or the one of version 2.
_PLACES = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))


class AttackedJob:
    """A job of the user with a page, a folder of journals and a living process."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.journals = folder / "journals"
        self.journals.mkdir(mode=0o700)
        self.page = Page.create(folder / "job.page")
        for path in (self.journals, self.page.path):
            os.chown(path, USER, USER)

    @property
    def processes(self) -> dict[int, int]:
        """The process of the job and its start."""
        start = process_start_ticks(self.process.pid)
        assert start is not None
        return {self.process.pid: start}


@pytest.fixture
def job() -> Iterator[AttackedJob]:
    """Return a job of the user."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-hostile-"))
    folder.chmod(0o711)
    with subprocess.Popen(
        ["sleep", "600"], user=USER, group=USER, extra_groups=[]
    ) as process:
        job = AttackedJob(folder, process)
        yield job
        process.kill()
    job.page.close()
    shutil.rmtree(folder)


@contextmanager
def _cgroup(process: int) -> Iterator[Path]:
    """Put a process into a new cgroup; yield the file that lists its processes."""
    for place in _PLACES:
        folder = place / f"penstock-hostile-{os.getpid()}"
        with suppress(OSError), ExitStack() as stack:
            folder.mkdir()
            stack.callback(_remove_cgroup, folder)
            (folder / "cgroup.procs").write_text(str(process))
            stack.pop_all()
            break
    else:
        pytest.skip("needs a cgroup file system that can be written")
    try:
        yield folder / "cgroup.procs"
    finally:
        _remove_cgroup(folder)


def _remove_cgroup(folder: Path) -> None:
    def is_removed() -> bool:
        for pid in (folder / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        with suppress(OSError):
            folder.rmdir()
        return not folder.exists()

    until(is_removed)


def _drainers() -> list[int]:
    """Return the drainers that this process has started."""
    found = []
    for pid in with_descendants([os.getpid()]):
        with suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text() == "penstock-drain\n":
                found.append(pid)
    return found


def _status(pid: int) -> dict[str, list[str]]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name: text.split() for name, _, text in pairs}


def _attack(pid: int) -> list[str]:
    """Try to take hold of a process; return what succeeded."""
    taken = []
    if ctypes.CDLL(None).ptrace(_PTRACE_SEIZE, pid, None, None) == 0:
        taken.append("ptrace")
    for name in ("environ", "mem"):
        with suppress(OSError), Path(f"/proc/{pid}/{name}").open("rb"):
            taken.append(name)
    return taken


def test_a_drainer_is_inside_its_job_and_cannot_be_taken_over(job: AttackedJob) -> None:
    with _cgroup(job.process.pid) as members:
        drainer = Drainer(job.page.path, USER, USER)
        drainer.keep(job.journals, job.processes)
        until(_drainers)
        (pid,) = _drainers()
        status = _status(pid)
        assert status["Uid"] == status["Gid"] == [str(USER)] * 4
        assert status["Groups"] == []
        assert status["NoNewPrivs"] == ["1"]
        assert {int(status[f"Cap{kind}"][0], 16) for kind in ("Prm", "Eff")} == {0}
        assert as_user(USER, lambda: _attack(pid)) == []
        # The batch system ends a job by killing what is in its cgroup.
        assert str(pid) in members.read_text().split()
        cgroups = [
            Path(f"/proc/{each}/cgroup").read_text() for each in (pid, job.process.pid)
        ]
        assert cgroups[0] == cgroups[1]
    until(lambda: not drainer.is_running)


def test_no_drainer_is_started_outside_of_a_job(
    job: AttackedJob, caplog: pytest.LogCaptureFixture
) -> None:
    drainer = Drainer(job.page.path, USER, USER)
    drainer.keep(job.journals, {})
    until(lambda: not drainer.is_running)
    assert "no process of the job is left" in caplog.text
    assert _drainers() == []


def test_a_cgroup_that_cannot_be_joined_leaves_no_drainer(job: AttackedJob) -> None:
    """The drainer must not go on in the cgroup of the daemon."""
    read_only = os.open("/dev/null", os.O_RDONLY)
    process = start_drainer(
        job.journals, USER, USER, {"PENSTOCK_PAGE": str(job.page.path)}, [read_only]
    )
    os.close(read_only)
    assert process.wait(LIMIT_S) == 1


def _targets(processes: dict[int, int], job: AttackedJob) -> set[str]:
    """Return the files through which a drainer joins its cgroups."""
    with _cgroup(job.process.pid):
        descriptors = open_cgroups(processes, USER)
        targets = {os.readlink(f"/proc/self/fd/{each}") for each in descriptors}  # noqa: PTH115
        for each in descriptors:
            os.close(each)
    return targets


def test_a_process_of_another_user_is_no_way_into_its_cgroup(job: AttackedJob) -> None:
    """A journal, which its user can write, names the process that wrote it."""
    # A service of root acts for the user, as one that reads its files does.
    with subprocess.Popen(
        ["sleep", "600"],
        preexec_fn=lambda: os.seteuid(USER),  # noqa: PLW1509 - there is one thread
    ) as service:
        others = {pid: process_start_ticks(pid) or 0 for pid in (1, service.pid)}
        try:
            targets = _targets(others | job.processes, job)
        finally:
            service.kill()
    assert len(targets) == 1
    assert "penstock-hostile" in targets.pop()


def test_there_is_no_instant_at_which_a_drainer_can_be_taken_over(
    job: AttackedJob,
) -> None:
    """Such as the one between the start of the program and that of the library."""
    reading, writing = os.pipe()

    def watch() -> list[int]:
        """Return new processes that the user could take over, until the pipe ends."""
        os.set_blocking(reading, False)
        known = {int(name) for name in os.listdir("/proc") if name.isdecimal()}  # noqa: PTH208
        known.add(os.getpid())
        taken: set[int] = set()
        while True:
            with suppress(BlockingIOError):
                if os.read(reading, 1) == b"":
                    return sorted(taken)
            for name in os.listdir("/proc"):  # noqa: PTH208
                if name.isdecimal() and int(name) not in known:
                    with suppress(OSError), Path(f"/proc/{name}/mem").open("rb"):
                        taken.add(int(name))

    starter = os.fork()
    if starter == 0:
        # The end of this process is the end of the pipe.
        for _ in range(20):
            with suppress(BaseException):
                start_drainer(job.journals, USER, USER).wait()
        os._exit(0)
    os.close(writing)
    taken = as_user(USER, watch)
    os.close(reading)
    os.waitpid(starter, 0)
    assert taken == []
