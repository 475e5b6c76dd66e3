# SPDX-License-Identifier: MIT
"""An oracle in exact fractions for requests of many processes on one target.

Written from the rule alone: all requests that wait share the storage equally; with n of
them, 1 / (1 + loss (n / m)^p) of it is left. Time jumps from one change to the next,
and every process is moved by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from penstock.sim.buffers.model import Act, Buffer, Congestion, Storage, Writer
from penstock.sim.buffers.simulation import simulate_buffers
from penstock.sim.buffers.state import WriterState, groups_of

BANDWIDTH = 8
LOSS, MANY, EXPONENT = Fraction(1, 4), 6, 3
STORAGE = Storage(float(BANDWIDTH), congestion=Congestion(float(LOSS), MANY, EXPONENT))


@dataclass
class Process:
    """One process: what it still does, and what is left of its present step."""

    steps: list[tuple[Act, Fraction]]
    left: Fraction
    """Seconds of work or bytes to write that are left of the first step."""

    @property
    def writes(self) -> bool:
        return bool(self.steps) and self.steps[0][0] is Act.WRITE

    def move(self, amount: Fraction) -> bool:
        """Move on; return True if this was the end of its last step."""
        self.left -= amount
        while self.steps and self.left == 0:
            self.steps.pop(0)
            self.left = self.steps[0][1] if self.steps else Fraction(0)
        return not self.steps


def oracle(writers: list[Writer]) -> list[Fraction]:
    """Return when the last process of every writer has ended."""
    running = {
        number: [
            process
            for group in groups_of(WriterState(writer, number))
            for process in _processes(writer, group.steps, group.processes)
        ]
        for number, writer in enumerate(writers)
    }
    now, ends = Fraction(0), [Fraction(0)] * len(writers)
    while any(running.values()):
        everyone = [p for processes in running.values() for p in processes]
        waiting = sum(p.writes for p in everyone)
        crowding = 1 + LOSS * Fraction(waiting, MANY) ** EXPONENT
        rate = BANDWIDTH / crowding / max(waiting, 1)
        step = min(p.left / rate if p.writes else p.left for p in everyone)
        now += step
        for number, processes in running.items():
            left = [
                p for p in processes if not p.move(step * rate if p.writes else step)
            ]
            if processes and not left:
                ends[number] = now
            running[number] = left
    return ends


def _processes(
    writer: Writer, steps: tuple[tuple[Act, float], ...], count: float
) -> list[Process]:
    made = []
    for _ in range(round(count)):
        own = [(Act.WORK, Fraction(writer.start_s))]
        for act, amount in steps:
            share = round(count) if act is Act.WRITE else 1
            if act in (Act.WRITE, Act.WORK):
                own.append((act, Fraction(amount) / share))
        process = Process(own, own[0][1])
        process.move(Fraction(0))
        made.append(process)
    return made


@st.composite
def crowds(draw: st.DrawFn) -> list[Writer]:
    writers = []
    for number in range(draw(st.integers(1, 3))):
        nodes = draw(st.integers(1, 3))
        writers.append(
            Writer.of_requests(
                f"w{number}",
                draw(st.integers(1, 3)),
                float(draw(st.integers(1, 30))),
                draw(st.integers(0, 8)) / 4,
                start_s=draw(st.integers(0, 12)) / 4,
                nodes=nodes,
                processes=nodes * draw(st.integers(1, 2)),
                jitter=draw(st.sampled_from([0.0, 0.5])),
                seed=draw(st.integers(0, 99)),
            )
        )
    return writers


@given(crowds())
@settings(deadline=None, derandomize=True, max_examples=60, database=None)
def test_every_writer_ends_when_the_oracle_says(writers: list[Writer]) -> None:
    run = simulate_buffers(STORAGE, writers)
    ends = [phases[-1][1] for phases in run.phases]
    assert ends == pytest.approx([float(end) for end in oracle(writers)], rel=1e-9)


@pytest.mark.parametrize("strategy", ["none", "1a", "1b", "2a", "2b", "controlled"])
@pytest.mark.parametrize("delay", [0.0, 0.75])
def test_processes_in_step_are_one_process_with_all_their_data(
    strategy: str, delay: float
) -> None:
    """Without a loss and without jitter, only the volume of an application counts."""
    buffer = Buffer(1e6, inline=True, gain=1.25)
    times = [
        simulate_buffers(
            Storage(8.0),
            [
                Writer.of_requests(
                    *(name, 4, 16.0, delay),
                    start_s=start,
                    nodes=8 // share,
                    processes=n,
                )
                for name, start in (("A", 0.0), ("B", 2.5))
            ],
            strategy,
            buffer,
        ).io_times
        for n, share in ((1, 8), (64, 1))
    ]
    assert times[0] == pytest.approx(times[1], rel=1e-5)


@pytest.mark.parametrize("jitter", [0.0, 0.3])
def test_storage_is_never_idle_while_a_request_waits(jitter: float) -> None:
    """With more processes than fit into the pauses, all ends with the last byte."""
    writers = [
        Writer.of_requests(
            *(name, 6, 64.0, 0.0), nodes=8, processes=8, jitter=jitter, seed=seed
        )
        for seed, name in enumerate("ABC")
    ]
    run = simulate_buffers(Storage(8.0), writers)
    assert run.end_s == pytest.approx(3 * 6 * 64.0 / 8.0)
    assert sum(run.carried) == pytest.approx(3 * 6 * 64.0)


def test_processes_that_drift_apart_use_each_others_pauses() -> None:
    """In step all lose a pause; 16 nodes that differ leave almost none unused."""
    time = {}
    for jitter in (0.0, 0.3):
        writer = Writer.of_requests(
            *("A", 40, 16.0, 1.0), nodes=16, processes=16, jitter=jitter
        )
        time[jitter] = simulate_buffers(Storage(8.0), [writer]).io_times[0]
    assert time[0.0] == pytest.approx(40 * 2.0 + 39 * 1.0)
    assert 80.0 <= time[0.3] < 90.0
