# SPDX-License-Identifier: MIT
"""Delta-graphs of real processes: interference factors against the offset D (papers/4).

Two groups write N requests of S bytes with a pause d between them, the second one from
D on, to ``penstock mount`` with a limit: uncontrolled, then under each
strategy. Strategies 1 and 2 run in ``penstock serve --staging``, with journals in
memory; for 3a and 3b there are two mounts of half the limit, and the strategy moves the
groups' folders by the driver of plain directories: new files follow. The same is
simulated, and both are compared.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Final

from penstock.errors import InputError, UnknownNameError
from penstock.live.bench import Figure, Setting
from penstock.live.bench.stage import (
    LIMIT_S,
    compiled,
    free_environment,
    mounted,
    serving,
    workspace,
)
from penstock.live.drivers import get_driver
from penstock.live.shim import shim_path
from penstock.live.stager import Stager
from penstock.live.staging_rules import Staging
from penstock.sim.buffers_delta import DeltaPoint, delta_graph
from penstock.sim.buffers_model import Buffer
from penstock.staging import Standing, get_strategy

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
class _Site:
    """What the processes write to."""

    root: Path
    program: Path
    shared: Path
    """A mount with all the bandwidth."""
    targets: Path
    """A folder with a link to each of the mounts that divide it."""


def measure(setting: Setting) -> Iterator[Figure]:
    """Yield factors at D = 0, and how far simulated ones are from them."""
    with workspace(setting.folder) as root, ExitStack() as stack:
        site = _built(root, stack)
        graphs: dict[str, list[DeltaPoint]] = {}
        for strategy in (_UNCONTROLLED, *_chosen(setting.policies)):
            tries = max(setting.rounds // _ROUNDS_PER_TRY, 1)
            graphs[strategy] = _graph(site, strategy, tries)
            yield from _figures(strategy, graphs)


def _chosen(names: Sequence[str]) -> Sequence[str]:
    known = (*_STAGING, *_PARTITION)
    for name in names:
        if name not in known:
            raise UnknownNameError("strategy to be measured", name, known)
    return names or known


def _built(root: Path, stack: ExitStack) -> _Site:
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
    return _Site(root, program, mount.point, root / "targets")


# --- Delta-graphs ---------------------------------------------------------------------


def _graph(site: _Site, strategy: str, rounds: int) -> list[DeltaPoint]:
    """Return the live delta-graph of a strategy; of several rounds, the fastest."""
    plain = _Run(site, [_on_mount(site, name) for name in _GROUPS])
    alone = min(_io_time(plain((0.0,))[0]) for _ in range(rounds))
    points = []
    with _runs(site, strategy) as run:
        for offset in _OFFSETS_S:
            tries = [run((0.0, offset)) for _ in range(rounds)]
            points.append(min((_point(t, offset, alone) for t in tries), key=_total))
    return points


@contextmanager
def _runs(site: _Site, strategy: str) -> Iterator[_Run]:
    """Prepare runs under a strategy."""
    if strategy in _PARTITION:
        yield _PartitionRun(site, strategy)
    elif strategy in _STAGING:
        with _staging(site, strategy) as groups:
            yield _Run(site, groups)
    else:
        yield _Run(site, [_on_mount(site, name) for name in _GROUPS])


@contextmanager
def _staging(site: _Site, strategy: str) -> Iterator[list[_Group]]:
    """Serve a strategy; the groups are jobs, started as a user would start them."""
    with tempfile.TemporaryDirectory(dir=site.root, prefix="s") as name:
        folder = Path(name) / "run"
        journals = Staging(Path(name) / "journals", always=False)
        journals.prepare()
        # More than there is: the mount is to hold them up, as the storage would be.
        bandwidth = f"{1.25 * _RATE} B/s"
        settings = {"prefixes": site.shared, "bandwidth": bandwidth}
        with serving(folder, staging=strategy, policy="fcfs", **settings) as daemon:
            daemon.await_ready()
            run = [sys.executable, "-m", "penstock", "run", f"--folder={folder}"]
            yield [
                replace(
                    _on_mount(site, name),
                    prefix=(*run, f"--job={name}", "--"),
                    environment=tuple(journals.environment().items()),
                )
                for name in _GROUPS
            ]


def _on_mount(site: _Site, name: str) -> _Group:
    """Return a group that writes a file for each part."""
    return _Group(name, tuple(str(site.shared / f"{name}{i}") for i in range(_PARTS)))


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


def _simulated(strategy: str) -> list[DeltaPoint]:
    """Return the same, simulated."""
    return delta_graph(
        _RATE,
        _REQUESTS,
        _SIZE,
        _DELAY_S,
        _OFFSETS_S,
        strategy,
        buffer=Buffer(speed=1000 * _RATE, inline=True),
        targets=_TARGETS if strategy in _PARTITION else 1,
    )


def _ordered(point: DeltaPoint) -> Sequence[float]:
    """Return both factors; of two that start together, either may be the first."""
    return point.factors if point.offset else sorted(point.factors)


def _figures(strategy: str, graphs: dict[str, list[DeltaPoint]]) -> Iterator[Figure]:
    live, simulated = graphs[strategy], _simulated(strategy)
    parts = {}
    errors = []
    for real, ideal in zip(live, simulated, strict=True):
        pairs = zip(_ordered(real), _ordered(ideal), strict=True)
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
        yield Figure(f"{strategy}: favoured, D = 0", favoured, "", most=1.05)
        yield Figure(f"{strategy}: staged, D = 0", staged, "", most=1.6)
        slower = first.total / graphs[_UNCONTROLLED][0].total
        yield Figure(
            f"{strategy}: total over that without control", slower, "", most=1.0
        )
    if strategy in _PARTITION:
        own = _REQUESTS * _SIZE * _TARGETS / _RATE
        own += (_REQUESTS - 1) * _DELAY_S
        slowest = max(first.io_times) / own
        yield Figure(f"{strategy}: over the partition's own", slowest, "", most=1.1)


# --- Runs -----------------------------------------------------------------------------


class _Run:
    """Groups that start at some offsets; a call returns begin and end of each (s)."""

    def __init__(self, site: _Site, groups: Sequence[_Group]) -> None:
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
            self._look(started, time.monotonic())
            time.sleep(_LOOK_S)

    def _look(self, started: Sequence[_Started], now: float) -> None:
        """Do what is to be done while they run."""

    def _started(self, group: _Group, at: float) -> subprocess.Popen[str]:
        facts = (round(at * 1e9), _REQUESTS, _SIZE, round(_DELAY_S * 1e9), _PARTS)
        program = [str(self._site.program), *map(str, facts)]
        return subprocess.Popen(  # noqa: S603 - ourselves
            [*group.prefix, *program, *group.paths],
            env=free_environment() | dict(group.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


class _PartitionRun(_Run):
    """Groups whose folders a strategy puts on targets, whenever one comes or goes."""

    def __init__(self, site: _Site, strategy: str) -> None:
        super().__init__(site, [self._group(site, name) for name in _GROUPS])
        self._driver = get_driver("directories", site.targets)
        self._stager = Stager(get_strategy(strategy), _TARGETS)
        self._there: list[bool] = []

    def __call__(self, offsets: Sequence[float]) -> list[tuple[float, float]]:
        """Begin with everybody on all targets."""
        self._there = []
        for name in _GROUPS:
            self._assign(name, range(_TARGETS))
        return super().__call__(offsets)

    @staticmethod
    def _group(site: _Site, name: str) -> _Group:
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

    def _look(self, started: Sequence[_Started], now: float) -> None:
        # A static partition holds from the start of the programs on.
        early = _START_S if self._stager.strategy.name == "3a" else _LOOK_S
        there = [it.goes_on and now > it.at - early for it in started]
        if there == self._there:
            return
        self._there = there
        standings = [
            _standing(it, is_in=is_in) for it, is_in in zip(started, there, strict=True)
        ]
        for name, order in self._stager.decide(standings, now).items():
            self._assign(name, order.targets)

    def _assign(self, name: str, targets: Iterable[int]) -> None:
        self._driver.assign(self._site.root / name, [str(t) for t in targets])


def _standing(it: _Started, *, is_in: bool) -> Standing:
    """Return a group as strategies see it, in its I/O phase or not."""
    began = it.at if is_in else inf
    return Standing(it.group.name, began=began, volume=float(_REQUESTS * _SIZE))


def _span(it: _Started) -> tuple[float, float]:
    """Return when a group opened its first file and closed its last one (s)."""
    said, complaint = it.process.communicate(timeout=LIMIT_S)
    if it.process.returncode != 0:
        reason = complaint.strip().rpartition("\n")[2] or "it could not write"
        raise InputError(f"group {it.group.name} failed: {reason}")
    begin, end = map(int, said.split())
    return begin * 1e-9, end * 1e-9
