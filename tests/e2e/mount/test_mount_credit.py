# SPDX-License-Identifier: MIT
"""Mounts that share storages through a controller: real processes, real keys.

The tests count bytes, not speeds, so that they also pass on a slow machine.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.live.wire.curve import make_keys
from penstock.mount.control import SchedulerStatus, all_statuses
from support.daemons import Daemon
from support.mounts import Mounted, penstock
from support.waiting import until

MB = 1_000_000
SLO_FILE = """
scheduler = "{scheduler}"
[applications.a]
throughput = "{promise}"
latency = "1 s"
[applications.b]
throughput = "1 MB/s"
latency = "1 s"
[[rules]]
application = "a"
path = "a"
[[rules]]
application = "b"
path = "b"
[exchange]
controller = "{controller}"
keys = "{keys}"
storage = "{storage}"
"""
#: Writes blocks to a file until it is stopped.
WRITER = """
import os, sys
descriptor = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
while True:
    for number in range(16):
        os.pwrite(descriptor, bytes(65536), 65536 * number)
"""


class Cluster:
    """A controller, and mounts that are linked to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys = folder / "keys"
        make_keys(str(self.keys))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        home = folder / "controller"
        self.daemon = Daemon(home, listen=self.address, keys=str(self.keys), mode="off")
        self.daemon.start()
        self._mounts: list[Mounted] = []

    def mount(
        self,
        *options: str,
        backing: Path | None = None,
        storage: str | None = None,
        scheduler: str = "two-level",
        promise: str = "3 MB/s",
        keys: Path | None = None,
    ) -> Mounted:
        """Mount a folder; with a storage, linked to the controller."""
        mounted = Mounted(self.folder / f"m{len(self._mounts)}")
        self._mounts.append(mounted)
        mounted.backing = backing or mounted.backing
        if storage is not None:
            rules = mounted.home / "slo.toml"
            text = SLO_FILE.format(
                scheduler=scheduler,
                promise=promise,
                controller=self.address,
                keys=keys or self.keys,
                storage=storage,
            )
            rules.write_text(text)
            options = (*options, "--slo", str(rules))
        for name in "ab":
            (mounted.backing / name).mkdir(exist_ok=True)
        return mounted.start(*options)

    def close(self) -> None:
        # A mount before the mount that it uses.
        for mounted in reversed(self._mounts):
            mounted.end()
        self.daemon.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        yield made
    finally:
        made.close()


def scheduling(mounted: Mounted) -> SchedulerStatus:
    (status,) = all_statuses(mounted.home / "run" / "mounts")
    assert status.scheduling is not None
    return status.scheduling


def moved(mounted: Mounted, application: str) -> int:
    applications = scheduling(mounted).applications
    return {line.name: line.moved_bytes for line in applications}[application]


def log_of(mounted: Mounted) -> str:
    return (mounted.home / "run" / "mounts" / "mounts.log").read_text()


@contextmanager
def writers(folder: Path, count: int) -> Iterator[None]:
    """Run processes that write to a folder."""
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder / str(number))],
            stderr=subprocess.DEVNULL,
        )
        for number in range(count)
    ]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
        for program in programs:
            program.wait(120)


def until_grown(total: Callable[[], int], by_bytes: int) -> None:
    """Wait until a total has grown."""
    before = total()
    until(lambda: total() > before + by_bytes)


def ratio_of_the_next(volume: int, first: Mounted, second: Mounted) -> float:
    """Return how many bytes a moves for each one of b while both move `volume`."""
    before = moved(first, "a"), moved(second, "b")
    until_grown(lambda: moved(first, "a") + moved(second, "b"), volume)
    after = moved(first, "a"), moved(second, "b")
    a, b = (y - x for x, y in zip(before, after, strict=True))
    return a / max(b, 1)


def test_applications_of_two_nodes_share_one_storage_as_agreed(
    cluster: Cluster,
) -> None:
    """3 : 1, 4 against 16 writers, one application per mount.

    Without credit the storage would serve them by their numbers, 1 : 4.
    """
    storage = cluster.mount("--limit", "8 MB/s")
    first = cluster.mount(backing=storage.point, storage="s")
    second = cluster.mount(backing=storage.point, storage="s")
    with writers(first.point / "a", 4), writers(second.point / "b", 16):
        until(lambda: scheduling(first).credit == f"from {cluster.address}")
        until(lambda: moved(first, "a") and moved(second, "b"))
        # A lease that ends while a busy machine runs nobody costs some fairness.
        until(lambda: 1.5 < ratio_of_the_next(24 * MB, first, second) < 6)
        # Without the controller both mounts go on.
        cluster.daemon.kill()
        until_grown(lambda: moved(first, "a"), MB)
        until_grown(lambda: moved(second, "b"), MB)
        until(lambda: "does not answer" in scheduling(first).credit)
        # If one mount dies, the other one goes on.
        os.kill(first.pid, signal.SIGKILL)
        until_grown(lambda: moved(second, "b"), MB)


def test_an_application_gets_one_share_of_two_storages(cluster: Cluster) -> None:
    """The share of an application counts its service at both mounts (DSFQ)."""
    options = {"scheduler": "sfq:depth=1", "promise": "1 MB/s"}
    first = cluster.mount("--limit", "4 MB/s", storage="s", **options)  # type: ignore[arg-type]
    second = cluster.mount("--limit", "4 MB/s", storage="t", **options)  # type: ignore[arg-type]
    # Application a writes to both, b only to the second.
    with (
        writers(first.point / "a", 4),
        writers(second.point / "a", 4),
        writers(second.point / "b", 4),
    ):
        until(lambda: moved(second, "a") and moved(second, "b"))
        until(lambda: scheduling(second).credit == f"from {cluster.address}")
        before = {name: moved(second, name) for name in "ab"}
        until_grown(lambda: moved(second, "b"), 6 * MB)
        a, b = (moved(second, name) - before[name] for name in "ab")
    # Without reports the second mount would give each application half.
    assert a < 0.35 * (a + b)


def test_a_mount_with_wrong_keys_says_so_once_and_serves(
    cluster: Cluster, tmp_path: Path
) -> None:
    make_keys(str(tmp_path / "other"))
    mounted = cluster.mount(storage="s", keys=tmp_path / "other")
    until(lambda: "refuses the keys" in scheduling(mounted).credit)
    (mounted.point / "a" / "file").write_bytes(bytes(100_000))
    assert moved(mounted, "a") == 100_000
    assert log_of(mounted).count("refuses the keys") == 1


def test_contradicting_promises_are_reported_once_and_mounts_go_on(
    cluster: Cluster,
) -> None:
    # Two agree, so that the promise stays the same if a slow machine silences one.
    first, other = cluster.mount(storage="s"), cluster.mount(storage="s")
    agreeing = (first, other)
    until(lambda: all(scheduling(m).credit.startswith("from") for m in agreeing))
    second = cluster.mount(storage="s", promise="2 MB/s")
    message = "a is promised 2 MB/s here and 3 MB/s at other mounts of s"
    until(lambda: message in log_of(second))
    for mounted in (first, second):
        (mounted.point / "a" / "file").write_bytes(bytes(100_000))
        assert moved(mounted, "a") == 100_000
    promised = {
        x.name: x.throughput_bytes_per_s for x in scheduling(second).applications
    }
    assert promised["a"] == 2e6
    # A change ends the contradiction.
    done = penstock(
        "ctl", "slo", str(second.point), *("a", "3 MB/s", "1 s"), home=second.home
    )
    assert done.returncode == 0, done.stderr
    assert log_of(second).count(message) == 1
    assert message not in log_of(first)
