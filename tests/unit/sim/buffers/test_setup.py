# SPDX-License-Identifier: MIT
"""What follows from the description of a simulation with burst buffers."""

from __future__ import annotations

from penstock.sim.buffers.model import Buffer, Congestion, Storage, Writer
from penstock.sim.buffers.setup import Setup
from penstock.staging import get_strategy

WRITER = Writer.of_requests("A", 4, 10.0, 1.0, start_s=3.0, processes=2)


def setup(storage: Storage, buffer: Buffer | None = None) -> Setup:
    return Setup(storage, (WRITER,), get_strategy("none"), buffer, None, None)


def test_without_buffers_nothing_is_flushed_or_gained() -> None:
    made = setup(Storage(10.0))
    assert (made.is_inline, made.is_buffer_shared, made.gain) == (False, False, 1.0)
    made = setup(Storage(10.0), Buffer(1.0, shared=True, inline=True, gain=1.5))
    assert (made.is_inline, made.is_buffer_shared, made.gain) == (True, True, 1.5)


def test_the_capacity_of_a_target_is_its_bandwidth_or_its_time() -> None:
    assert setup(Storage(10.0, 2)).rules().capacity == 5.0
    by_time = setup(Storage(10.0, 2, (6.0, 10.0)))
    assert by_time.rules().capacity == 1.0
    assert by_time.rules(background=True).background


def test_the_horizon_is_beyond_the_end_of_any_run() -> None:
    """40 bytes at 10 bytes/s, 3 pauses of 1 s: twice that, after the start, and 1 s."""
    assert setup(Storage(10.0)).horizon() == 3.0 + 2 * (4.0 + 3.0) + 1.0
    lossy = Storage(10.0, congestion=Congestion(1.0, 2.0, 1.0))
    assert setup(lossy).horizon() == 3.0 + 2 * (8.0 + 3.0) + 1.0
