# SPDX-License-Identifier: MIT
"""A simulated server: completion times in closed form, and refused descriptions."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.qos import Request
from penstock.sim.requests_server import Server, ServerSpec
from penstock.workloads.clients import MB

SERVER = ServerSpec(10e6)


def times(spec: ServerSpec, *arrivals: tuple[float, int]) -> list[tuple[int, float]]:
    """Return (size, completion time) in the order of completion."""
    server, left = Server(spec), list(arrivals)
    done: list[tuple[int, float]] = []
    while left or server.next < np.inf:
        if left and left[0][0] < server.next:
            now, size = left.pop(0)
            server.put(Request("write", size), now)
        else:
            now = server.next
            done.append((server.take(now).size_bytes, now))
    return done


def test_one_thread_serves_one_after_the_other() -> None:
    done = times(SERVER, (0.0, 10 * MB), (0.5, 5 * MB))
    assert done == [(10 * MB, 1.0), (5 * MB, 1.5)]


def test_many_threads_share_the_capacity() -> None:
    """The small request has half of 10 MB/s from 0.5 s on: 0.5 s + 2 x 0.2 s."""
    spec = replace(SERVER, threads=np.inf)
    done = times(spec, (0.0, 10 * MB), (0.5, 2 * MB))
    assert [size for size, _ in done] == [2 * MB, 10 * MB]
    assert [time for _, time in done] == pytest.approx([0.9, 1.2])


def test_overhead_takes_as_long_as_its_bytes() -> None:
    assert times(replace(SERVER, overhead_bytes=5e6), (0.0, 5 * MB)) == [(5 * MB, 1.0)]


def test_the_concurrency_curve_is_interpolated() -> None:
    spec = replace(SERVER, curve=((1.0, 0.5), (3.0, 1.0)))
    assert [spec.rate(n, 0.0) for n in (1, 2, 3, 9)] == [5e6, 7.5e6, 10e6, 10e6]
    assert times(spec, (0.0, 5 * MB)) == [(5 * MB, 1.0)]


@pytest.mark.parametrize(
    "change",
    [
        {"capacity_bytes_per_s": 0.0},
        {"threads": 0.5},
        {"overhead_bytes": -1.0},
        {"curve": ()},
        {"curve": ((2.0, 1.0), (1.0, 1.0))},
        {"curve": ((1.0, 0.0),)},
        {"curve": ((1.0, np.nan),)},
        {"overhead_bytes": np.inf},
        {"changes": ((10.0, 0.5), (5.0, 1.0))},
        {"changes": ((1.0, np.nan),)},
        {"changes": ((1.0, 0.0),)},
        {"changes": ((-1.0, 0.5),)},
        {"changes": ((np.nan, 0.5),)},
    ],
)
def test_impossible_servers_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        replace(SERVER, **change)  # type: ignore[arg-type]


def test_the_error_names_the_wrong_field() -> None:
    with pytest.raises(InputError, match=r"^changes: "):
        replace(SERVER, changes=((1.0, 0.0),))
    with pytest.raises(InputError, match=r"^curve: "):
        replace(SERVER, curve=((1.0, 0.0),))


@given(
    st.lists(st.integers(1, 10 * MB), min_size=1, max_size=20),
    st.sampled_from([1.0, 2.0, 4.0, inf]),
)
def test_a_busy_server_moves_its_capacity(sizes: list[int], threads: float) -> None:
    """The last completion is at the sum of the sizes over the capacity."""
    done = times(replace(SERVER, threads=threads), *((0.0, size) for size in sizes))
    assert sorted(size for size, _ in done) == sorted(sizes)
    assert done[-1][1] == pytest.approx(sum(sizes) / 10e6)
    assert [time for _, time in done] == sorted(time for _, time in done)


def test_equal_requests_complete_in_order_of_arrival() -> None:
    server = Server(replace(SERVER, threads=inf))
    requests = [Request("write", MB, pid=pid) for pid in range(5)]
    for request in requests:
        server.put(request, 0.0)
    order = [server.take(server.next) for _ in requests]
    assert order == requests
    assert server.next == inf


def test_an_idle_server_saves_no_service() -> None:
    done = times(SERVER, *zip((0.0, 5.0), (MB, MB), strict=True))
    assert [time for _, time in done] == pytest.approx([0.1, 5.1])


def test_a_capacity_change_delays_the_request_in_service() -> None:
    """10 MB at 10 MB/s for 0.5 s, then at 2.5 MB/s: 0.5 s + 5 / 2.5 s."""
    server = Server(replace(SERVER, changes=((0.5, 0.25),)))
    server.put(Request("write", 10 * MB), 0.0)
    assert server.next == pytest.approx(1.0)
    server.refresh(0.5)
    assert server.next == pytest.approx(2.5)
