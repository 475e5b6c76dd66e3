# SPDX-License-Identifier: MIT
"""The page as the agent sees it: creation, grants, leases, counters, posts."""

from __future__ import annotations

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
from penstock.live.node.pages import page
from penstock.live.node.pages.page import Bucket, IoClass, Mode, Page
from penstock.live.node.pages.page_layout import ClassWords, PageWords
from penstock.live.node.pages.shared_file import SharedFileError
from penstock.live.wire.messages import Partition


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Page]:
    """Return a new page."""
    with Page.create(tmp_path / "page") as created:
        yield created


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_ns = 10**12

    def monotonic_ns(self) -> int:
        return self.now_ns


# --- Creating and opening ---------------------------------------------------------


def test_a_new_page_limits_nothing_and_counts_nothing(fresh: Page) -> None:
    assert fresh.mode is Mode.CONTROL
    assert fresh.look().bypass_setups == fresh.operations_begun == 0
    for bucket in Bucket:
        assert fresh.granted_bytes(bucket) is None
        assert fresh.charged_bytes(bucket) == 0
    for kind in IoClass:
        counters = fresh.counters(kind)
        assert (
            counters.begun_calls == counters.ended_calls == counters.waiting_calls == 0
        )
        assert counters.resumed_s == counters.last_active_s == 0.0


def test_only_the_user_can_map_a_page(fresh: Page) -> None:
    status = fresh.path.stat()
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_blocks * 512 >= 4096


def test_a_page_is_opened_again_with_all_that_is_in_it(fresh: Page) -> None:
    fresh.mode = Mode.DRY_RUN
    fresh.grant(1e6)
    with Page.open(fresh.path) as again:
        assert again.mode is Mode.DRY_RUN
        assert again.granted_bytes() is not None
        again.mode = Mode.OFF
    assert fresh.mode is Mode.OFF


def test_a_page_is_never_overwritten(fresh: Page) -> None:
    with pytest.raises(InputError, match="another agent serves it"):
        Page.create(fresh.path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a regular file of 4096 bytes"),
        (bytes(100), "a regular file of 4096 bytes"),
        # One that is too long is cut first.
        (bytes(8192), "not a page of version 5"),
        (bytes(4096), "not a page of version 5"),
        (b"penstock" + b"\2\0\0\0" + bytes(4084), "not a page of version 5"),
    ],
)
def test_a_file_that_is_not_a_page_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "page"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        Page.open(path)
    assert caught.value.where == str(path)


def test_a_path_that_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
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
    """A new grant continues the curve, without a jump up or down."""
    clock = Clock()
    with (
        pytest.MonkeyPatch.context() as patch,
        Page.create(tmp_path_factory.mktemp("p") / "page") as fresh,
    ):
        patch.setattr(page, "time", clock)
        expected = 0.0
        for rate, duration_ns in steps:
            fresh.grant(rate)
            before = fresh.granted_bytes()
            clock.now_ns += duration_ns
            after = fresh.granted_bytes()
            assert before is not None
            assert after is not None
            assert after >= before
            expected += rate * duration_ns * 1e-9
            assert after == pytest.approx(expected, rel=1e-9, abs=len(steps) + 10.0)


def test_the_first_limit_begins_at_the_bytes_already_charged(fresh: Page) -> None:
    fresh._view.buckets[Bucket.MAIN].charged_bytes = 12345
    fresh.grant(0.0)
    assert fresh.granted_bytes() == 12345


def test_a_torn_curve_is_no_limit_and_the_next_grant_repairs_it(fresh: Page) -> None:
    fresh.grant(0.0)
    words = fresh._view.buckets[Bucket.MAIN]
    words.curve[words.grant_number & 1].granted_bytes += 1
    assert fresh.granted_bytes() is None
    fresh.grant(0.0)
    assert fresh.granted_bytes() == 0


def test_buckets_are_granted_apart(fresh: Page) -> None:
    fresh.grant(0.0, bucket=Bucket.READS)
    assert fresh.granted_bytes(Bucket.MAIN) is None
    assert fresh.granted_bytes(Bucket.READS) == 0


@pytest.mark.parametrize("rate", [1e-9, 1.0, 1e6, 1e15, 1e300])
def test_a_positive_rate_is_never_a_pause_and_a_finite_one_never_no_limit(
    fresh: Page, rate: float
) -> None:
    fresh.grant(rate, credit_s=0.0, slack_s=0.0)
    words = fresh._view.buckets[Bucket.MAIN]
    assert 0 < words.curve[words.grant_number & 1].rate < 2**64 - 1


def test_reads_draw_on_one_bucket_or_the_other(fresh: Page) -> None:
    bucket_of = fresh._view.bucket_of
    assert list(bucket_of) == [Bucket.MAIN, Bucket.MAIN]
    fresh.share(reads=Bucket.READS)
    assert list(bucket_of) == [Bucket.MAIN, Bucket.READS]
    fresh.share(reads=None)
    assert bucket_of[IoClass.READ] >= len(Bucket)
    fresh.share()
    assert list(bucket_of) == [Bucket.MAIN, Bucket.MAIN]


@pytest.mark.parametrize("rate", [-1.0, math.nan, -math.inf])
def test_an_invalid_rate_is_refused(fresh: Page, rate: float) -> None:
    with pytest.raises(InputError, match="bytes/s"):
        fresh.grant(rate)
    with pytest.raises(InputError, match="bytes/s"):
        fresh.renew(1.0, floor=rate)


@pytest.mark.parametrize("duration_s", [-1.0, math.nan, 61.0, math.inf])
def test_an_invalid_lease_is_refused(fresh: Page, duration_s: float) -> None:
    with pytest.raises(InputError, match="lease"):
        fresh.renew(duration_s)


# --- Counters ---------------------------------------------------------------------


def test_counters_are_converted_to_seconds(fresh: Page) -> None:
    line = fresh._view.classes[IoClass.READ]
    line.begun_calls, line.ended_calls, line.moved_bytes = 5, 4, 1000
    line.memory_bytes, line.busy_ns = 2000, 2_500_000_000
    line.held_up_ns, line.waiting_calls = 1_500_000_000, 1
    line.heartbeat_ns = time.monotonic_ns()
    line.last_active_ns, line.resumed_ns = 7_000_000_000, 6_000_000_000
    counters = fresh.counters(IoClass.READ)
    assert (counters.begun_calls, counters.ended_calls) == (5, 4)
    assert (counters.moved_bytes, counters.memory_bytes) == (1000, 2000)
    assert counters.busy_s == 2.5
    assert (counters.held_up_s, counters.waiting_calls) == (1.5, 1)
    assert (counters.last_active_s, counters.resumed_s) == (7.0, 6.0)


def test_a_waiting_call_without_a_heartbeat_is_not_counted(fresh: Page) -> None:
    line = fresh._view.classes[IoClass.WRITE]
    line.waiting_calls, line.heartbeat_ns = 1, time.monotonic_ns() - 10**9
    assert fresh.counters(IoClass.WRITE).waiting_calls == 0


@pytest.mark.parametrize("size", [0, 100, 600])
def test_a_truncated_page_raises_an_error_and_no_signal(fresh: Page, size: int) -> None:
    os.truncate(fresh.path, size)
    with pytest.raises(SharedFileError, match="the file was truncated"):
        fresh.counters(IoClass.WRITE)


def test_announced_phases_are_read_in_seconds(fresh: Page) -> None:
    fresh._view.announced_bytes, fresh._view.announced_at_ns = 700, 2_500_000_000
    fresh._view.phases_begun, fresh._view.phases_ended = 3, 2
    announced = fresh.announced
    assert (announced.begun, announced.ended) == (3, 2)
    assert (announced.volume_bytes, announced.last_s) == (700, 2.5)


def test_a_volume_that_nobody_can_have_moved_is_damage(fresh: Page) -> None:
    words = PageWords.classes.offset + ClassWords.moved_bytes.offset
    with fresh.path.open("r+b") as stream:
        for volume_bytes in (1 << 60, (1 << 60) + 1):
            stream.seek(words)
            stream.write(volume_bytes.to_bytes(8, "little"))
            stream.flush()
            if volume_bytes == 1 << 60:
                assert fresh.counters(IoClass.WRITE).moved_bytes == volume_bytes
    with pytest.raises(SharedFileError, match=r"1.2e\+18 bytes were moved"):
        fresh.look()


def test_a_journal_folder_is_known_only_if_it_is_complete(fresh: Page) -> None:
    fresh._view.folder = b"/journals"
    states = {0: None, 1: None, 2: Path("/journals"), 3: None}
    for state, folder in states.items():
        fresh._view.staging.folder_state = state
        assert fresh.journal_folder == folder
    fresh._view.staging.folder_state, fresh._view.folder = 2, b"relative"
    assert fresh.journal_folder is None


def test_a_page_is_removed_when_its_name_is_whatever_other_links_it_has(
    fresh: Page, tmp_path: Path
) -> None:
    states = [fresh.is_removed]
    os.link(fresh.path, tmp_path / "kept")
    fresh.path.unlink()
    states.append(fresh.is_removed)
    fresh.path.write_bytes((tmp_path / "kept").read_bytes())
    states.append(fresh.is_removed)
    fresh.path.unlink()
    fresh.path.symlink_to(tmp_path / "kept")
    states.append(fresh.is_removed)
    assert states == [False, True, True, True]


def test_a_closed_page_leaves_no_descriptor(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    Page.create(tmp_path / "page").close()
    with pytest.raises(InputError):
        Page.create(tmp_path / "page")
    (tmp_path / "short").write_bytes(b"")
    with pytest.raises(InputError):
        Page.open(tmp_path / "short")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_place_of_parts(tmp_path: Path) -> None:
    with Page.create(tmp_path / "page") as page:
        assert page.partition == 0
        page.place(Partition(3, "/jobs/a", 2, ("/x", "/y"), redirect_age_s=1.5))
        words = page._read()
        assert words.staging.redirect_age_ms == 1500
        assert page.partition == 3
        assert (words.part_folder, words.part_roots) == (b"/jobs/a", b"/x:/y")
        assert words.staging.part_slots == 2
        # Paths that do not fit: nothing is redirected, and the page is as before.
        page.place(Partition(4, "/" + "x" * 511, 2, ("/x",)))
        assert page.partition == 0
        page.place(Partition(4, "/jobs/a", 2, ("/" + "x" * 1023,)))
        assert page.partition == 0
        assert page._read().part_roots == b"/x:/y"
        page.place(Partition(5, "/jobs/a", 0, ("/",), redirect_age_s=1e9))
        assert (page.partition, page._read().part_roots) == (5, b"/")
        assert page._read().staging.redirect_age_ms == 2**32 - 1
