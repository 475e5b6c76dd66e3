# SPDX-License-Identifier: MIT
"""Delta-graphs of two equal writers, against numbers computed by hand."""

from __future__ import annotations

from math import inf, nan

import pytest

from penstock.errors import InputError
from penstock.sim.buffers import simulation
from penstock.sim.buffers.delta import (
    WriterPair,
    delta_graph,
    factors,
    interference_factors,
)
from penstock.sim.buffers.model import Storage, Writer
from penstock.sim.buffers.simulation import simulate_buffers


def test_two_equal_bursts_slow_each_other_down_while_they_overlap() -> None:
    """Alone 10 s; D later the first has 10 - D left, of which both get half."""
    for point in delta_graph(
        Storage(10.0), WriterPair(1, 100.0, 0.0, [0.0, 4.0, 10.0, 15.0])
    ):
        overlap = max(10.0 - point.offset_s, 0.0)
        both = 10.0 + overlap
        assert point.alone_s == pytest.approx(10.0)
        assert point.io_times_s == pytest.approx((both, both))
        assert point.factors == pytest.approx((both / 10.0, both / 10.0))
        assert point.total_s == pytest.approx(point.offset_s + both)


def test_pauses_count_as_io_time_and_the_offset_does_not() -> None:
    (point,) = delta_graph(Storage(10.0), WriterPair(3, 10.0, 2.0, [50.0]))
    assert point.alone_s == pytest.approx(3 * 1.0 + 2 * 2.0)
    assert point.factors == pytest.approx((1.0, 1.0))


def test_the_first_application_is_not_slowed_down_by_2a() -> None:
    (point,) = delta_graph(Storage(10.0), WriterPair(1, 100.0, 0.0, [5.0]), "2a")
    assert point.factors[0] == pytest.approx(1.0)
    # The second stages at once, waits 5 s for the first, and flushes for 10 s.
    assert point.io_times_s[1] == pytest.approx(15.0, rel=1e-2)


def test_applications_that_begin_together_write_their_first_files_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four requests of 1 s on one target each; the first files are on both targets."""
    pair = WriterPair(4, 20.0, 0.5, [0.0], file_per_request=True)
    (point,) = delta_graph(Storage(40.0, 2), pair, "3b")
    assert point.alone_s == pytest.approx(4 * 0.5 + 3 * 0.5)
    assert point.io_times_s == pytest.approx((4 + 3 * 0.5,) * 2)
    # If files that were just opened were redirected, both would copy a request.
    monkeypatch.setattr(simulation, "follows", lambda *_: True)
    (point,) = delta_graph(Storage(40.0, 2), pair, "3b")
    assert point.io_times_s == pytest.approx((5 + 3 * 0.5,) * 2)


@pytest.mark.parametrize("offset", [-1.0, inf, nan])
def test_offsets_that_are_no_delays_are_refused(offset: float) -> None:
    with pytest.raises(InputError, match=r"D: .*give 0 s or more"):
        WriterPair(1, 100.0, 0.0, [0.0, offset])


def test_factors_of_writers_that_differ() -> None:
    """The short one is alone for 5 s of 10 s of its own, the long one shares."""
    storage = Storage(10.0)
    writers = [Writer.of_requests("A", 1, 50.0), Writer.of_requests("B", 1, 100.0)]
    assert interference_factors(storage, writers) == pytest.approx((2.0, 1.5))


def test_the_factor_of_a_writer_without_io_is_1() -> None:
    writers = [Writer.of_requests("A", 1, 50.0), Writer("idle", ())]
    run = simulate_buffers(Storage(10.0), writers)
    assert factors(run, [5.0, 0.0]) == pytest.approx((1.0, 1.0))
