# SPDX-License-Identifier: MIT
"""The mapped page: its layout is the C header's, its curve is the grants' integral."""

from __future__ import annotations

import ctypes
import math
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.live.node import page, page_layout
from penstock.live.node.page import LEASE_MAX_S, Bucket, IoClass, Mode, Page
from penstock.live.node.page_layout import LAYOUT
from support.layouts import assert_layout


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Page]:
    """Return a new page."""
    with Page.create(tmp_path / "page") as made:
        yield made


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_ns = 10**12

    def monotonic_ns(self) -> int:
        return self.now_ns


# --- The layout -------------------------------------------------------------------


def test_the_layout_is_that_of_the_header(tmp_path: Path) -> None:
    constants = {
        "PAGE_MAGIC": page_layout.MAGIC,
        "PAGE_VERSION": page_layout.VERSION,
        "PAGE_SIZE": page_layout.SIZE,
        "RATE_SHIFT": page_layout.RATE_SHIFT,
        "RATE_UNLIMITED": page_layout.UNLIMITED,
        "LEASE_MAX_NS": round(LEASE_MAX_S * 1e9),
        "NO_BUCKET": page_layout.NO_BUCKET,
        "CLASSES": len(IoClass),
        "BUCKETS": len(Bucket),
        **{f"CLASS_{kind.name}": kind.value for kind in IoClass},
        **{f"MODE_{mode.name}": mode.value for mode in Mode},
    }
    assert_layout("page.h", LAYOUT, constants, tmp_path)


@pytest.mark.parametrize("kind", LAYOUT.values(), ids=list(LAYOUT))
def test_no_structure_has_a_hole(kind: type[ctypes.Structure]) -> None:
    """With the sizes and offsets of the header: no field of it is missing here."""
    sizes = sum(getattr(kind, field).size for field, *_ in kind._fields_)
    assert sizes == ctypes.sizeof(kind)


# --- Making and opening -----------------------------------------------------------


def test_a_new_page_limits_nothing_and_counts_nothing(served: Page) -> None:
    assert served.mode is Mode.CONTROL
    assert served.attached_processes == served.bypass_setups == served.posts == 0
    for bucket in Bucket:
        assert served.granted_bytes(bucket) is None
        assert served.charged_bytes(bucket) == 0
    for kind in IoClass:
        counters = served.counters(kind)
        assert (
            counters.begun_calls == counters.ended_calls == counters.waiting_calls == 0
        )
        assert counters.resumed_s == counters.last_active_s == 0.0


def test_only_the_user_can_map_a_page(served: Page) -> None:
    status = served.path.stat()
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_blocks * 512 >= 4096


def test_a_page_is_opened_again_with_all_that_is_in_it(served: Page) -> None:
    served.mode = Mode.DRY_RUN
    served.grant(1e6)
    with Page.open(served.path) as again:
        assert again.mode is Mode.DRY_RUN
        assert again.granted_bytes() is not None
        again.mode = Mode.OFF
    assert served.mode is Mode.OFF


def test_a_page_is_never_overwritten(served: Page) -> None:
    with pytest.raises(InputError, match="another agent serves it"):
        Page.create(served.path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a regular file of 4096 bytes"),
        (bytes(100), "a regular file of 4096 bytes"),
        (bytes(8192), "a regular file of 4096 bytes"),
        (bytes(4096), "not a page of version 3"),
        (b"penstock" + b"\2\0\0\0" + bytes(4084), "not a page of version 3"),
    ],
)
def test_what_is_no_page_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "page"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        Page.open(path)
    assert caught.value.where == str(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        Page.open(tmp_path / "none")
    with pytest.raises(InputError, match="create its folder first"):
        Page.create(tmp_path / "none" / "page")
    with pytest.raises(InputError, match="cannot map"):
        Page.open(tmp_path)
    (tmp_path / "link").symlink_to("page")
    with pytest.raises(InputError, match="cannot map"):
        Page.open(tmp_path / "link")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InputError, match="a regular file of 4096 bytes"):
        Page.open(tmp_path / "fifo")


# --- Grants -----------------------------------------------------------------------

_RATES = st.floats(0.0, 1e12)
_TIMES = st.integers(0, 10**10)


@given(st.lists(st.tuples(_RATES, _TIMES), min_size=1, max_size=20))
def test_the_curve_is_the_integral_of_the_rates(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[float, int]]
) -> None:
    """A grant continues the curve: nothing granted is taken back or given twice."""
    clock = Clock()
    with (
        pytest.MonkeyPatch.context() as patch,
        Page.create(tmp_path_factory.mktemp("p") / "page") as served,
    ):
        patch.setattr(page, "time", clock)
        expected = 0.0
        for rate, duration_ns in steps:
            served.grant(rate)
            before = served.granted_bytes()
            clock.now_ns += duration_ns
            after = served.granted_bytes()
            assert before is not None
            assert after is not None
            assert after >= before
            expected += rate * duration_ns * 1e-9
            assert after == pytest.approx(expected, rel=1e-9, abs=len(steps) + 10.0)


def test_a_limit_after_none_begins_at_what_was_charged(served: Page) -> None:
    served._view.buckets[Bucket.MAIN].charged_bytes = 12345
    served.grant(0.0)
    assert served.granted_bytes() == 12345


def test_a_spoilt_curve_is_no_limit_and_the_next_grant_mends_it(served: Page) -> None:
    served.grant(0.0)
    place = served._view.buckets[Bucket.MAIN]
    place.curve[place.grant_number & 1].granted_bytes += 1
    assert served.granted_bytes() is None
    served.grant(0.0)
    assert served.granted_bytes() == 0


def test_buckets_are_granted_apart(served: Page) -> None:
    served.grant(0.0, bucket=Bucket.READS)
    assert served.granted_bytes(Bucket.MAIN) is None
    assert served.granted_bytes(Bucket.READS) == 0


@pytest.mark.parametrize("rate", [1e-9, 1.0, 1e6, 1e15, 1e300])
def test_a_positive_rate_is_never_a_pause_and_a_finite_one_never_no_limit(
    served: Page, rate: float
) -> None:
    served.grant(rate, credit_s=0.0, slack_s=0.0)
    place = served._view.buckets[Bucket.MAIN]
    assert 0 < place.curve[place.grant_number & 1].rate < 2**64 - 1


def test_reads_draw_on_one_bucket_or_the_other(served: Page) -> None:
    places = served._view.bucket_of
    assert list(places) == [Bucket.MAIN, Bucket.MAIN]
    served.share(reads=Bucket.READS)
    assert list(places) == [Bucket.MAIN, Bucket.READS]
    served.share(reads=None)
    assert places[IoClass.READ] >= len(Bucket)
    served.share()
    assert list(places) == [Bucket.MAIN, Bucket.MAIN]


@pytest.mark.parametrize("rate", [-1.0, math.nan, -math.inf])
def test_a_rate_that_is_none_is_refused(served: Page, rate: float) -> None:
    with pytest.raises(InputError, match="bytes/s"):
        served.grant(rate)
    with pytest.raises(InputError, match="bytes/s"):
        served.renew(1.0, floor=rate)


@pytest.mark.parametrize("duration_s", [-1.0, math.nan, 61.0, math.inf])
def test_a_lease_that_is_none_is_refused(served: Page, duration_s: float) -> None:
    with pytest.raises(InputError, match="lease"):
        served.renew(duration_s)


# --- Counters ---------------------------------------------------------------------


def test_counters_are_read_in_the_units_of_the_house(served: Page) -> None:
    line = served._view.classes[IoClass.READ]
    line.begun_calls, line.ended_calls, line.moved_bytes = 5, 4, 1000
    line.held_up_ns, line.waiting_calls = 1_500_000_000, 1
    line.heartbeat_ns = time.monotonic_ns()
    line.last_active_ns, line.resumed_ns = 7_000_000_000, 6_000_000_000
    counters = served.counters(IoClass.READ)
    assert (counters.begun_calls, counters.ended_calls, counters.moved_bytes) == (
        5,
        4,
        1000,
    )
    assert (counters.held_up_s, counters.waiting_calls) == (1.5, 1)
    assert (counters.last_active_s, counters.resumed_s) == (7.0, 6.0)


def test_a_sleeper_without_a_heartbeat_is_dead(served: Page) -> None:
    line = served._view.classes[IoClass.WRITE]
    line.waiting_calls, line.heartbeat_ns = 1, time.monotonic_ns() - 10**9
    assert served.counters(IoClass.WRITE).waiting_calls == 0


def test_waiting_for_a_post_ends_at_once_or_in_time(served: Page) -> None:
    served._view.posts = 3
    assert served.wait_for_post(2, timeout_s=3600.0) == 3
    begun = time.monotonic()
    assert served.wait_for_post(3, timeout_s=0.05) == 3
    assert time.monotonic() - begun >= 0.04
