# SPDX-License-Identifier: MIT
"""An ordinary user who attacks the daemon of a node, or a mount.

``python -m hostile.attacker UID KIND PATH``

PATH is the socket of the daemon or the folder at which the mount is.

The process is started by root, gives up all privileges, prints ``ready`` when the
attack has begun, and goes on until it is killed.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random

from penstock.errors import PenstockError
from penstock.live.node.pages.bell import SIZE as BELL_SIZE
from penstock.live.node.pages.bell import SLOTS, BellWords
from penstock.live.node.pages.page_layout import FOLDER_KNOWN, SIZE, PageWords
from penstock.live.node.pages.shared_file import wake
from penstock.live.wire.frames import Client, frame
from penstock.live.wire.messages import AttachProcess, GetStatus, PageAssigned

__all__ = [
    "ATTACKS",
    "CALL_BYTES",
    "FURTHER_ATTACKS",
    "MOUNT_ATTACKS",
    "SHARED_PLACES",
    "VICTIM",
    "become",
]

#: User id of B, who is attacked.
VICTIM = 65_000
#: What B writes with one call.
CALL_BYTES = 65_536
#: Processes that attack at the same time.
_PROCESSES = 4
#: Where the programs and daemons of a user make folders, without its number.
SHARED_PLACES = ("/dev/shm/penstock-", "/tmp/penstock-")  # noqa: S108
_PTRACE_SEIZE = 0x4206


def become(user: int) -> None:
    """Give up all privileges."""
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _attach(path: Path, job_name: str) -> Path | None:
    """Return the page of a job of this process; None if it is refused."""
    with suppress(PenstockError), Client(path) as client:
        reply = client.ask(AttachProcess(job_name, folder="/"))
        return Path(reply.page) if isinstance(reply, PageAssigned) else None
    return None


def _map(path: Path, size_bytes: int) -> mmap.mmap:
    with path.open("r+b") as stream:
        return mmap.mmap(stream.fileno(), size_bytes)


def _pages(path: Path, jobs: int) -> list[PageWords]:
    pages = [_attach(path, f"job{number}") for number in range(jobs)]
    return [PageWords.from_buffer(_map(page, SIZE)) for page in pages if page]


def _ready() -> None:
    os.write(1, b"ready\n")


# --- The attacks ----------------------------------------------------------------------


def attach(path: Path) -> None:
    """Attach one process again and again, without waiting for the answers."""
    data = frame(AttachProcess("again", folder="/")) * 100
    _ready()
    while True:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(5.0)
            connection.connect(str(path))
            while True:
                connection.sendall(data)
                connection.recv(1 << 20)


def connect(path: Path) -> None:
    """Open connections as fast as possible: some stay open, all others are left."""
    _fork()
    _ready()
    kept: list[socket.socket] = []
    for number in count():
        connection = socket.socket(socket.AF_UNIX)
        with suppress(OSError):
            connection.connect(str(path))
        if number % 50 == 0 and len(kept) < 500:
            kept.append(connection)
        else:
            connection.close()


def scribble(path: Path, *, claims_bytes: bool = False) -> None:
    """Make 200 jobs look busy and held up; none of them moves a byte."""
    pages = _pages(path, 200)
    _ready()
    while True:
        now_ns = time.monotonic_ns()
        for page in pages:
            page.operations_begun += 1
            writes = page.classes[0]
            writes.begun_calls += 1
            writes.last_active_ns = writes.heartbeat_ns = now_ns
            writes.held_up_ns += 50_000_000
            writes.waiting_calls = 1
            if claims_bytes:
                writes.moved_bytes += 1_000_000
        time.sleep(0.05)


def claim(path: Path) -> None:
    """Make 200 jobs look busy, held up and moving bytes."""
    scribble(path, claims_bytes=True)


def post(path: Path) -> None:
    """Ring the bell for the begin of operations in 50 jobs without a pause."""
    pages = _pages(path, 50)
    bell = _map(path.parent / "pages" / f"{os.geteuid()}.bell", BELL_SIZE)
    words = BellWords.from_buffer(bell)
    place = ctypes.addressof(words) + BellWords.rings.offset
    _fork()
    _ready()
    while True:
        now_ns = time.monotonic_ns()
        for page in pages:
            page.operations_begun += 1
            page.classes[0].last_active_ns = now_ns
        for slot in range(min(SLOTS, 50)):
            words.posts[slot] += 1
        words.rings += 1
        wake(place)


def trickle(path: Path) -> None:
    """Let 50 jobs wait in short operations, each of which moves one real byte."""
    pages = _pages(path, 50)
    bell = _map(path.parent / "pages" / f"{os.geteuid()}.bell", BELL_SIZE)
    words = BellWords.from_buffer(bell)
    place = ctypes.addressof(words) + BellWords.rings.offset
    with (path.parents[1] / "data" / f"trickle-{os.geteuid()}").open("wb", 0) as file:
        _ready()
        while True:
            for page in pages:
                file.write(b"x")
                page.classes[0].moved_bytes += 1
                page.operations_begun += 1
            for slot in range(min(SLOTS, 50)):
                words.posts[slot] += 1
            words.rings += 1
            wake(place)
            for is_waiting in (1,) * 12 + (0,):
                now_ns = time.monotonic_ns()
                for page in pages:
                    writes = page.classes[0]
                    writes.last_active_ns = writes.heartbeat_ns = now_ns
                    writes.held_up_ns += 20_000_000 * is_waiting
                    writes.waiting_calls = is_waiting
                time.sleep(0.02)
            # Longer than the silence that ends an operation.
            time.sleep(0.15)


def ask(path: Path) -> None:
    """Ask for the status of 200 jobs without a pause, over many connections."""
    _pages(path, 200)
    _fork()
    _ready()
    data = frame(GetStatus()) * 10
    while True:
        with suppress(OSError):
            connections = [socket.socket(socket.AF_UNIX) for _ in range(30)]
            for connection in connections:
                connection.settimeout(5.0)
                connection.connect(str(path))
            while True:
                for connection in connections:
                    connection.sendall(data)
                for connection in connections:
                    connection.recv(1 << 20)


def start(path: Path, *, keeps_links: bool = False) -> None:
    """Start jobs under new names without a pause; each ends with its process."""
    _fork()
    _ready()
    for number in count():
        child = os.fork()
        if child == 0:
            page = _attach(path, f"{os.getpid()}-{number}")
            if page and keeps_links:
                os.link(page, path.parents[1] / "data" / page.name)
            os._exit(0)
        os.waitpid(child, 0)


def link(path: Path) -> None:
    """Start jobs without a pause, and keep links to their pages."""
    start(path, keeps_links=True)


def damage(path: Path) -> None:
    """Overwrite and truncate the pages of 20 jobs and the bell without a pause."""
    random = Random(1)
    paths = [page for number in range(20) if (page := _attach(path, f"job{number}"))]
    paths.append(path.parent / "pages" / f"{os.geteuid()}.bell")
    files = [(os.open(each, os.O_RDWR), each.stat().st_size) for each in paths]
    _ready()
    while True:
        for descriptor, size in files:
            if random.random() < 0.01:
                os.ftruncate(descriptor, random.randrange(size))
                os.ftruncate(descriptor, size)
            os.pwrite(descriptor, random.randbytes(8), random.randrange(size - 8))
        time.sleep(0.001)


def fill(path: Path) -> None:
    """Make the pages of 20 jobs longer until the disk is full, again and again."""
    pages = [page for number in range(20) if (page := _attach(path, f"job{number}"))]
    files = [os.open(page, os.O_RDWR) for page in pages]
    block = bytes(1 << 20)
    _reopen_removed(path)
    _ready()
    while True:
        for descriptor in files:
            with suppress(OSError):
                while os.pwrite(descriptor, block, os.fstat(descriptor).st_size):
                    pass
        time.sleep(0.001)


def _reopen_removed(path: Path) -> None:
    """Try to open the page of a job that has ended, by a descriptor without access."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, os.fsencode(_attach(path, "ended") or "/"))
        time.sleep(60.0)
        os._exit(0)
    page = Path(os.fsdecode(os.read(reading, 4096)))
    page.chmod(0o666)
    descriptor = os.open(page, os.O_PATH)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while os.fstat(descriptor).st_nlink:
        time.sleep(0.01)
    # The daemon takes the page directly after its name.
    time.sleep(0.5)
    try:
        os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR)
    except PermissionError:
        return
    raise AssertionError("the page of a job that has ended can be opened again")


def trace(path: Path) -> None:
    """Claim staged data in 40 jobs, and try to take over the drainers that come."""
    folder = path.parents[1] / "data" / "journals"
    folder.mkdir(mode=0o700)
    pages = _pages(path, 40)
    library = ctypes.CDLL(None)
    _ready()
    while True:
        now_ns = time.monotonic_ns()
        for page in pages:
            page.folder = os.fsencode(folder)
            page.staging.folder_state = FOLDER_KNOWN
            page.staging.absorbed_bytes += 1 << 20
            page.operations_begun += 1
            page.classes[0].last_active_ns = now_ns
        for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208
            with suppress(OSError):
                if Path(f"/proc/{name}/comm").read_text() == "penstock-drain\n":
                    library.ptrace(_PTRACE_SEIZE, int(name), None, None)
        time.sleep(0.05)


def squat(_: Path) -> None:
    """Make the folders of B in shared places, and remove what B puts there."""
    places = [Path(f"{place}{VICTIM}") for place in SHARED_PLACES]
    for place in places:
        place.mkdir()
        place.chmod(0o777)
    _ready()
    while True:
        for place in places:
            for found in place.iterdir():
                with suppress(OSError):
                    found.unlink()
        time.sleep(0.001)


def replay(path: Path) -> None:
    """Send the recorded bytes of a node to the controller without a pause."""
    data = path.parents[1] / "data"
    address = "127.0.0.1", int((data / "port").read_text())
    recorded = (data / "recorded").read_bytes()
    _fork()
    _ready()
    while True:
        with suppress(OSError), socket.socket() as connection:
            connection.settimeout(5.0)
            connection.connect(address)
            connection.sendall(recorded)
            connection.recv(1 << 16)


# --- Attacks on a mount ---------------------------------------------------------------


def look(path: Path) -> None:
    """Look at all files of a mount without a pause, and open as many as possible."""
    names = sorted(os.listdir(path))  # noqa: PTH208
    _fork()
    _ready()
    kept: list[int] = []
    while True:
        for name in names:
            with suppress(OSError):
                os.stat(path / name)  # noqa: PTH116
                if len(kept) < 10_000:
                    kept.append(os.open(path / name, os.O_RDONLY))


def forge(path: Path) -> None:
    """Write without a pause by a program under the name that a rule favours."""
    copy = Path(f"/tmp/penstock-hostile-{os.getpid()}")  # noqa: S108
    copy.mkdir()
    program = Path(shutil.copy("/bin/dd", copy / "dd"))
    words = [
        str(program),
        "if=/dev/zero",
        f"of={path / 'forged'}",
        "bs=64k",
        "count=1000",
    ]
    words += ["conv=notrunc"]
    _ready()
    while True:
        subprocess.run(words, check=False, stderr=subprocess.DEVNULL)


def _fork() -> None:
    """Attack from several processes, which end with the first one."""
    parent = os.getpid()
    for _ in range(_PROCESSES - 1):
        if os.fork() == 0:
            # PR_SET_PDEATHSIG: killed when the parent ends.
            ctypes.CDLL(None).prctl(1, 9)
            if os.getppid() != parent:
                os._exit(0)
            return


_ALL = (attach, connect, scribble, claim, post, trickle, ask, start, link, damage)
ATTACKS: dict[str, Callable[[Path], None]] = {each.__name__: each for each in _ALL}
#: Attacks on a daemon that has more than the usual settings.
FURTHER_ATTACKS = {each.__name__: each for each in (fill, trace, squat, replay)}
MOUNT_ATTACKS = {each.__name__: each for each in (look, forge)}


def main() -> None:
    """Become the user and attack."""
    # The processors are not what is attacked here.
    os.nice(5)
    become(int(sys.argv[1]))
    attacks = ATTACKS | FURTHER_ATTACKS | MOUNT_ATTACKS
    attacks[sys.argv[2]](Path(sys.argv[3]))


if __name__ == "__main__":
    main()
