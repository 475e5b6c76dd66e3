# SPDX-License-Identifier: MIT
"""Groups of clients: rates, periods, first requests, stripes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.workloads.clients import (
    KB,
    MB,
    Clients,
    RateSegment,
    btio_large,
    btio_small,
    on_off,
    ramp,
    saturating,
    steady,
)


def test_a_constant_rate_is_the_same_everywhere() -> None:
    segment = RateSegment(2.0, 6.0, 3e6)
    assert [segment.rate_at(time) for time in (2.0, 4.0, 6.0)] == [3e6] * 3


def test_a_ramp_is_linear() -> None:
    segment = RateSegment(2.0, 6.0, 1e6, 5e6)
    assert segment.rate_at(2.0) == 1e6
    assert segment.rate_at(3.0) == 2e6
    assert segment.rate_at(6.0) == 5e6


def test_the_period_is_the_size_of_a_round_over_the_rate() -> None:
    # 32 processes with 1 MB each at 16 MB/s: every process issues every 2 s.
    clients = steady("a", 16e6, 10.0)
    assert clients.period(clients.segments[0], 0.0) == 2.0


def test_processes_begin_evenly_over_one_period() -> None:
    clients = steady("a", 4e6, 10.0, processes=4, begin=1.0)
    times = [clients.first(process, 0.0) for process in range(4)]
    assert [issue[0] for issue in times if issue] == [1.0, 1.25, 1.5, 1.75]


def test_a_process_that_is_late_issues_at_once() -> None:
    clients = steady("a", 4e6, 10.0, processes=4)
    assert clients.first(0, 7.5) == (7.5, clients.segments[0])


def test_after_the_last_segment_nothing_is_issued() -> None:
    clients = steady("a", 4e6, 10.0, processes=4)
    assert clients.first(0, 10.0) is None


def test_a_process_that_misses_a_short_segment_begins_in_the_next_one() -> None:
    segments = (RateSegment(0.0, 0.5, 1e6), RateSegment(4.0, 9.0, 1e6))
    clients = Clients("a", 2, MB, segments)
    # The period is 2 s, so process 1 would begin at 1 s, after the first segment.
    assert clients.first(1, 0.0) == (5.0, segments[1])


def test_on_off_alternates_and_ends_in_time() -> None:
    segments = on_off("a", 1e6, 2.0, 9.0).segments
    assert [(segment.begin, segment.end) for segment in segments] == [
        (0.0, 2.0),
        (4.0, 6.0),
        (8.0, 9.0),
    ]


def test_named_groups() -> None:
    assert saturating("a", 5.0).segments == (RateSegment(0.0, 5.0, math.inf),)
    assert ramp("a", 1e6, 2e6, 5.0).segments == (RateSegment(0.0, 5.0, 1e6, 2e6),)
    assert (btio_large(5.0).processes, btio_large(5.0).size) == (16, MB)
    assert btio_small(5.0).size < KB


@given(
    size=st.integers(1, 5_000),
    stripe=st.integers(1, 700),
    servers=st.integers(1, 5),
    number=st.integers(0, 50),
)
def test_stripes_divide_a_request_completely(
    size: int, stripe: int, servers: int, number: int
) -> None:
    segments = (RateSegment(0.0, 1.0, 1e6),)
    clients = Clients(
        "a", 1, size, segments, servers=tuple(range(servers)), stripe=stripe
    )
    expected: dict[int, int] = {}
    for position in range(number * size, (number + 1) * size):
        server = position // stripe % servers
        expected[server] = expected.get(server, 0) + 1
    assert clients.pieces(number) == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"processes": 0}, "no process, size, server or segment"),
        ({"servers": ()}, "no process, size, server or segment"),
        ({"jitter": 1.5}, "1.5 is not a jitter"),
        ({"stripe": 0}, "0 bytes are not a stripe"),
        ({"closed": False}, "an open loop needs a finite rate"),
    ],
)
def test_an_impossible_group_is_refused(
    changes: dict[str, object], message: str
) -> None:
    arguments: dict[str, object] = {
        "application": "a",
        "processes": 1,
        "size": MB,
        "segments": (RateSegment(0.0, 1.0, math.inf),),
    }
    with pytest.raises(InputError, match=message):
        Clients(**{**arguments, **changes})  # type: ignore[arg-type]
