# SPDX-License-Identifier: MIT
"""The scenes of the cluster benchmark: applications, their nodes and what they ask for.

Rates and promises are shares of the capacity of the storage, which is measured first.
Then one process per chunk server writes, to measure how long a request takes that waits
for no other one; the simulation needs that.

- *experiment*: that of two-level scheduling, section 4.2. app1 (80 % of the capacity,
  100 ms) is off and on; app2 (40 %, 300 ms) grows from 40 to 100 %. A request takes
  20 ms at a server, as in the paper.
- *reader*: one process reads 4 KiB, as often as it is promised, beside 32 writers;
  without a scheduler (fifo), then with one.
- *shares*: two applications write as fast as they can. Their promises add up to 95 % of
  the capacity; what is left is shared in the same proportion. A single process uses one
  chunk server at a time, so it is promised less than a quarter.

All applications of a scene are on one client node, or the first is on node 1 and the
second on nodes 2 and 3. One scene shows what happens if the mounts of different nodes
know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeAlias

from penstock.bench.slo.clients import Kind
from penstock.errors import InputError

__all__ = [
    "CAPACITY_SCENE",
    "FULL",
    "LATENCY_SCENE",
    "NODES",
    "QUICK",
    "SERVERS",
    "SETTINGS",
    "SIZE_BYTES",
    "WINDOW_S",
    "AppGroup",
    "ClusterScale",
    "ClusterScene",
    "MountSetting",
    "Promise",
    "scenes",
]

#: Chunk servers and client nodes.
SERVERS: Final = 4
NODES: Final = 3
#: Size of a write, one block of MooseFS.
SIZE_BYTES: Final = 1 << 16
_READ_BYTES: Final = 4096
WINDOW_S: Final = 1.0
#: Sum of the promises in scenes of shares.
_PROMISED: Final = 0.95
#: Numbers of processes of two applications -> pairs of shares.
_SHARES: Final = {
    (16, 16): ((1, 1), (3, 1), (10, 1)),
    (4, 32): ((1, 1), (3, 1), (10, 1)),
    (1, 64): ((1, 4), (1, 10)),
}
_FEW, _MANY = "few", "many"

#: Points (s, share of the capacity), interpolated linearly; empty: no limit.
_Rates: TypeAlias = tuple[tuple[float, float], ...]


class Promise(NamedTuple):
    """The SLO of an application."""

    share: float
    """Throughput as a share of the capacity."""
    latency_s: float


class MountSetting(NamedTuple):
    """How the mounts of a scene are started."""

    scheduler: str
    exchange: bool
    """A controller shares the storage among the mounts."""


#: Name -> how mounts are started.
SETTINGS: Final = {
    "fifo": MountSetting("fifo", exchange=False),
    "alone": MountSetting("two-level", exchange=False),
    "together": MountSetting("two-level", exchange=True),
}


@dataclass(frozen=True)
class AppGroup:
    """Processes of one application on one client node."""

    application: str
    node: int
    processes: int
    first: int = 0
    """Number of the first process, counted over all nodes."""
    kind: Kind = "write"
    size_bytes: int = SIZE_BYTES
    rates: _Rates = ()


@dataclass(frozen=True)
class ClusterScene:
    """Applications that run at the same time."""

    name: str
    setting: str
    """One of `SETTINGS`."""
    promises: Mapping[str, Promise]
    groups: tuple[AppGroup, ...]
    warm_s: float
    """Begin of the measured time."""
    end_s: float
    has_goals: bool = True

    @property
    def nodes(self) -> tuple[int, ...]:
        """Return the client nodes in use."""
        return tuple(sorted({group.node for group in self.groups}))

    @property
    def mounts(self) -> tuple[tuple[int, int], ...]:
        """Return the mounts in use: client node and chunk server, from 1."""
        return tuple(
            sorted(
                {
                    (group.node, (group.first + number) % SERVERS + 1)
                    for group in self.groups
                    for number in range(group.processes)
                }
            )
        )

    @property
    def is_saturated(self) -> bool:
        """Return True if all applications take what they can get."""
        return not any(group.rates for group in self.groups)

    @property
    def is_overloaded(self) -> bool:
        """Return True if the promises add up to more than the capacity."""
        return sum(promise.share for promise in self.promises.values()) > 1.0


@dataclass(frozen=True)
class ClusterScale:
    """The lengths of the scenes (s), and which are run."""

    capacity_s: float
    warm_s: float
    run_s: float
    calm_s: float
    """Experiment: both keep to their promises."""
    half_s: float
    """Experiment: app1 is off for this time, then on for this time."""
    turns: int
    quick: bool = False
    """Only one scene of each kind."""


FULL: Final = ClusterScale(6.0, 5.0, 30.0, calm_s=6.0, half_s=8.0, turns=2)
QUICK: Final = ClusterScale(
    *(1.5, 0.5, 2.0), calm_s=1.0, half_s=1.0, turns=1, quick=True
)

#: All nodes write as fast as they can; nobody is held back.
CAPACITY_SCENE: Final = ClusterScene(
    "capacity",
    "fifo",
    {"all": Promise(1.0, 1.0)},
    tuple(AppGroup("all", node, 8, 8 * (node - 1)) for node in range(1, NODES + 1)),
    *(0.0, 0.0),
)
#: Every request is alone at its chunk server.
LATENCY_SCENE: Final = ClusterScene(
    "one request at a time",
    "fifo",
    {"all": Promise(1.0, 1.0)},
    (AppGroup("all", 1, SERVERS),),
    *(0.0, 0.0),
)


def scenes(scale: ClusterScale, texts: Sequence[str] = ()) -> list[ClusterScene]:
    """Return the scenes of a run, beginning with what measures the storage.

    With `texts`, only the scenes whose names contain one of them. A text that is in no
    name raises `InputError`.
    """
    end_s = scale.warm_s + scale.capacity_s
    first = [
        replace(scene, warm_s=scale.warm_s, end_s=end_s)
        for scene in (CAPACITY_SCENE, LATENCY_SCENE)
    ]
    planned = list(_all_scenes(scale))
    for text in texts:
        if not any(text in scene.name for scene in planned):
            names = "; ".join(scene.name for scene in planned)
            raise InputError(
                f"{text!r} is in no name of a scene",
                where="--scenes",
                remedy=f"the scenes are: {names}",
            )
    chosen = [s for s in planned if not texts or any(text in s.name for text in texts)]
    return [*first, *chosen]


def _all_scenes(scale: ClusterScale) -> Iterator[ClusterScene]:
    """Yield the scenes after those that measure the storage."""
    yield _experiment(scale)
    yield replace(
        _reader(scale, spread=False),
        name="4 KiB reader and 32 writers, same node, fifo",
        setting="fifo",
        has_goals=False,
    )
    for spread in (True,) if scale.quick else (False, True):
        yield _reader(scale, spread=spread)
    if scale.quick:
        yield _shares(scale, (16, 16), (3, 1), spread=True)
        return
    yield replace(
        _shares(scale, (16, 16), (3, 1), spread=True),
        name="3 : 1, 16 and 16 processes, different nodes, mounts alone",
        setting="alone",
        has_goals=False,
    )
    for counts, pairs in _SHARES.items():
        for shares in pairs:
            for spread in (False, True):
                yield _shares(scale, counts, shares, spread=spread)


def _experiment(scale: ClusterScale) -> ClusterScene:
    calm_s, half_s = scale.calm_s, scale.half_s
    end_s = calm_s + 2 * half_s * scale.turns
    # A rate jumps within a microsecond.
    rates: _Rates = ((0.0, 0.5), (calm_s - 1e-6, 0.5), (calm_s, 0.0))
    for turn in range(scale.turns):
        on = calm_s + (2 * turn + 1) * half_s
        off = on + half_s
        rates += (on - 1e-6, 0.0), (on, 1.0), (off - 1e-6, 1.0), (off, 0.0)
    growing = (0.0, 0.4), (calm_s, 0.4), (end_s, 1.0)
    return ClusterScene(
        "experiment of two-level scheduling, different nodes",
        "together",
        {"app1": Promise(0.8, 0.1), "app2": Promise(0.4, 0.3)},
        (
            AppGroup("app1", 1, 32, rates=rates),
            *_on_two_nodes("app2", 32, growing),
        ),
        *(0.0, end_s),
    )


def _reader(scale: ClusterScale, *, spread: bool) -> ClusterScene:
    promises = {"reader": Promise(0.005, 0.05), "writers": Promise(0.9, 2.0)}
    end_s = scale.warm_s + scale.run_s
    share = promises["reader"].share
    reader = AppGroup(
        *("reader", 1, 1),
        kind="read",
        size_bytes=_READ_BYTES,
        rates=((0.0, share), (end_s, share)),
    )
    return ClusterScene(
        f"4 KiB reader and 32 writers, {_place(spread=spread)}",
        "together",
        promises,
        (reader, *_writers("writers", 32, spread=spread)),
        *(scale.warm_s, end_s),
    )


def _shares(
    scale: ClusterScale,
    counts: tuple[int, int],
    shares: tuple[int, int],
    *,
    spread: bool,
) -> ClusterScene:
    few, many = counts
    total = sum(shares)
    words = f"{shares[0]} : {shares[1]}, {few} and {many} processes"
    return ClusterScene(
        f"{words}, {_place(spread=spread)}",
        "together",
        {
            name: Promise(_PROMISED * share / total, 1.0)
            for name, share in zip((_FEW, _MANY), shares, strict=True)
        },
        (AppGroup(_FEW, 1, few), *_writers(_MANY, many, spread=spread)),
        *(scale.warm_s, scale.warm_s + scale.run_s),
    )


def _place(*, spread: bool) -> str:
    return "different nodes" if spread else "same node"


def _writers(application: str, processes: int, *, spread: bool) -> tuple[AppGroup, ...]:
    if spread:
        return _on_two_nodes(application, processes)
    return (AppGroup(application, 1, processes),)


def _on_two_nodes(
    application: str, processes: int, rates: _Rates = ()
) -> tuple[AppGroup, ...]:
    """Return half of the processes on node 2 and half on node 3."""
    half = processes // 2
    halved = tuple((time_s, share / 2) for time_s, share in rates)
    return tuple(
        AppGroup(application, node, half, first, rates=halved)
        for node, first in ((2, 0), (3, half))
    )
