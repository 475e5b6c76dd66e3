# SPDX-License-Identifier: MIT
"""Run the scenes on the nodes of a MooseFS cluster.

``python -m penstock.bench.slo.cluster.nodes full|quick [TEXT ...]`` runs beside the
cluster (see `penstock.bench.moosefs`). Every client node has a ``penstock mount`` for
each chunk server that it uses, on top of the folder of its MooseFS mount whose files
are there: so the scheduler of a mount counts the requests at one server. The processes
of an application write files of their own: process n on chunk server n modulo the
number of servers. Every scene is simulated when it is over, because simulating takes a
processor that live processes need. Standard output has one line (JSON) per scene, see
`SceneAnswers`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from penstock.bench.moosefs import (
    FOLDER,
    client_mount,
    label_of,
    node_address,
    node_command,
    prioritise_processes,
)
from penstock.bench.slo.clients import ClientPlan, file_of, run_groups
from penstock.bench.slo.cluster.model import (
    MeasuredStorage,
    delays_of,
    simulate_scene,
)
from penstock.bench.slo.cluster.scenes import (
    CAPACITY_SCENE,
    FULL,
    LATENCY_SCENE,
    NODES,
    QUICK,
    SERVERS,
    SETTINGS,
    AppGroup,
    ClusterScene,
    scenes,
)
from penstock.bench.slo.mounts import slo_file
from penstock.bench.slo.windows import AnsweredRequest
from penstock.bench.testbed import TIMEOUT_S, clean_environment, run_mount_command
from penstock.errors import InputError
from penstock.live.wire.curve import make_keys

__all__ = ["SceneAnswers", "main", "slo_text"]

#: Time from the start of the clients to their first request (s).
_READY_S: Final = 2.0
#: Least size of a file that is read: no block is read twice in a scene.
_READ_FILE_BYTES: Final = 4 << 20
#: Number of simulations of a scene.
_SIMULATIONS: Final = 5
#: Starts a command whose session has priority (see `prioritise_processes`).
_PRIORITISED: Final = (
    *("sh", "-c", 'echo -15 2>/dev/null >/proc/self/autogroup; exec "$@"', "sh"),
)
_PORT: Final = 4713
_KEYS: Final = FOLDER / "keys"
#: Time between two looks whether the controller is ready (s).
_POLL_S: Final = 0.1
#: Mounts that are started or ended at once.
_STARTERS: Final = 4
#: Longest time that the controller may take to end (s).
_STOP_S: Final = 10.0
#: The capacity is not known yet, and does not matter: nobody is held back (bytes/s).
_FIRST_CAPACITY: Final = 20e6


class SceneAnswers(msgspec.Struct):
    """The answered requests of a scene."""

    scene: str
    capacity_bytes_per_s: float
    """Measured before the scene; promises are shares of it."""
    live: dict[str, list[AnsweredRequest]]
    """By application; times after the begin of the scene (s)."""
    simulated: list[dict[str, list[AnsweredRequest]]]
    """The same of each simulation; empty if the scene measures the storage."""


def main(words: Sequence[str]) -> None:
    """Run scenes; print their answers. Words: quick or full, texts of `scenes`."""
    scale = QUICK if words[0] == "quick" else FULL
    with _controller():
        _run_scenes(scenes(scale, words[1:]))


def _run_scenes(planned: Iterable[ClusterScene]) -> None:
    """Run scenes one after the other; print their answers."""
    storage = MeasuredStorage(_FIRST_CAPACITY)
    for scene in planned:
        live = _run_scene(scene, storage.capacity_bytes_per_s)
        simulated = []
        if scene.name == CAPACITY_SCENE.name:
            storage = MeasuredStorage(_throughput(scene, live))
        elif scene.name == LATENCY_SCENE.name:
            capacity = storage.capacity_bytes_per_s
            storage = MeasuredStorage(capacity, delays_of(scene, live, capacity))
        else:
            seeds = range(1, _SIMULATIONS + 1)
            simulated = [simulate_scene(scene, storage, seed) for seed in seeds]
        answers = SceneAnswers(
            scene.name, storage.capacity_bytes_per_s, live, simulated
        )
        sys.stdout.buffer.write(msgspec.json.encode(answers) + b"\n")
        sys.stdout.buffer.flush()


def _throughput(
    scene: ClusterScene, answers: Mapping[str, Sequence[AnsweredRequest]]
) -> float:
    """Return what was served in the measured time of the first scene (bytes/s)."""
    (group, *_) = scene.groups
    (times,) = answers.values()
    count = sum(scene.warm_s <= a.answered < scene.end_s for a in times)
    if not count:
        raise InputError("the cluster answered no request")
    return count * group.size_bytes / (scene.end_s - scene.warm_s)


def _run_scene(
    scene: ClusterScene, capacity: float
) -> dict[str, list[AnsweredRequest]]:
    """Mount, run all groups of processes, unmount; return the answers."""
    for application in scene.promises:
        _make_folders(application)
    for group in scene.groups:
        _make_files(group)
    with _mounted(scene, capacity) as points:
        prioritise_processes()
        begin = time.monotonic() + _READY_S
        plans = {
            f"{group.application} {group.node}": _plan(
                group, points[group.node], begin, scene.end_s, capacity
            )
            for group in scene.groups
        }
        starters = {
            f"{group.application} {group.node}": node_command(group.node, _PRIORITISED)
            for group in scene.groups
        }
        by_group = run_groups(plans, starters)
    answers: dict[str, list[AnsweredRequest]] = {name: [] for name in scene.promises}
    for name, times in by_group.items():
        answers[name.split()[0]] += times
    return answers


def _plan(
    group: AppGroup, root: Path, begin: float, end_s: float, capacity: float
) -> ClientPlan:
    """Return the requests of a group, whose files are below `root`."""
    folders = [
        str(root / label_of(server) / group.application)
        for server in range(1, SERVERS + 1)
    ]
    span = _READ_FILE_BYTES if group.kind == "read" else group.size_bytes
    return ClientPlan(
        *(tuple(folders), group.kind, group.size_bytes, group.processes),
        *(begin, begin + end_s),
        tuple((time_s, share * capacity) for time_s, share in group.rates),
        span=span,
        first=group.first,
    )


# --- Files ----------------------------------------------------------------------------


def _make_folders(application: str) -> None:
    """Make a folder per chunk server for the files of an application."""
    for server in range(1, SERVERS + 1):
        folder = client_mount() / label_of(server) / application
        folder.mkdir(exist_ok=True)


def _make_files(group: AppGroup) -> None:
    """Write the files of a group, so that a scene does not begin with new ones.

    Another node than that of the reader writes, and the reader's node forgets what it
    has read: its kernel must ask the servers.
    """
    plan = _plan(group, client_mount(NODES), 0.0, 0.0, 1.0)
    own = _plan(group, client_mount(group.node), 0.0, 0.0, 1.0)
    for number in range(group.processes):
        path = file_of(plan, number)
        if not path.exists():
            path.write_bytes(bytes(plan.span))
        if group.kind == "read":
            with file_of(own, number).open("rb") as stream:
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# --- Mounts ---------------------------------------------------------------------------


@contextmanager
def _mounted(scene: ClusterScene, capacity: float) -> Iterator[dict[int, Path]]:
    """Run all mounts of a scene; yield the folder of the mount points by node."""
    with ThreadPoolExecutor(_STARTERS) as pool:
        try:
            starts = [(scene, capacity, *mount) for mount in scene.mounts]
            list(pool.map(_mount, *zip(*starts, strict=True)))
            yield {node: _points_of(node) for node in scene.nodes}
        finally:
            list(pool.map(_unmount, *zip(*scene.mounts, strict=True)))


def _mount(scene: ClusterScene, capacity: float, node: int, server: int) -> None:
    """Mount the folder of a chunk server on a client node."""
    label = label_of(server)
    point = _points_of(node) / label
    point.mkdir(parents=True, exist_ok=True)
    rules = point.with_suffix(".toml")
    rules.write_text(slo_text(scene, capacity, server))
    options = (f"--slo={rules}", "--background")
    _run_on(node, *options, str(client_mount(node) / label), str(point))


def _unmount(node: int, server: int) -> None:
    point = _points_of(node) / label_of(server)
    if point.is_mount():
        _run_on(node, "--unmount", "--force", str(point))


def _points_of(node: int) -> Path:
    """Return the folder of the mount points of a client node."""
    return FOLDER / f"client{node}" / "scheduled"


def _run_on(node: int, *words: str) -> None:
    """Run ``penstock mount`` on a client node."""
    folder = FOLDER / f"client{node}"
    run_mount_command(folder, *words, before=node_command(node, ()))


@contextmanager
def _controller() -> Iterator[None]:
    """Run the controller of all mounts on the first client node."""
    folder = FOLDER / "controller"
    make_keys(str(_KEYS))
    options = [f"--listen=tcp://{node_address(1)}:{_PORT}", f"--keys={_KEYS}"]
    command = [sys.executable, "-m", "penstock", "serve", f"--folder={folder}"]
    daemon = subprocess.Popen(  # noqa: S603 - our own program
        node_command(1, [*command, "--mode=off", *options]),
        env=clean_environment(),
        stdout=sys.stderr,
    )
    try:
        _wait_for(folder / "agent.sock", daemon)
        yield
    finally:
        _stop(daemon)


def _stop(daemon: subprocess.Popen[bytes]) -> None:
    """End a daemon; kill it if it does not end by itself."""
    daemon.terminate()
    try:
        daemon.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait(TIMEOUT_S)


def _wait_for(path: Path, daemon: subprocess.Popen[bytes]) -> None:
    """Wait until a daemon has created a file."""
    end_s = time.monotonic() + TIMEOUT_S
    while not path.exists():
        if daemon.poll() is not None or time.monotonic() > end_s:
            raise InputError("the controller of the mounts does not start")
        time.sleep(_POLL_S)


def slo_text(scene: ClusterScene, capacity: float, server: int) -> str:
    """Return the file of ``--slo`` for the mounts of a chunk server, at all nodes."""
    setting = SETTINGS[scene.setting]
    slos = {
        name: (promise.share * capacity, promise.latency_s)
        for name, promise in scene.promises.items()
    }
    text = slo_file(setting.scheduler, slos)
    if not setting.exchange:
        return text
    return text + (
        f'[exchange]\ncontroller = "tcp://{node_address(1)}:{_PORT}"\n'
        f'keys = "{_KEYS}"\nstorage = "{label_of(server)}"\n'
    )


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as failure:
        sys.exit(str(failure))
