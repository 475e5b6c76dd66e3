# SPDX-License-Identifier: MIT
"""Descriptions of storage, buffers and writers: valid and refused ones."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.sim.buffers.delta import interference_factors
from penstock.sim.buffers.model import Act, Buffer, Congestion, Step, Storage, Writer
from penstock.sim.buffers.simulation import simulate_buffers

WRITE, CLOSE = Step(Act.WRITE, 10.0), Step(Act.CLOSE)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Storage(0.0), "bandwidth: 0.0 is out of range"),
        (lambda: Storage(inf), "bandwidth: inf is out of range"),
        (lambda: Storage(1.0, 0), "targets: 0 is not a number of storage targets"),
        (lambda: Storage(1.0, 10**30), "whole number from 1 to 1000000"),
        (lambda: Storage(1.0, 2, (1.0,)), "profile: 1 bandwidths for 2 targets"),
        (lambda: Storage(1.0, 1, (-1.0,)), "profile: -1.0 is out of range"),
        (lambda: Congestion(-0.1), "loss: -0.1 is out of range"),
        (lambda: Congestion(nan), "loss: nan is out of range"),
        (lambda: Congestion(1.0, 0.0), "reference_requests: 0.0 is out of range"),
        (lambda: Congestion(1.0, 2.0, 0.0), "exponent: 0.0 is out of range"),
        (lambda: Buffer(0.0), "speed_bytes_per_s: 0.0 is out of range"),
        (lambda: Buffer(1.0, gain=0.0), "gain: 0.0 is out of range"),
        (lambda: Writer("A", (), jitter=-0.1), "jitter: -0.1 is not a jitter"),
        (lambda: Writer("A", (), jitter=1.1), "jitter: 1.1 is not a jitter"),
        (lambda: Writer("A", (), opened_s=1.0), "opened_s: 1.0 is after the start"),
        (
            lambda: Buffer(1.0, capacity_bytes=0.0),
            "capacity_bytes: 0.0 is not a capacity",
        ),
        (
            lambda: Buffer(1.0, capacity_bytes=nan),
            "capacity_bytes: nan is not a capacity",
        ),
        (lambda: Writer("A", (), start_s=inf), "start_s: inf is not a time"),
        (lambda: Writer("A", (), nodes=0), "nodes: 0 is out of range"),
        (lambda: Writer("A", (), nodes=1.5), "nodes: 1.5 is out of range"),  # type: ignore[arg-type]
        (lambda: Writer("A", (), processes=0), "processes: 0 is out of range"),
        (lambda: Writer("A", (), priority=nan), "priority: nan is not a priority"),
        (lambda: Writer("A", (WRITE,)), r"steps\[1\]: 'A' writes and never closes"),
        (lambda: Writer("A", (WRITE, CLOSE, WRITE, Step(Act.SYNC))), "never closes"),
        (
            lambda: Writer("A", (), limit_bytes_per_s=0.0),
            "limit_bytes_per_s: 0.0 is out of range",
        ),
        (
            lambda: Writer("A", (Step(Act.WRITE, 0.0), CLOSE)),
            r"steps\[0\]: 0.0 is not an amount to write \(give bytes, above 0\)",
        ),
        (
            lambda: Writer("A", (Step(Act.CLOSE), Step(Act.WORK, -1.0))),
            r"steps\[1\]: -1.0 is not an amount to work \(give 0 s or more\)",
        ),
        (lambda: Writer.of_requests("A", 0, 1.0), "requests: 0 requests"),
        (lambda: Writer.of_requests("A", 2, 0.0), "not an amount to write"),
        (lambda: Writer.of_requests("A", 2, 1.0, -1.0), "not an amount to work"),
    ],
)
def test_impossible_descriptions_are_refused(made: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        made()


def test_requests_one_after_the_other() -> None:
    write, pause = Step(Act.WRITE, 5.0), Step(Act.WORK, 2.0)
    made = Writer.of_requests("A", 3, 5.0, 2.0, start_s=1.0)
    assert made.steps == (write, pause, write, pause, write, Step(Act.CLOSE))
    assert (made.start_s, made.largest) == (1.0, 5.0)
    assert Writer("B", ()).largest == 0.0


def test_the_bandwidth_of_an_application_alone() -> None:
    assert Storage(8.0, 4).alone(2) == 4.0
    assert Storage(8.0, 4).alone(2, limit=3.0) == 3.0
    assert Storage(8.0, 2, (6.0, 8.0)).alone(1) == 6.0


def test_writers_have_different_names() -> None:
    twice = [Writer("A", (WRITE, CLOSE))] * 2
    with pytest.raises(InputError, match="two writers have the same name"):
        simulate_buffers(Storage(1.0), twice)


def test_a_writer_that_writes_nothing_is_not_delayed() -> None:
    idle = Writer("A", (Step(Act.WORK, 1.0), CLOSE))
    busy = Writer("B", (WRITE, CLOSE))
    assert interference_factors(Storage(1.0), [idle, busy]) == (1.0, 1.0)
