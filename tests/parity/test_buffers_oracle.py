# SPDX-License-Identifier: MIT
"""An oracle in exact fractions for staging on one target, written from the papers.

It does not use flows, drains or plans: every writer is in one of six states, the
storage is shared equally by those who move something, and time jumps from one change
of state to the next. One storage target, unlimited buffers, one I/O phase each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from penstock.sim.buffers.model import Act, Buffer, Step, Storage, Writer
from penstock.sim.buffers.simulation import simulate_buffers

STRATEGIES = ("none", "1a", "1b", "2a", "2b")


@dataclass
class Exact:
    """One writer: ``(size, pause after it)`` for every request."""

    number: int
    start: Fraction
    requests: list[tuple[Fraction, Fraction]]
    state: str = "before"
    left: Fraction = Fraction(0)
    """Bytes of the request, or seconds of the pause, that are left."""
    staged: Fraction = Fraction(0)
    flushing: bool = False
    opened: Fraction | None = None
    closed: Fraction | None = None
    done: int = field(default=0)

    @property
    def in_phase(self) -> bool:
        return self.opened is not None and self.closed is None


def oracle(
    bandwidth: Fraction, speed: Fraction, writers: list[Exact], strategy: str
) -> list[Fraction]:
    """Return when every writer has closed its file."""
    now = min(w.start for w in writers)
    while any(w.closed is None for w in writers):
        while sum(_passes(w, now) for w in writers):
            pass
        for w in writers:
            if w.state == "wants":
                stages = w.staged > 0 or _behind(w, writers, strategy)
                w.state = "stages" if stages else "writes"
        for w in writers:
            w.flushing = w.staged > 0 and _may_flush(w, writers, strategy)
        served = sum(w.state == "writes" for w in writers)
        served += sum(w.flushing for w in writers)
        share = bandwidth / served if served else Fraction(0)
        step = min(_steps(writers, now, share, speed), default=None)
        if step is None:
            break
        now += step
        for w in writers:
            _move(w, step, share, speed)
    return [w.closed for w in writers if w.closed is not None]


def _passes(w: Exact, now: Fraction) -> bool:
    """Apply all changes that take no time; return True if there was one."""
    if w.state == "before" and now >= w.start:
        w.opened, w.state, w.left = now, "wants", w.requests[0][0]
    elif w.state in ("writes", "stages") and w.left == 0:
        size, pause = w.requests[w.done]
        w.staged += size if w.state == "stages" else 0
        w.done += 1
        last = w.done == len(w.requests)
        w.state, w.left = ("closes", Fraction(0)) if last else ("pauses", pause)
    elif w.state == "pauses" and w.left == 0:
        w.state, w.left = "wants", w.requests[w.done][0]
    elif w.state == "closes" and w.staged == 0:
        w.state, w.closed = "over", now
    else:
        return False
    return True


def _behind(w: Exact, writers: list[Exact], strategy: str) -> bool:
    """Return True if an application with precedence is in its I/O phase."""
    if strategy == "none":
        return False
    sign = -1 if strategy[0] == "1" else 1

    def key(x: Exact) -> tuple[Fraction, int]:
        assert x.opened is not None
        return sign * x.opened, sign * x.number

    return any(x.in_phase and key(x) < key(w) for x in writers if x is not w)


def _may_flush(w: Exact, writers: list[Exact], strategy: str) -> bool:
    if not _behind(w, writers, strategy):
        return True
    return strategy.endswith("b") and (w.flushing or w.state == "closes")


def _steps(
    writers: list[Exact], now: Fraction, share: Fraction, speed: Fraction
) -> list[Fraction]:
    steps = []
    for w in writers:
        if w.state == "before":
            steps.append(w.start - now)
        elif w.state == "pauses":
            steps.append(w.left)
        elif w.state in ("writes", "stages"):
            steps.append(w.left / (share if w.state == "writes" else speed))
        if w.flushing:
            steps.append(w.staged / share)
    return steps


def _move(w: Exact, step: Fraction, share: Fraction, speed: Fraction) -> None:
    rates = {"pauses": Fraction(1), "writes": share, "stages": speed}
    w.left -= step * rates.get(w.state, Fraction(0))
    if w.flushing:
        w.staged -= step * share


def _writer(w: Exact) -> Writer:
    steps = []
    for size, pause in w.requests:
        steps += [Step(Act.WRITE, float(size)), Step(Act.WORK, float(pause))]
    return Writer(
        f"w{w.number}", (*steps[:-1], Step(Act.CLOSE)), start_s=float(w.start)
    )


@st.composite
def cases(draw: st.DrawFn, most: int, unit: Fraction) -> list[Exact]:
    amount = st.integers(1, 16).map(lambda n: n * unit)
    pause = st.integers(0, 8).map(lambda n: n * unit)
    return [
        Exact(
            number,
            draw(st.integers(0, 24).map(lambda n: n * unit)),
            draw(st.lists(st.tuples(amount, pause), min_size=1, max_size=4)),
        )
        for number in range(draw(st.integers(1, most)))
    ]


def _agree(writers: list[Exact], speed: int, strategy: str, tolerance: float) -> None:
    simulated = simulate_buffers(
        Storage(2.0), [_writer(w) for w in writers], strategy, Buffer(float(speed))
    )
    exact = oracle(Fraction(2), Fraction(speed), writers, strategy)
    ends = [phases[-1][1] for phases in simulated.phases]
    assert ends == pytest.approx([float(e) for e in exact], rel=tolerance, abs=0)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(writers=cases(2, Fraction(1, 4)), speed=st.sampled_from([4, 64]))
@settings(deadline=None, derandomize=True, max_examples=150, database=None)
def test_two_writers_are_exact(strategy: str, writers: list[Exact], speed: int) -> None:
    """All numbers are dyadic: doubles are exact, and so are ties."""
    _agree(writers, speed, strategy, 0.0)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("seed", range(60))
def test_three_writers(strategy: str, seed: int) -> None:
    """Fractions with different denominators, so that nothing ties by chance."""
    writers = []
    for number in range(3):
        odd = Fraction(1, 97 + 4 * number + 12 * (seed % 7))
        start = Fraction(seed * (number + 1) % 23, 7) * (1 + odd)
        requests = [
            (Fraction(3 + (seed + k * 5 + number) % 11, 5) + odd, 1 / (k + 2 + odd))
            for k in range(1 + (seed + number) % 4)
        ]
        writers.append(Exact(number, start, requests))
    _agree(writers, 50, strategy, 1e-9)
