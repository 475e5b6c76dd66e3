# SPDX-License-Identifier: MIT
"""The layout of a page equals that of the C header, and rates are scaled exactly."""

from __future__ import annotations

import ctypes
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.live.node.pages.page import LEASE_MAX_S
from penstock.live.node.pages.page_layout import (
    FOLDER_KNOWN,
    LAYOUT,
    MAGIC,
    NO_BUCKET,
    RATE_SHIFT,
    SIZE,
    UNLIMITED,
    VERSION,
    Bucket,
    BucketWords,
    CurveWords,
    IoClass,
    Mode,
    PageWords,
    check_word,
    granted_at,
    rate_word,
)
from support.layouts import assert_layout

WORDS = st.integers(0, 2**64 - 1)


def bucket_with(curve: CurveWords, grant_number: int = 0) -> BucketWords:
    """Return a bucket whose grant is `curve`."""
    curve.check = check_word(curve)
    bucket = BucketWords(grant_number=grant_number)
    bucket.curve[grant_number & 1] = curve
    return bucket


# --- The header -----------------------------------------------------------------------


def test_the_layout_is_that_of_the_header(tmp_path: Path) -> None:
    constants = {
        "PAGE_MAGIC": MAGIC,
        "PAGE_VERSION": VERSION,
        "PAGE_SIZE": SIZE,
        "RATE_SHIFT": RATE_SHIFT,
        "RATE_UNLIMITED": UNLIMITED,
        "LEASE_MAX_NS": round(LEASE_MAX_S * 1e9),
        "NO_BUCKET": NO_BUCKET,
        "FOLDER_KNOWN": FOLDER_KNOWN,
        "CLASSES": len(IoClass),
        "BUCKETS": len(Bucket),
        **{f"CLASS_{kind.name}": kind.value for kind in IoClass},
        **{f"MODE_{mode.name}": mode.value for mode in Mode},
    }
    assert_layout("page.h", LAYOUT, constants, tmp_path)


@pytest.mark.parametrize("kind", LAYOUT.values(), ids=list(LAYOUT))
def test_no_structure_has_a_hole(kind: type[ctypes.Structure]) -> None:
    """Together with equal sizes and offsets: no field of the header is missing here."""
    sizes = sum(getattr(kind, field).size for field, *_ in kind._fields_)
    assert sizes == ctypes.sizeof(kind)


def test_words_that_different_sides_change_often_share_no_cache_line() -> None:
    line_bytes = 64
    for kind in ("classes", "buckets", "staging"):
        assert getattr(PageWords, kind).offset % line_bytes == 0
    assert BucketWords.curve.offset % line_bytes == 0


# --- Rates ----------------------------------------------------------------------------


@given(st.floats(1.0, 1e13))
def test_a_rate_is_stored_exactly_enough(rate: float) -> None:
    """The relative error is below half a unit of the scaled rate."""
    scaled = rate_word(rate)
    assert scaled * 1e9 / 2**RATE_SHIFT == pytest.approx(rate, rel=1e-3)
    assert abs(scaled - rate * 2**RATE_SHIFT / 1e9) <= 0.5 + 1e-15 * scaled


def test_special_rates() -> None:
    assert rate_word(0.0) == 0
    assert rate_word(math.inf) == UNLIMITED
    # Neither a pause nor unlimited.
    assert rate_word(5e-324) == 1
    assert rate_word(1.7e308) == UNLIMITED - 1


@pytest.mark.parametrize("rate", [-1.0, -math.inf, math.nan])
def test_an_invalid_rate_is_refused(rate: float) -> None:
    with pytest.raises(InputError, match="bytes/s"):
        rate_word(rate)


# --- Curves ---------------------------------------------------------------------------


@given(
    rate=st.integers(0, 2**62),
    since_ns=st.integers(-(10**12), 10**12),
    granted_bytes=st.integers(0, 2**60),
    grant_number=st.integers(0, 5),
)
def test_a_bucket_grants_along_its_curve(
    rate: int, since_ns: int, granted_bytes: int, grant_number: int
) -> None:
    """G(t) = G0 + rate (t - t0); before t0 it is G0."""
    start_ns = 2 * 10**12
    curve = CurveWords(from_ns=start_ns, granted_bytes=granted_bytes, rate=rate)
    bucket = bucket_with(curve, grant_number)
    expected = granted_bytes + (rate * max(since_ns, 0)) // 2**RATE_SHIFT
    assert granted_at(bucket, start_ns + since_ns) == expected


def test_an_unlimited_curve_grants_no_number() -> None:
    assert granted_at(bucket_with(CurveWords(rate=UNLIMITED)), 10**9) is None


@given(st.tuples(*[WORDS] * 5), st.integers(0, 4), WORDS)
def test_a_changed_word_is_noticed(
    words: tuple[int, ...], position: int, value: int
) -> None:
    """The check word shows a curve of which one word is from another grant."""
    names = ("from_ns", "granted_bytes", "rate", "credit_bytes", "slack_bytes")
    curve = CurveWords(**dict(zip(names, words, strict=True)))
    before = check_word(curve)
    changed = getattr(curve, names[position]) != value
    setattr(curve, names[position], value)
    assert (check_word(curve) != before) is changed
