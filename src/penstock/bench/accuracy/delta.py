# SPDX-License-Identifier: MIT
"""Delta-graphs of real processes, compared with simulated ones.

A delta-graph shows the interference factors of two groups against the offset D of their
start times (burst-buffer coordination). Each group writes N requests of S bytes with a
pause d between them to a ``penstock mount`` with a limit: first without control, then
under each strategy of ``penstock serve --strategy``. Journals are in memory. For the
strategies 3a and 3b there are two mounts with half the limit each, and the driver
``directories`` moves the folders of the groups between them.

With `BenchSettings.storage` the groups write to that folder instead. S is then scaled
with the bandwidth of the folder, so that a request takes as long as on the mount. There
is one target, and the measurements have no goals.

With `BenchSettings.cluster` the groups write to a MooseFS of this machine
(`penstock.bench.partition.delta`).
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Final

from penstock.bench import BenchSettings, Measurement
from penstock.bench.accuracy.delta_report import Graph, as_ordered, save
from penstock.bench.testbed import (
    TIMEOUT_S,
    clean_environment,
    limited_mount,
    running_daemon,
    temporary_folder,
)
from penstock.errors import InputError, UnknownNameError
from penstock.live.daemon.measure import write_bandwidth
from penstock.live.ending import end_process
from penstock.live.staging.rules import Staging
from penstock.native.files import program_path, shim_path
from penstock.sim.buffers.delta import DeltaPoint, WriterPair, delta_graph
from penstock.sim.buffers.model import Storage

__all__ = ["measure"]

#: Limit of all storage targets together (bytes/s).
_RATE: Final = 40e6
#: N, S (bytes) and d (s); the parts of a request are written at the same time. Alone, a
#: group writes for 2 s and pauses for 1.5 s. A staged group can reach the factor 1.6
#: only if the pauses take at least two thirds of the writing time. Requests are long,
#: because after a pause the mount lets 20 ms of its limit pass at once.
_REQUESTS: Final = 4
_SIZE: Final = 20_000_000
_DELAY_S: Final = 0.5
_PARTS: Final = 2
#: Size of a write call: small, because the threads of a group share one grant.
_CALL_BYTES: Final = 1 << 20
_OFFSETS_S: Final = (0.0, 0.75, 1.75, 4.0)
_UNCONTROLLED: Final = "none"
_STAGING: Final = ("1a", "1b", "2a", "2b", "controlled")
_PARTITION: Final = ("3a", "3b")
_TARGETS: Final = 2
#: Time from the start of the processes to the first request.
_START_S: Final = 3.0
_POLL_S: Final = 0.005
_ROUNDS_PER_RUN: Final = 15
_GROUPS: Final = ("A", "B")


@dataclass(frozen=True)
class _Group:
    """One group of processes: its files, and how it is started."""

    name: str
    paths: tuple[str, ...]
    """One file per part, or one per part and request."""
    prefix: tuple[str, ...] = ()
    """Command before the program, e.g. ``penstock run --``."""
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _StartedGroup:
    """A running group."""

    group: _Group
    process: subprocess.Popen[str]

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None


@dataclass(frozen=True)
class _DeltaStorage:
    """The storage that the groups write to."""

    root: Path
    program: Path
    shared: Path
    """Folder with the whole bandwidth."""
    rate: float = _RATE
    """Bandwidth (bytes/s)."""
    targets: Path | None = None
    """Folder with a link to each target; None: there is only one target."""

    @property
    def size_bytes(self) -> int:
        """S, scaled so that a request takes the same time on every storage."""
        return round(_SIZE * self.rate / _RATE)


def measure(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield the factors at D = 0 and their difference from simulated ones."""
    if settings.cluster:
        # Imported here, because it imports drawings from this package.
        cluster = importlib.import_module("penstock.bench.partition.delta")
        yield from cluster.measure(settings)
        return
    strategies = _chosen_strategies(settings)
    with temporary_folder(settings.folder) as root, ExitStack() as stack:
        storage = _prepare_storage(root, settings, stack)
        graphs: dict[str, Graph] = {}
        for strategy in strategies:
            runs = max(settings.rounds // _ROUNDS_PER_RUN, 1)
            graphs[strategy] = (
                _live_graph(storage, strategy, runs),
                _simulated_graph(storage, strategy),
            )
            for measurement in _measurements(storage, strategy, graphs):
                has_goal = storage.targets is not None
                yield measurement if has_goal else replace(measurement, most=inf)
    if settings.output:
        facts: dict[str, Any] = {
            "rate": storage.rate,
            "size": storage.size_bytes,
            "requests": _REQUESTS,
            "delay_s": _DELAY_S,
            "provenance": settings.provenance,
        }
        save(settings.output, graphs, facts)


def _chosen_strategies(settings: BenchSettings) -> list[str]:
    """Return the strategies; "none" comes first, since others are compared with it."""
    known = [_UNCONTROLLED, *_STAGING]
    if settings.storage is None:
        known += _PARTITION
    for name in settings.policies:
        if name in _PARTITION and name not in known:
            raise InputError(
                f"strategy {name} partitions targets, and --storage is one target",
                remedy="leave out --storage, or this strategy",
            )
        if name not in known:
            raise UnknownNameError("strategy to be measured", name, known)
    return list(dict.fromkeys((_UNCONTROLLED, *(settings.policies or known))))


def _prepare_storage(
    root: Path, settings: BenchSettings, stack: ExitStack
) -> _DeltaStorage:
    """Find the program; mount the targets unless a folder is named."""
    shim_path()
    program = program_path("microbenchmark")
    if settings.storage is None:
        return _mount_targets(root, program, stack)
    folder = stack.enter_context(temporary_folder(settings.storage))
    rate = settings.bandwidth_bytes_per_s or write_bandwidth(folder)
    return _DeltaStorage(root, program, folder, rate)


def _mount_targets(root: Path, program: Path, stack: ExitStack) -> _DeltaStorage:
    """Mount one folder with the whole limit, and the targets with equal parts of it."""
    (root / "targets").mkdir()
    shared = root / "shared"
    shared.mkdir()
    mount = stack.enter_context(limited_mount(shared, _RATE))
    for number in range(_TARGETS):
        folder = root / f"target{number}"
        folder.mkdir()
        target = stack.enter_context(limited_mount(folder, _RATE / _TARGETS))
        (root / "targets" / str(number)).symlink_to(target.point)
    return _DeltaStorage(root, program, mount.point, targets=root / "targets")


# --- Delta-graphs ---------------------------------------------------------------------


def _live_graph(storage: _DeltaStorage, strategy: str, runs: int) -> list[DeltaPoint]:
    """Return the live delta-graph of a strategy; each point is its fastest run."""
    plain = _GroupRun(storage, [_group_on_mount(storage, name) for name in _GROUPS])
    alone = min(_io_time(plain((0.0,))[0]) for _ in range(runs))
    points = []
    with _group_run(storage, strategy) as run:
        for offset in _OFFSETS_S:
            results = [run((0.0, offset)) for _ in range(runs)]
            tried = (_point(spans, offset, alone) for spans in results)
            points.append(min(tried, key=lambda point: point.total_s))
    return points


@contextmanager
def _group_run(storage: _DeltaStorage, strategy: str) -> Iterator[_GroupRun]:
    """Prepare runs under a strategy, with a daemon and ``penstock run``."""
    if strategy == _UNCONTROLLED:
        yield _GroupRun(storage, [_group_on_mount(storage, name) for name in _GROUPS])
        return
    with tempfile.TemporaryDirectory(dir=storage.root, prefix="s") as name:
        folder = Path(name) / "run"
        journals = Staging(Path(name) / "journals", always=False)
        journals.prepare()
        with running_daemon(
            folder, strategy=strategy, **_settings(storage, strategy)
        ) as daemon:
            daemon.await_ready()
            command = [sys.executable, "-m", "penstock", "run", f"--folder={folder}"]
            group_on = _group_on_targets if strategy in _PARTITION else _group_on_mount
            groups = [
                replace(
                    group_on(storage, name),
                    prefix=(*command, f"--job={name}", "--"),
                    environment=tuple(journals.environment().items()),
                )
                for name in _GROUPS
            ]
            with _keep_jobs(groups):
                yield _GroupRun(storage, groups)


@contextmanager
def _keep_jobs(groups: Sequence[_Group]) -> Iterator[None]:
    """Run an idle process in each job: a static partition lasts as long as its job."""
    idle = [
        subprocess.Popen(  # noqa: S603 - our own program
            [*group.prefix, "sleep", "3600"], env=clean_environment()
        )
        for group in groups
    ]
    try:
        yield
    finally:
        for process in idle:
            process.kill()
            process.wait(TIMEOUT_S)


def _settings(storage: _DeltaStorage, strategy: str) -> dict[str, object]:
    # A little more than the limit, so that the mount and not the pacing limits.
    settings: dict[str, object] = {
        "bandwidth": f"{1.05 * storage.rate} B/s",
        "gap": "10 ms",
    }
    if strategy in _PARTITION and storage.targets:
        mounts = [str((storage.targets / str(t)).resolve()) for t in range(_TARGETS)]
        names = ",".join(map(str, range(_TARGETS)))
        return settings | {
            "prefixes": ":".join(mounts),
            "targets": f"directories:{storage.targets}:{names}",
            "job_folder": storage.root / "{job}",
        }
    return settings | {"prefixes": storage.shared}


def _group_on_mount(storage: _DeltaStorage, name: str) -> _Group:
    """Return a group with one file per part."""
    return _Group(
        name, tuple(str(storage.shared / f"{name}{i}") for i in range(_PARTS))
    )


def _group_on_targets(storage: _DeltaStorage, name: str) -> _Group:
    """Return a group with one file per part and request."""
    folder = storage.root / name
    return _Group(
        name,
        tuple(
            str(folder / str(part % _TARGETS) / f"{name}{part}-{i}")
            for i in range(_REQUESTS)
            for part in range(_PARTS)
        ),
    )


def _point(
    spans: Sequence[tuple[float, float]], offset: float, alone: float
) -> DeltaPoint:
    first, second = map(_io_time, spans)
    total = max(end for _, end in spans) - min(begin for begin, _ in spans)
    return DeltaPoint(
        offset, (first / alone, second / alone), (first, second), alone, total
    )


def _io_time(span: tuple[float, float]) -> float:
    return span[1] - span[0]


def _simulated_graph(storage: _DeltaStorage, strategy: str) -> list[DeltaPoint]:
    """Return the simulated delta-graph of a strategy."""
    is_parted = strategy in _PARTITION
    facts = (_REQUESTS, storage.size_bytes, _DELAY_S, _OFFSETS_S)
    pair = WriterPair(*facts, file_per_request=is_parted)
    targets = _TARGETS if is_parted else 1
    return delta_graph(Storage(storage.rate, targets), pair, strategy)


def _measurements(
    storage: _DeltaStorage, strategy: str, graphs: Mapping[str, Graph]
) -> Iterator[Measurement]:
    live, simulated = graphs[strategy]
    parts = {}
    errors = []
    for real, ideal in zip(live, simulated, strict=True):
        pairs = zip(as_ordered(real, ideal), ideal.factors, strict=True)
        for name, (factor, ideal_factor) in zip(_GROUPS, pairs, strict=True):
            parts[f"D={real.offset_s:g}s:{name}"] = factor
            parts[f"D={real.offset_s:g}s:{name}:simulated"] = ideal_factor
            errors.append(abs(factor / ideal_factor - 1.0))
    # Without control, tiny differences decide whether the pauses of both coincide.
    most = inf if strategy == _UNCONTROLLED else 0.10
    name = f"{strategy}: largest difference, live and simulated factors"
    yield Measurement(name, max(errors), "", most=most, parts=parts)
    first = live[0]
    if strategy in _STAGING:
        favoured, staged = sorted(first.factors)
        # Under 1b and 2b the blocked group drains beside the favoured one.
        goal = inf if strategy.endswith("b") else 1.05
        yield Measurement(
            f"{strategy}: factor of the favoured, D = 0", favoured, "", most=goal
        )
        yield Measurement(
            f"{strategy}: factor of the staged, D = 0", staged, "", most=1.6
        )
        slower = first.total_s / graphs[_UNCONTROLLED][0][0].total_s
        yield Measurement(
            f"{strategy}: total time / total time without control", slower, "", most=1.0
        )
    if strategy in _PARTITION:
        own_s = _REQUESTS * storage.size_bytes * _TARGETS / storage.rate
        own_s += (_REQUESTS - 1) * _DELAY_S
        slowest = max(first.io_times_s) / own_s
        yield Measurement(
            f"{strategy}: I/O time / I/O time alone on the partition",
            slowest,
            "",
            most=1.1,
        )


# --- Runs -----------------------------------------------------------------------------


class _GroupRun:
    """Runs groups that start at given offsets."""

    def __init__(self, storage: _DeltaStorage, groups: Sequence[_Group]) -> None:
        self._storage = storage
        self._groups = groups

    def __call__(self, offsets: Sequence[float]) -> list[tuple[float, float]]:
        """Run the groups; return begin and end of the I/O of each (s)."""
        zero = time.monotonic() + _START_S
        started = [
            _StartedGroup(group, self._start(group, zero + offset))
            for group, offset in zip(self._groups, offsets, strict=False)
        ]
        try:
            self._wait(started)
            return [_io_span(group) for group in started]
        finally:
            for group in started:
                end_process(group.process)

    def _wait(self, started: Sequence[_StartedGroup]) -> None:
        """Wait until all groups have ended."""
        deadline = time.monotonic() + TIMEOUT_S
        while any(group.is_running for group in started):
            if time.monotonic() > deadline:
                raise InputError(
                    f"the groups have not ended after {TIMEOUT_S:g} s",
                    remedy="use a faster --folder or --storage",
                )
            time.sleep(_POLL_S)

    def _start(self, group: _Group, start_s: float) -> subprocess.Popen[str]:
        pause_ns = round(_DELAY_S * 1e9)
        facts = (
            round(start_s * 1e9),
            _REQUESTS,
            self._storage.size_bytes,
            _CALL_BYTES,
            pause_ns,
            _PARTS,
        )
        program = [str(self._storage.program), *map(str, facts)]
        return subprocess.Popen(  # noqa: S603 - our own program
            [*group.prefix, *program, *group.paths],
            env=clean_environment() | dict(group.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def _io_span(started: _StartedGroup) -> tuple[float, float]:
    """Return when a group opened its first file and closed its last one (s)."""
    output, errors = started.process.communicate(timeout=TIMEOUT_S)
    if started.process.returncode != 0:
        reason = errors.strip().rpartition("\n")[2] or "it could not write"
        raise InputError(f"group {started.group.name} failed: {reason}")
    begin, end = map(int, output.split())
    return begin * 1e-9, end * 1e-9
