# SPDX-License-Identifier: MIT
"""Put the folders of jobs on storage targets, each as the user of the job.

Folders of the user who runs the daemon are assigned by the daemon itself. For another
user, root starts a process, which reads a task, becomes that user for good, and then
makes and assigns the folders: so the kernel decides what it may change. It ends with
its task, or is killed if no folder is done for `_LIMIT_S`.

The user can stop and kill this process, but cannot take it over, nor the tools of the
file system that it starts: its real group is no group of the user, so that the kernel
allows no debugger of the user.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from penstock.errors import InputError, PenstockError
from penstock.live.ending import end_process
from penstock.live.staging.drivers import Driver, parsed_targets
from penstock.live.staging.drivers.driver import TOOL_TIMEOUT_S, SubFolderError
from penstock.live.staging.job_folder import JobFolder, folder_name
from penstock.live.wire.identity import known_user

__all__ = ["AssignedFolder", "FolderAssigner", "FolderOrder", "assign_as", "main"]

#: A process that takes longer for one folder is killed: its user has stopped it, or a
#: tool hangs (s).
_LIMIT_S: Final = TOOL_TIMEOUT_S + 10.0
#: Time between two looks whether the daemon stops (s).
_LOOK_S: Final = 0.2
_NO_ANSWER: Final = (
    "the process of the user gave no answer (it was stopped or killed, or the file "
    "system does not answer)"
)
#: Groups that nobody belongs to.
_FOREIGN_GROUPS: Final = (65534, 65533)
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
#: All that the process needs of our environment.
_VARIABLES: Final = ("PATH", "PYTHONPATH")


class FolderOrder(NamedTuple):
    """The targets, by name, that the folder of a job goes to."""

    job_name: str
    targets: Sequence[str]


class AssignedFolder(NamedTuple):
    """Where the folder of a job is, or why it is not on its targets."""

    folder: str = ""
    roots: Sequence[str] = ()
    """Folders, without links, that hold the files of the job."""
    failure: str = ""
    left_out: str = ""
    """Why some of its sub-folders are not; empty: all are."""


class _Task(NamedTuple):
    """What a process does for a user."""

    user: int
    group: int
    groups: Sequence[int]
    targets: str
    """As the setting of this name."""
    job_folder: str
    orders: Sequence[FolderOrder]


class FolderAssigner:
    """Puts folders of jobs on storage targets, as the user who runs this process.

    Parameters
    ----------
    targets, job_folder
        As the settings of these names.
    all_users
        True: jobs of all users have folders.
    """

    def __init__(self, targets: str, job_folder: str, *, all_users: bool) -> None:
        self.driver: Driver
        self.driver, _, self.names = parsed_targets(targets)
        self.folders = JobFolder(job_folder, all_users=all_users)
        self.targets = targets
        self.all_users = all_users

    def assign(self, user: int, order: FolderOrder) -> AssignedFolder:
        """Put the folder of a job on its targets; `user` runs this process."""
        driver, left_out = self.driver, ""
        try:
            if self.all_users:
                driver = driver.for_user(folder_name(user))
            folder = self.folders.make(user, order.job_name)
            try:
                driver.assign(folder, order.targets)
            except SubFolderError as error:
                left_out = str(error)
            roots = tuple(map(str, driver.roots(folder)))
        # The last one: e.g. a path that cannot be encoded.
        except (PenstockError, OSError, ValueError) as error:
            return AssignedFolder(failure=str(error))
        return AssignedFolder(str(folder), roots, left_out=left_out)


# --- The process of another user ------------------------------------------------------


def assign_as(
    user: int,
    assigner: FolderAssigner,
    orders: Sequence[FolderOrder],
    stop: threading.Event,
) -> list[AssignedFolder]:
    """Put the folders of jobs of another user on targets, in a process of that user.

    Parameters
    ----------
    stop
        Set when the daemon stops; the process is killed then.

    Raises
    ------
    InputError
        If the user database of this node does not know the user.
    UnavailableError
        If it does not tell the groups of the user.
    OSError
        If no process can be started.
    """
    known = known_user(user)
    if known is None or user == 0:
        raise InputError(
            f"user {user} is not known on the node of the controller",
            remedy="add the user there",
        )
    # Users may not be allowed to do this. It changes nothing in their folders.
    sets = {tuple(order.targets) for order in orders}
    failures = {targets: _prepared(assigner.driver, targets) for targets in sets}
    possible = [order for order in orders if not failures[tuple(order.targets)]]
    settings = (assigner.targets, assigner.folders.text)
    task = _Task(user, known.group, known.groups, *settings, possible)
    answers = _answered(task, stop)
    return [
        AssignedFolder(failure=failure)
        if failure
        else next(answers, AssignedFolder(failure=_NO_ANSWER))
        for failure in (failures[tuple(order.targets)] for order in orders)
    ]


def _prepared(driver: Driver, targets: Sequence[str]) -> str:
    """Prepare the driver for a set of targets; return why that has failed, or ""."""
    try:
        driver.prepare(targets)
    except (PenstockError, OSError, ValueError) as error:
        return str(error) or type(error).__name__
    return ""


def _answered(task: _Task, stop: threading.Event) -> Iterator[AssignedFolder]:
    """Run the process of a task, when the first answer is asked for."""
    output = _run(json.dumps(task).encode(), stop)
    # The last line may be incomplete if the process was killed.
    for line in output.rpartition(b"\n")[0].splitlines():
        yield AssignedFolder(*json.loads(line))


def _run(task: bytes, stop: threading.Event) -> bytes:
    """Run the process; return what it has printed, also if it was killed."""
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    process = subprocess.Popen(  # noqa: S603 - this module
        [sys.executable, "-P", "-m", __name__],
        stdin=pipe,
        stdout=pipe,
        stderr=null,
        env={name: os.environ[name] for name in _VARIABLES if name in os.environ},
        cwd="/",
        start_new_session=True,
    )
    printed, answered_s = b"", time.monotonic()
    given: bytes | None = task
    while not stop.is_set() and time.monotonic() - answered_s <= _LIMIT_S:
        try:
            return process.communicate(given, timeout=_LOOK_S)[0]
        except subprocess.TimeoutExpired as error:
            given = None
            if error.output and error.output != printed:
                printed, answered_s = error.output, time.monotonic()
    return end_process(process, with_group=True).printed or b""


def _become(task: _Task) -> None:
    """Become the user of a task for good."""
    # The daemon runs before all programs.
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    library = ctypes.CDLL(None, use_errno=True)
    foreign = next(group for group in _FOREIGN_GROUPS if group != task.group)
    os.setgroups(sorted({task.group, *task.groups}))
    os.setresgid(foreign, task.group, task.group)
    os.setresuid(task.user, task.user, task.user)
    for option, value in ((_PR_SET_DUMPABLE, 0), (_PR_SET_NO_NEW_PRIVS, 1)):
        if library.prctl(option, value, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def main() -> None:
    """Read a task, become its user, and print the answers, one in each line."""
    task = _Task(*json.load(sys.stdin))
    for answer in _answers(task):
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _answers(task: _Task) -> Iterator[AssignedFolder]:
    try:
        # As root: the user need not have access to the list of all targets.
        assigner = FolderAssigner(task.targets, task.job_folder, all_users=True)
    except PenstockError as error:
        yield from [AssignedFolder(failure=str(error))] * len(task.orders)
        return
    _become(task)
    for order in task.orders:
        yield assigner.assign(task.user, FolderOrder(*order))


if __name__ == "__main__":
    main()
