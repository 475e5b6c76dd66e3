# SPDX-License-Identifier: MIT
"""Two equal writers under the strategies of burst-buffer coordination, in closed form.

Each writes V bytes to storage of bandwidth B: T = V / B. N requests with delays d have
pauses of (N - 1) d = P in all. B starts D after A.
"""

from __future__ import annotations

from math import inf
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from penstock.errors import InputError
from penstock.sim.buffers.delta import (
    DeltaPoint,
    WriterPair,
    delta_graph,
    interference_factors,
)
from penstock.sim.buffers.model import Act, Buffer, Congestion, Step, Storage, Writer
from penstock.sim.buffers.simulation import simulate_buffers
from penstock.staging import STRATEGIES

T, N = 30.0, 32
quickly = settings(deadline=None, derandomize=True, max_examples=25, database=None)


def graph(strategy: str, d: float, *offsets: float, **rest: Any) -> list[DeltaPoint]:
    storage = Storage(100.0, rest.pop("targets", 1))
    pair = WriterPair(N, 3000.0 / N, d, offsets)
    return delta_graph(storage, pair, strategy, **rest)


def factors(strategy: str, d: float, offset: float, **rest: Any) -> list[float]:
    return list(graph(strategy, d, offset, **rest)[0].factors)


@pytest.mark.parametrize("offset", [0.0, 7.0, 15.0, 29.0, 30.0, 45.0])
def test_without_control(offset: float) -> None:
    """While both write, each has half of the bandwidth: I/O time 2 T - D."""
    expected = max(2 * T - offset, T) / T
    assert factors("none", 0.0, offset) == pytest.approx([expected, expected])


@pytest.mark.parametrize("offset", [0.0, 7.0, 15.0, 29.0, 60.0])
@pytest.mark.parametrize("d", [0.0, 0.25, 0.75])
def test_strategy_2a(d: float, offset: float) -> None:
    """B has staged all at P; it drains from T + P on, when A is done, for T."""
    alone = T + (N - 1) * d
    expected = alone - offset + T if offset < alone else alone
    a, b = factors("2a", d, offset)
    assert a == pytest.approx(1.0)
    assert b == pytest.approx(expected / alone, rel=2e-3)


def test_strategy_2a_when_the_first_is_done_early() -> None:
    """At D = 45 B has staged only 12 of its 32 requests when A is done.

    With BBIO, B flushes them at its next request and continues to write through: it has
    neither lost nor hidden any time. If the buffer drains in the background, it is
    never empty at a request, and all other pauses are hidden as well.
    """
    d = 0.75
    _, b = factors("2a", d, 45.0, buffer=Buffer(1e9, inline=True))
    assert b == pytest.approx(1.0)
    alone = T + (N - 1) * d
    _, better = factors("2a", d, 45.0)
    assert better * alone == pytest.approx(alone - 45.0 + T, rel=2e-3)


@pytest.mark.parametrize("d", [0.0, 0.25, 0.75])
def test_strategy_1a(d: float) -> None:
    """At D = 0 it mirrors 2a; for D > 0 B waits for the request in progress."""
    alone = T + (N - 1) * d
    a, b = factors("1a", d, 0.0)
    assert b == pytest.approx(1.0)
    assert a == pytest.approx((alone + T) / alone, rel=2e-3)
    for point in graph("1a", d, 5.0, 12.0, 25.0):
        assert point.factors[1] <= 1 + T / N / alone + 1e-9


def test_the_strategies_behave_as_the_paper_expects() -> None:
    """At D = 0: factor 1.05 at most if favoured, 1.6 if staged; no later end."""
    base = graph("none", 0.75, 0.0)[0].total_s
    for strategy, favoured in (("1a", 1), ("2a", 0), ("controlled", 0)):
        (point,) = graph(strategy, 0.75, 0.0)
        assert point.factors[favoured] <= 1.05
        assert point.factors[1 - favoured] <= 1.6
        assert point.total_s <= base * (1 + 1e-9)


def test_flushing_early_costs_the_other_what_it_gains() -> None:
    """2b: from P on both write: B all of V, A the rest of its V."""
    d = 0.75
    pauses = (N - 1) * d
    alone = T + pauses
    a, b = factors("2b", d, 0.0)
    # A has moved its share of V by P; the rest and B's V go on at half speed each,
    # but for A's pauses, in which B is alone.
    assert 1.0 < a < b + 1e-9
    assert pauses + T < b * alone < alone + T


@pytest.mark.parametrize("d", [0.1, 0.5, 0.75])
def test_draining_into_the_pauses_leaves_nothing_unused(d: float) -> None:
    """While B has staged data the storage is never idle: both are done at 2 T."""
    alone = T + (N - 1) * d
    (point,) = graph("controlled", d, 0.0)
    assert point.factors[0] == pytest.approx(1.0)
    assert point.total_s == pytest.approx(2 * T, rel=2e-3)
    assert point.factors[1] == pytest.approx(2 * T / alone, rel=2e-3)


@pytest.mark.parametrize("strategy", ["3a", "3b"])
def test_partitions_have_their_own_speed(strategy: str) -> None:
    """Half of the targets each: factor 2, as for one application alone on them."""
    both = factors(strategy, 0.0, 0.0, targets=2)
    assert both == pytest.approx([2.0, 2.0])
    own = delta_graph(Storage(50.0), WriterPair(N, 3000.0 / N, 0.0, [0.0]))[0].alone_s
    assert [f * T / own for f in both] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("loss", [0.0, 0.15, 1.0])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_interference_beyond_sharing(loss: float, count: int) -> None:
    """With n waiting requests, 1 / (1 + loss (n / count)^8) of the storage is left."""
    storage = Storage(100.0, congestion=Congestion(loss, count, 8.0))
    writers = [Writer.of_requests(f"w{i}", 4, 50.0) for i in range(count)]
    alone = 1 + loss * (1 / count) ** 8
    assert interference_factors(storage, writers) == pytest.approx(
        [count * (1 + loss) / alone] * count
    )
    # First come, first served: only one waits at a time, and nothing is lost.
    served = interference_factors(storage, writers, "2a", Buffer(1e9))
    assert served == pytest.approx(range(1, count + 1), rel=1e-3)


@pytest.mark.parametrize("offsets", [[-1.0], [0.0, inf]])
def test_invalid_offsets_are_refused(offsets: list[float]) -> None:
    with pytest.raises(InputError, match=r"D: .* are not all delays"):
        WriterPair(1, 1.0, 0.0, offsets)


# --- Conservation -----------------------------------------------------------------

NAMES = [*STRATEGIES, "1b:flush=token", "2b:flush=window", "combined:least=2"]
amounts = st.integers(1, 30).map(lambda n: n / 7)


@st.composite
def crowds(draw: st.DrawFn) -> list[Writer]:
    writers = []
    for number in range(draw(st.integers(1, 4))):
        steps = []
        for _ in range(draw(st.integers(1, 4))):
            steps.append(Step(Act.WORK, draw(amounts)))
            steps.append(Step(Act.WRITE, draw(amounts)))
            if draw(st.booleans()):
                steps.append(Step(draw(st.sampled_from((Act.SYNC, Act.CLOSE)))))
        steps.append(Step(Act.CLOSE))
        writers.append(
            Writer(
                f"w{number}", tuple(steps), start_s=draw(amounts), limit_bytes_per_s=2.0
            )
        )
    return writers


@pytest.mark.parametrize("strategy", NAMES)
@given(
    writers=crowds(),
    buffer=st.sampled_from(
        [Buffer(9.0), Buffer(4.0, 6.0), Buffer(9.0, 5.0, shared=True)]
    ),
    policy=st.sampled_from(["fair-share", "fcfs", "greedy-yield"]),
)
@quickly
def test_all_bytes_are_written(
    strategy: str, writers: list[Writer], buffer: Buffer, policy: str
) -> None:
    storage = Storage(3.0, 4, congestion=Congestion(0.1, 2.0, 3.0))
    run = simulate_buffers(storage, writers, strategy, buffer, sharing=policy)
    volumes = [sum(s.amount for s in w.steps if s.act is Act.WRITE) for w in writers]
    moved = [t + d for t, d in zip(run.through, run.drained, strict=True)]
    assert moved == pytest.approx(volumes)
    assert sum(run.carried) == pytest.approx(sum(volumes))
    assert run.end_s >= sum(volumes) / 3.0
    room = buffer.capacity_bytes * (1 + 1e-6)
    assert max(run.most_staged) <= room
    for writer, phases, requests in zip(writers, run.phases, run.requests, strict=True):
        edges = [writer.start_s, *(t for phase in phases for t in phase), run.end_s]
        assert edges == sorted(edges)
        assert all(r.posted < r.done for r in requests)
        assert [r.volume for r in requests] == [
            s.amount for s in writer.steps if s.act is Act.WRITE
        ]


@pytest.mark.parametrize("strategy", NAMES)
@given(writers=crowds())
@quickly
def test_same_input_same_bits(strategy: str, writers: list[Writer]) -> None:
    runs = [
        simulate_buffers(Storage(3.0, 4), writers, strategy, Buffer(9.0))
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
