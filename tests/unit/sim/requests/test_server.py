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
from penstock.sim.requests.server import Server, ServerSpec
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
        {"delays_s": ()},
        {"delays_s": (-1.0,)},
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
        {"memory_bytes": -1.0},
        {"memory_bytes": np.nan},
        {"memory_bytes": np.inf},
        {"memory_bytes": 1.0},
        {"memory_bytes": 1.0, "absorb_bytes_per_s": 0.0},
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


# --- Memory -------------------------------------------------------------------------

#: Takes 30 MB/s until it holds 40 MB, and drains 10 MB/s.
MEMORY = replace(SERVER, memory_bytes=40e6, absorb_bytes_per_s=30e6)


def test_a_memory_takes_writes_at_its_own_speed() -> None:
    ((_, time),) = times(MEMORY, (0.0, 15 * MB))
    assert time == pytest.approx(0.5)


def test_the_memory_is_full_after_its_size_over_the_difference_of_the_rates() -> None:
    """40 MB / (30 - 10 MB/s) = 2 s and 60 MB; then 10 MB/s."""
    done = times(MEMORY, *((0.0, 10 * MB) for _ in range(9)))
    fast = [(k + 1) / 3 for k in range(6)]
    slow = [2.0 + (k + 1) for k in range(3)]
    assert [time for _, time in done] == pytest.approx(fast + slow)


def test_a_request_that_fills_the_memory_gets_slower_on_its_way() -> None:
    """70 MB: 60 MB in 2 s, and 10 MB in the third."""
    ((_, time),) = times(MEMORY, (0.0, 70 * MB))
    assert time == pytest.approx(3.0)


def test_an_idle_server_drains_its_memory() -> None:
    """At 2 s it is full; at 5 s it has room for 30 MB and 15 MB more on the way."""
    server = Server(MEMORY)
    server.put(Request("write", 60 * MB), 0.0)
    server.take(server.next)
    assert server.held_bytes == pytest.approx(40e6)
    server.put(Request("write", 45 * MB), 5.0)
    assert server.held_bytes == pytest.approx(10e6)
    assert server.next == pytest.approx(5.0 + 1.5)


def test_a_change_of_the_capacity_changes_the_drain() -> None:
    """Half the drain from 1 s on: 20 MB free, filled at 25 MB/s in 0.8 s."""
    server = Server(replace(MEMORY, changes=((1.0, 0.5),)))
    server.put(Request("write", 60 * MB), 0.0)
    server.refresh(1.0)
    assert server.held_bytes == pytest.approx(20e6)
    # 30 MB in the first second, 24 MB until it is full, 6 MB at 5 MB/s.
    assert server.next == pytest.approx(1.0 + 0.8 + 6 / 5)


def test_a_memory_slower_than_the_storage_changes_nothing() -> None:
    slow = replace(MEMORY, absorb_bytes_per_s=1e6)
    requests = ((0.0, 10 * MB), (0.5, 5 * MB))
    assert times(slow, *requests) == times(SERVER, *requests)


@given(
    st.lists(
        st.tuples(st.floats(0.0, 2.0), st.integers(1, 20 * MB)), min_size=1, max_size=20
    ),
    st.sampled_from([1.0, 3.0, inf]),
)
def test_what_a_memory_takes_is_drained_or_held(
    gaps: list[tuple[float, int]], threads: float
) -> None:
    """At every completion: taken bytes - held bytes <= C t, held bytes <= M.

    While the memory never ran empty, taken - held = C t exactly.
    """
    server, now, taken = Server(replace(MEMORY, threads=threads)), 0.0, 0
    starts, empty_s = [], 0.0
    for gap, size in gaps:
        now += gap
        starts.append((now, size))
    while starts or server.next < inf:
        if starts and starts[0][0] < server.next:
            time, size = starts.pop(0)
            before = server.held_bytes
            last = server._updated_s
            idle = server.next == inf
            server.put(Request("write", size), time)
            if idle:
                empty_s += max(0.0, (time - last) - before / 10e6)
        else:
            time = server.next
            taken += server.take(time).size_bytes
        assert -1e-3 <= server.held_bytes <= 40e6 * (1 + 1e-9)
        if server.next == inf:
            drained = taken - server.held_bytes
            assert drained == pytest.approx(10e6 * (time - empty_s), rel=1e-9, abs=1.0)
