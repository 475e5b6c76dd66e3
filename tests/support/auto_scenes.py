# SPDX-License-Identifier: MIT
"""Scenes in which the strategy auto must be about as good as the best single one.

All have a storage of 100 bytes/s with four targets. Most of them are small versions of
the experiments of burst-buffer coordination: equal writers with and without pauses,
started together or one after the other, and unequal ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from penstock.sim.buffers.model import Act, Buffer, Congestion, Step, Storage, Writer

__all__ = ["SCENES", "AutoScene"]

STORAGE = Storage(100.0, 4)
FAST = Buffer(1e5)
#: As in the figures of the paper: the loss sets in late.
CROWDED = replace(STORAGE, congestion=Congestion(0.13, 512.0, 8.0))


@dataclass(frozen=True)
class AutoScene:
    """What is simulated under every strategy."""

    writers: tuple[Writer, ...]
    buffer: Buffer | None = FAST
    storage: Storage = STORAGE


def _writer(
    name: str, requests: int, size: float, delay: float = 0.0, **rest: object
) -> Writer:
    return Writer.of_requests(name, requests, size, delay, **rest)


def _repeated(
    name: str, work_s: float, volume: float, phases: int, pause_s: float = 0.0
) -> Writer:
    """Return a writer that works, then writes a checkpoint, again and again."""
    write = Step(Act.WRITE, volume / 8)
    pauses = (Step(Act.WORK, pause_s),) if pause_s else ()
    steps = (
        Step(Act.WORK, work_s),
        *(write, *pauses) * 7,
        write,
        Step(Act.CLOSE),
    )
    return Writer(name, steps * phases)


def _pair(delay: float, offset: float, **rest: object) -> tuple[Writer, Writer]:
    first = _writer("A", 32, 100.0, delay, **rest)
    return first, _writer("B", 32, 100.0, delay, start_s=offset, **rest)


SCENES = {
    **{
        f"pair, d = {delay:g} s, D = {offset:g} s": AutoScene(_pair(delay, offset))
        for delay in (0.0, 0.25, 0.75)
        for offset in (0.0, 10.0, 20.0, 40.0)
    },
    "no buffers": AutoScene(_pair(0.25, 10.0), None),
    "small buffers": AutoScene(_pair(0.25, 10.0), Buffer(1e5, 500.0)),
    "inline buffers": AutoScene(_pair(0.25, 10.0), replace(FAST, inline=True)),
    "slow shared buffer": AutoScene(_pair(0.0, 5.0), Buffer(150.0, inf, shared=True)),
    "one target": AutoScene(_pair(0.25, 5.0), storage=Storage(100.0)),
    "256 processes each": AutoScene(
        _pair(0.25, 10.0, processes=256, nodes=16), replace(FAST, gain=1.3), CROWDED
    ),
    "small behind large": AutoScene(
        (_writer("large", 64, 100.0), _writer("small", 4, 50.0, start_s=5.0))
    ),
    "large behind small": AutoScene(
        (_writer("small", 8, 50.0), _writer("large", 64, 100.0, start_s=1.0))
    ),
    "files stay where they are": AutoScene(_pair(0.0, 10.0, redirects=False)),
    "one large request each": AutoScene(
        (_writer("A", 1, 3200.0), _writer("B", 1, 1600.0, start_s=8.0))
    ),
    "four writers": AutoScene(
        (
            _writer("micro", 16, 50.0, 0.5),
            _writer("cm1", 26, 50.0, start_s=3.0),
            _writer("lanl", 25, 50.0, start_s=6.0),
            _writer("ior", 10, 200.0, start_s=9.0),
        )
    ),
    "five writers on four targets": AutoScene(
        tuple(_writer(f"w{n}", 10, 60.0, start_s=2.0 * n) for n in range(5))
    ),
    "limited nodes": AutoScene(
        tuple(
            _writer(f"w{n}", 20, 60.0, start_s=3.0 * n, limit_bytes_per_s=60.0)
            for n in range(3)
        )
    ),
    "two that come back": AutoScene(
        (_repeated("A", 20.0, 800.0, 4), _repeated("B", 23.0, 600.0, 4))
    ),
    "four that come back": AutoScene(
        tuple(_repeated(f"w{n}", 9.0 + 4.0 * n, 200.0 + 150.0 * n, 4) for n in range(4))
    ),
    "five that come back and pause": AutoScene(
        tuple(_repeated(f"w{n}", 5.0 + 0.6 * n, 100.0, 4, 0.2) for n in range(5))
    ),
}
