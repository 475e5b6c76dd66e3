# SPDX-License-Identifier: MIT
"""Storage, buffers and writers: what is refused, and what an instance becomes."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.model import Application, Instance, Platform, Sharing, Window
from penstock.sim.buffers_model import (
    Act,
    Buffer,
    Step,
    Storage,
    Writer,
    storage_of,
    writers_of,
)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Storage(0.0), "bandwidth: 0.0 is out of range"),
        (lambda: Storage(inf), "bandwidth: inf is out of range"),
        (lambda: Storage(1.0, 0), "targets: 0 is not a number of storage targets"),
        (lambda: Storage(1.0, 2, (1.0,)), "profile: 1 bandwidths for 2 targets"),
        (lambda: Storage(1.0, 1, (-1.0,)), "profile: -1.0 is out of range"),
        (lambda: Storage(1.0, efficiency=0.0), "efficiency: 0.0 is out of range"),
        (lambda: Storage(1.0, efficiency=1.5), "efficiency: 1.5 is out of range"),
        (lambda: Buffer(0.0), "speed: 0.0 is out of range"),
        (lambda: Buffer(1.0, capacity=0.0), "capacity: 0.0 is no capacity"),
        (lambda: Buffer(1.0, capacity=nan), "capacity: nan is no capacity"),
        (lambda: Writer("A", (), start=inf), "start: inf is not a time"),
        (lambda: Writer("A", (), nodes=0), "nodes: 0 is out of range"),
        (lambda: Writer("A", (), processes=0), "processes: 0 is out of range"),
        (lambda: Writer("A", (), limit=0.0), "limit: 0.0 is out of range"),
        (
            lambda: Writer("A", (Step(Act.WRITE, 0.0),)),
            r"steps\[0\]: 0.0 is no amount to write \(give bytes, above 0\)",
        ),
        (
            lambda: Writer("A", (Step(Act.CLOSE), Step(Act.WORK, -1.0))),
            r"steps\[1\]: -1.0 is no amount to work \(give 0 s or more\)",
        ),
        (lambda: Writer.of_requests("A", 0, 1.0), "requests: 0 requests"),
        (lambda: Writer.of_requests("A", 2, 0.0), "no amount to write"),
        (lambda: Writer.of_requests("A", 2, 1.0, -1.0), "no amount to work"),
    ],
)
def test_what_makes_no_sense_is_refused(made: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        made()


def test_requests_one_after_the_other() -> None:
    write, pause = Step(Act.WRITE, 5.0), Step(Act.WORK, 2.0)
    made = Writer.of_requests("A", 3, 5.0, 2.0, start=1.0)
    assert made.steps == (write, pause, write, pause, write, Step(Act.CLOSE))
    assert (made.start, made.largest) == (1.0, 5.0)
    assert Writer("B", ()).largest == 0.0


def test_what_an_application_draws_alone() -> None:
    assert Storage(8.0, 4).alone(2) == 4.0
    assert Storage(8.0, 4).alone(2, limit=3.0) == 3.0
    assert Storage(8.0, 2, (6.0, 8.0)).alone(1) == 6.0


def test_an_instance_becomes_writers() -> None:
    phases = [("work", 1.0), ("io", 8.0), ("io", 0.0), ("work", 2.0), ("io", 4.0)]
    application = Application.from_phases("A", 3, phases, start=5.0)
    instance = Instance(Platform(10.0, 2.0), Window(0.0, 9.0), (application,))
    (made,) = writers_of(instance)
    assert made.steps == (
        *(Step(Act.WORK, 1.0), Step(Act.WRITE, 8.0)),
        *(Step(Act.WORK, 2.0), Step(Act.WRITE, 4.0), Step(Act.CLOSE)),
    )
    assert (made.start, made.nodes, made.limit) == (5.0, 3, 6.0)
    assert storage_of(instance, 0.9) == Storage(10.0, efficiency=0.9)


def test_an_instance_with_profiles() -> None:
    application = Application.from_phases(
        "A", 1, [("io", 1.0)], profile=np.array([6.0, 8.0]), targets=(0, 1)
    )
    platform = Platform(10.0, 2.0, 2, Sharing.TIME)
    instance = Instance(platform, Window(0.0, 9.0), (application,))
    assert storage_of(instance) == Storage(10.0, 2, (6.0, 8.0))
    assert writers_of(instance)[0].limit == inf
