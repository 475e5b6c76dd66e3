# SPDX-License-Identifier: MIT
"""Delta-graphs of real processes: interference factors against the offset D (papers/4).

Two groups write N requests of S bytes with a pause d between them, the second one from
D on, to ``penstock mount`` with a limit: uncontrolled, then under each
strategy, in ``penstock serve --strategy``. Journals are in memory; for 3a and 3b there
are two mounts of half the limit, and the groups' folders are moved by the driver of
plain directories: new files follow. The same is simulated, and both are compared.

With `Setting.storage` they write to a folder as it is. A request then takes as long as
on the mount, by the folder's bandwidth; there is one target, and no goal.
"""

from __future__ import annotations

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

from penstock.bench import Figure, Setting
from penstock.bench.delta_report import Graph, as_ordered, save
from penstock.bench.stage import (
    LIMIT_S,
    compiled,
    free_environment,
    mounted,
    serving,
    workspace,
)
from penstock.errors import InputError, UnknownNameError
from penstock.live.daemon.measure import measure_bandwidth
from penstock.live.staging.rules import Staging
from penstock.native.build import shim_path
from penstock.sim.buffers_delta import DeltaPoint, delta_graph
from penstock.sim.buffers_model import Buffer

__all__ = ["measure"]

#: Limit of all storage targets together (bytes/s).
_RATE: Final = 40e6
#: N, S (bytes) and d (s); a request is written in parts at the same time. A group alone
#: takes 2 s to write and pauses for 1.5 s: what is staged can be 1.6 times as slow at
#: best if the pauses take at least two thirds of the time that writing takes. Requests
#: are long, for after a pause the mount lets 20 ms pass at once.
_REQUESTS: Final = 4
_SIZE: Final = 20_000_000
_DELAY_S: Final = 0.5
_PARTS: Final = 2
_OFFSETS_S: Final = (0.0, 0.75, 1.75, 4.0)
_UNCONTROLLED: Final = "none"
_STAGING: Final = ("1a", "1b", "2a", "2b", "controlled")
_PARTITION: Final = ("3a", "3b")
_TARGETS: Final = 2
#: From the start of the processes to the first request (s): interpreters start.
_START_S: Final = 3.0
_LOOK_S: Final = 0.005
_ROUNDS_PER_TRY: Final = 15
_GROUPS: Final = ("A", "B")


@dataclass(frozen=True)
class _Group:
    """One application: where it writes, and how it is started."""

    name: str
    paths: tuple[str, ...]
    """A file for each part, or for each part of each request."""
    prefix: tuple[str, ...] = ()
    """Words before the program."""
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Started:
    """A group that has been started, to write from `at` on (s)."""

    group: _Group
    at: float
    process: subprocess.Popen[str]

    @property
    def goes_on(self) -> bool:
        return self.process.poll() is None


@dataclass(frozen=True)
class _DeltaStorage:
    """What the processes write to."""

    root: Path
    program: Path
    shared: Path
    """A folder with all the bandwidth."""
    rate: float = _RATE
    """Its bandwidth (bytes/s)."""
    targets: Path | None = None
    """A folder with a link to each of the mounts that divide it, if there are any."""

    @property
    def size(self) -> int:
        """S: what a request writes (bytes), in the same time everywhere."""
        return round(_SIZE * self.rate / _RATE)


def measure(setting: Setting) -> Iterator[Figure]:
    """Yield factors at D = 0, and how far simulated ones are from them."""
    strategies = _chosen(setting)
    with workspace(setting.folder) as root, ExitStack() as stack:
        site = _found(root, setting, stack) or _built(root, stack)
        graphs: dict[str, Graph] = {}
        for strategy in strategies:
            tries = max(setting.rounds // _ROUNDS_PER_TRY, 1)
            graphs[strategy] = _graph(site, strategy, tries), _simulated(site, strategy)
            for figure in _figures(site, strategy, graphs):
                yield figure if site.targets else replace(figure, most=inf)
    if setting.output:
        facts: dict[str, Any] = {"rate": site.rate, "size": site.size}
        facts |= {"requests": _REQUESTS}
        facts |= {"delay_s": _DELAY_S, "provenance": setting.provenance}
        save(setting.output, graphs, facts)


def _chosen(setting: Setting) -> list[str]:
    """Return what is measured: without control first, the others are compared to it."""
    known = [_UNCONTROLLED, *_STAGING]
    if setting.storage is None:
        known += _PARTITION
    for name in setting.policies:
        if name in _PARTITION and name not in known:
            raise InputError(f"{name} divides targets, and this folder is one")
        if name not in known:
            raise UnknownNameError("strategy to be measured", name, known)
    return list(dict.fromkeys((_UNCONTROLLED, *(setting.policies or known))))


def _found(root: Path, setting: Setting, stack: ExitStack) -> _DeltaStorage | None:
    """Compile the program, and take the storage as it is, if one is named."""
    if setting.storage is None:
        return None
    shim_path()
    program = compiled("microbenchmark", root)
    storage = stack.enter_context(workspace(setting.storage))
    return _DeltaStorage(
        root, program, storage, setting.bandwidth or measure_bandwidth(storage)
    )


def _built(root: Path, stack: ExitStack) -> _DeltaStorage:
    """Compile the program and mount the targets."""
    shim_path()
    program = compiled("microbenchmark", root)
    (root / "targets").mkdir()
    shared = root / "shared"
    shared.mkdir()
    mount = stack.enter_context(mounted(shared, _RATE))
    for number in range(_TARGETS):
        place = root / f"target{number}"
        place.mkdir()
        part = stack.enter_context(mounted(place, _RATE / _TARGETS))
        (root / "targets" / str(number)).symlink_to(part.point)
    return _DeltaStorage(root, program, mount.point, targets=root / "targets")


# --- Delta-graphs ---------------------------------------------------------------------


def _graph(site: _DeltaStorage, strategy: str, rounds: int) -> list[DeltaPoint]:
    """Return the live delta-graph of a strategy; of several rounds, the fastest."""
    plain = _GroupRun(site, [_on_mount(site, name) for name in _GROUPS])
    alone = min(_io_time(plain((0.0,))[0]) for _ in range(rounds))
    points = []
    with _runs(site, strategy) as run:
        for offset in _OFFSETS_S:
            tries = [run((0.0, offset)) for _ in range(rounds)]
            points.append(min((_point(t, offset, alone) for t in tries), key=_total))
    return points


@contextmanager
def _runs(site: _DeltaStorage, strategy: str) -> Iterator[_GroupRun]:
    """Prepare runs under a strategy: jobs, started as a user would start them."""
    if strategy == _UNCONTROLLED:
        yield _GroupRun(site, [_on_mount(site, name) for name in _GROUPS])
        return
    with tempfile.TemporaryDirectory(dir=site.root, prefix="s") as made:
        folder = Path(made) / "run"
        journals = Staging(Path(made) / "journals", always=False)
        journals.prepare()
        with serving(folder, strategy=strategy, **_settings(site, strategy)) as daemon:
            daemon.await_ready()
            run = [sys.executable, "-m", "penstock", "run", f"--folder={folder}"]
            where = _on_targets if strategy in _PARTITION else _on_mount
            groups = [
                replace(
                    where(site, name),
                    prefix=(*run, f"--job={name}", "--"),
                    environment=tuple(journals.environment().items()),
                )
                for name in _GROUPS
            ]
            with _staying(groups):
                yield _GroupRun(site, groups)


@contextmanager
def _staying(groups: Sequence[_Group]) -> Iterator[None]:
    """Keep the jobs from leaving: a static partition holds as long as they stay."""
    idle = [
        subprocess.Popen(  # noqa: S603 - ourselves
            [*group.prefix, "sleep", "3600"], env=free_environment()
        )
        for group in groups
    ]
    try:
        yield
    finally:
        for process in idle:
            process.kill()
            process.wait(LIMIT_S)


def _settings(site: _DeltaStorage, strategy: str) -> dict[str, object]:
    # A little more than there is: the controller shares, and the mount is the limit.
    settings: dict[str, object] = {
        "bandwidth": f"{1.05 * site.rate} B/s",
        "gap": "10 ms",
    }
    if strategy in _PARTITION and site.targets:
        mounts = [str((site.targets / str(t)).resolve()) for t in range(_TARGETS)]
        names = ",".join(map(str, range(_TARGETS)))
        return settings | {
            "prefixes": ":".join(mounts),
            "targets": f"directories:{site.targets}:{names}",
            "job_folder": site.root / "{job}",
        }
    return settings | {"prefixes": site.shared}


def _on_mount(site: _DeltaStorage, name: str) -> _Group:
    """Return a group that writes a file for each part."""
    return _Group(name, tuple(str(site.shared / f"{name}{i}") for i in range(_PARTS)))


def _on_targets(site: _DeltaStorage, name: str) -> _Group:
    """Return a group that writes every part of every request to a new file."""
    folder = site.root / name
    return _Group(
        name,
        tuple(
            str(folder / str(part % _TARGETS) / f"{name}{part}-{i}")
            for i in range(_REQUESTS)
            for part in range(_PARTS)
        ),
    )


def _total(point: DeltaPoint) -> float:
    return point.total


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


def _simulated(site: _DeltaStorage, strategy: str) -> list[DeltaPoint]:
    """Return the same, simulated."""
    return delta_graph(
        site.rate,
        _REQUESTS,
        site.size,
        _DELAY_S,
        _OFFSETS_S,
        strategy,
        buffer=Buffer(speed=1000 * site.rate),
        targets=_TARGETS if strategy in _PARTITION else 1,
    )


def _figures(
    site: _DeltaStorage, strategy: str, graphs: Mapping[str, Graph]
) -> Iterator[Figure]:
    live, simulated = graphs[strategy]
    parts = {}
    errors = []
    for real, ideal in zip(live, simulated, strict=True):
        pairs = zip(as_ordered(real, ideal), ideal.factors, strict=True)
        for name, (ours, theirs) in zip(_GROUPS, pairs, strict=True):
            parts[f"D={real.offset:g}s:{name}"] = ours
            parts[f"D={real.offset:g}s:{name}:simulated"] = theirs
            errors.append(abs(ours / theirs - 1.0))
    # Uncontrolled, two writers with pauses fall into step or out of it; a hair decides.
    most = inf if strategy == _UNCONTROLLED else 0.10
    name = f"{strategy}: live against simulated factors"
    yield Figure(name, max(errors), "", most=most, parts=parts)
    first = live[0]
    if strategy in _STAGING:
        favoured, staged = sorted(first.factors)
        # 1b and 2b tolerate that whoever is blocked drains beside the favoured one.
        goal = inf if strategy.endswith("b") else 1.05
        yield Figure(f"{strategy}: favoured, D = 0", favoured, "", most=goal)
        yield Figure(f"{strategy}: staged, D = 0", staged, "", most=1.6)
        slower = first.total / graphs[_UNCONTROLLED][0][0].total
        yield Figure(
            f"{strategy}: total over that without control", slower, "", most=1.0
        )
    if strategy in _PARTITION:
        own = _REQUESTS * site.size * _TARGETS / site.rate
        own += (_REQUESTS - 1) * _DELAY_S
        slowest = max(first.io_times) / own
        yield Figure(f"{strategy}: over the partition's own", slowest, "", most=1.1)


# --- Runs -----------------------------------------------------------------------------


class _GroupRun:
    """Groups that start at some offsets; a call returns begin and end of each (s)."""

    def __init__(self, site: _DeltaStorage, groups: Sequence[_Group]) -> None:
        self._site = site
        self._groups = groups

    def __call__(self, offsets: Sequence[float]) -> list[tuple[float, float]]:
        """Start the groups, wait for them, and return when they wrote."""
        zero = time.monotonic() + _START_S
        started = [
            _Started(group, zero + offset, self._started(group, zero + offset))
            for group, offset in zip(self._groups, offsets, strict=False)
        ]
        try:
            self._wait(started)
            return [_span(it) for it in started]
        finally:
            for it in started:
                it.process.kill()
                it.process.communicate()

    def _wait(self, started: Sequence[_Started]) -> None:
        """Wait until all groups have ended."""
        deadline = time.monotonic() + LIMIT_S
        while any(it.goes_on for it in started):
            if time.monotonic() > deadline:
                raise InputError(f"the groups have not ended after {LIMIT_S:g} s")
            time.sleep(_LOOK_S)

    def _started(self, group: _Group, at: float) -> subprocess.Popen[str]:
        pause_ns = round(_DELAY_S * 1e9)
        facts = (round(at * 1e9), _REQUESTS, self._site.size, pause_ns, _PARTS)
        program = [str(self._site.program), *map(str, facts)]
        return subprocess.Popen(  # noqa: S603 - ourselves
            [*group.prefix, *program, *group.paths],
            env=free_environment() | dict(group.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def _span(it: _Started) -> tuple[float, float]:
    """Return when a group opened its first file and closed its last one (s)."""
    said, complaint = it.process.communicate(timeout=LIMIT_S)
    if it.process.returncode != 0:
        reason = complaint.strip().rpartition("\n")[2] or "it could not write"
        raise InputError(f"group {it.group.name} failed: {reason}")
    begin, end = map(int, said.split())
    return begin * 1e-9, end * 1e-9
