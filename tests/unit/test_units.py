# SPDX-License-Identifier: MIT
"""Quantities: every unit, every bad one, and there and back again."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable

import hypothesis.strategies as st
import pytest
from hypothesis import given

from penstock.errors import InputError
from penstock.units import (
    counted,
    format_bandwidth,
    format_instant,
    format_time,
    format_volume,
    parse_bandwidth,
    parse_time,
    parse_volume,
    parse_whole,
    quantity_pattern,
)

VOLUMES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "PB": 10**15,
    "EB": 10**18,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "PiB": 2**50,
    "EiB": 2**60,
}
TIMES = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "min": 60,
    "h": 3600,
    "d": 86400,
}
PARSERS = (parse_volume, parse_time, parse_bandwidth)


@pytest.mark.parametrize(("unit", "factor"), VOLUMES.items())
def test_every_unit_of_volume_and_bandwidth(unit: str, factor: int) -> None:
    assert parse_volume(f"2.5 {unit}") == 2.5 * factor
    assert parse_bandwidth(f"2.5{unit}/s") == 2.5 * factor


@pytest.mark.parametrize(("unit", "factor"), TIMES.items())
def test_every_unit_of_time(unit: str, factor: float) -> None:
    assert parse_time(f"3 {unit}") == 3 * factor


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    ("value", "number"),
    [
        (7, 7.0),
        (-2, -2.0),
        (0.1, 0.1),
        ("7", 7.0),
        ("  7.5  ", 7.5),
        ("+1e3", 1000.0),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("1E-3", 0.001),
    ],
)
def test_bare_numbers_are_in_base_units(
    parse: Callable[..., float], value: object, number: float
) -> None:
    assert parse(value, bare=True) == number
    assert type(parse(value, bare=True)) is float


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        None,
        [],
        {},
        1j,
        b"5",
        math.nan,
        math.inf,
        -math.inf,
        "nan",
        "inf",
        "-inf",
        "1e400",
        "",
        " ",
        "five",
        "5 5",
        "1,5",
        "0x10",
        "1_000",
        "--5",
        "1e",
        "5 parsec",
        "/s",
        "5 /s",
        "5 s s",
    ],
    ids=repr,
)
def test_an_invalid_quantity_is_refused_with_the_value(
    parse: Callable[..., float], value: object
) -> None:
    with pytest.raises(InputError) as caught:
        parse(value)
    assert repr(value) in str(caught.value)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("parse", PARSERS)
def test_an_integer_beyond_all_floats_is_refused(
    parse: Callable[..., float],
) -> None:
    with pytest.raises(InputError, match="not a finite"):
        parse(10**400)


@pytest.mark.parametrize(
    ("parse", "text", "known"),
    [
        (parse_volume, "3 min", "GiB"),
        (parse_volume, "3 GiB/s", "GiB"),
        (parse_volume, "3 gib", "GiB"),
        (parse_time, "3 GiB", "min"),
        (parse_time, "3 hours", "min"),
        (parse_bandwidth, "3 GiB", "GiB/s"),
        (parse_bandwidth, "3 GiB/min", "GiB/s"),
    ],
)
def test_an_unknown_unit_is_named_and_the_known_are_listed(
    parse: Callable[..., float], text: str, known: str
) -> None:
    with pytest.raises(InputError, match="unknown unit") as caught:
        parse(text)
    assert repr(text) in caught.value.what
    assert known in caught.value.remedy


@pytest.mark.parametrize("parse", PARSERS)
def test_only_a_text_other_than_0_needs_a_unit(
    parse: Callable[..., float],
) -> None:
    for text in ("10", " 1e3 ", "-5", "1e-9"):
        with pytest.raises(InputError, match="has no unit") as caught:
            parse(text)
        assert repr(text) in caught.value.what
        assert parse(caught.value.remedy.split('"')[1]) > 0.0
    for value in (0, "0", " 0.0", 10, 2.5):
        assert parse(value) == float(value)


def test_a_number_without_a_unit_is_suggested_with_a_usual_one() -> None:
    for parse, example in (
        (parse_volume, "10 MB"),
        (parse_time, "10 s"),
        (parse_bandwidth, "10 MB/s"),
    ):
        with pytest.raises(InputError, match=f'write e.g. "{example}"'):
            parse("10")


_finite = st.floats(allow_nan=False, allow_infinity=False)


@given(_finite)
def test_numbers_are_read_to_the_last_bit(number: float) -> None:
    for parse in PARSERS:
        assert parse(number) == number
        assert parse(repr(number), bare=True) == number


@given(st.floats(-1e200, 1e200), st.sampled_from(sorted(VOLUMES)))
def test_volume_is_number_times_unit(number: float, unit: str) -> None:
    assert parse_volume(f"{number!r} {unit}") == number * VOLUMES[unit]
    assert parse_bandwidth(f"{number!r}{unit}/s") == number * VOLUMES[unit]


@given(st.floats(-1e200, 1e200), st.sampled_from(sorted(TIMES)))
def test_time_is_number_times_unit(number: float, unit: str) -> None:
    assert parse_time(f"{number!r} {unit}") == number * TIMES[unit]


@given(st.floats(-1e25, 1e25))
def test_a_printed_quantity_can_be_read_back(number: float) -> None:
    assert parse_volume(format_volume(number)) == pytest.approx(number, rel=5e-4)
    assert parse_bandwidth(format_bandwidth(number)) == pytest.approx(number, rel=5e-4)
    assert parse_time(format_time(number)) == pytest.approx(number, rel=5e-4)


@pytest.mark.parametrize(
    ("formatted", "text"),
    [
        (format_volume(0), "0 B"),
        (format_volume(1), "1 B"),
        (format_volume(1536), "1.5 KiB"),
        (format_volume(-(2.0**30)), "-1 GiB"),
        (format_volume(2.0**60), "1 EiB"),
        (format_volume(1.5e12), "1.5 TB"),
        (format_bandwidth(200 * 2.0**30), "200 GiB/s"),
        (format_bandwidth(0.5), "0.5 B/s"),
        (format_time(0), "0 s"),
        (format_time(1), "1 s"),
        (format_time(5400), "1.5 h"),
        (format_time(90), "1.5 min"),
        (format_time(172800), "2 d"),
        (format_time(0.25), "250 ms"),
        (format_time(-2e-6), "-2 us"),
    ],
)
def test_quantities_are_printed_with_the_unit_that_fits(
    formatted: str, text: str
) -> None:
    assert formatted == text


NUMBERS = st.one_of(
    st.integers(1, 999).map(str),
    st.decimals(1, 100, places=2).map(lambda number: f"{number:.4g}"),
)


@given(NUMBERS, st.sampled_from(["MB", "GB", "TB", "PB"]))
def test_what_was_written_in_decimal_units_is_answered_in_them(
    number: str, unit: str
) -> None:
    written = f"{float(number):.4g} {unit}"
    assert format_volume(parse_volume(written)) == written
    assert format_bandwidth(parse_bandwidth(f"{written}/s")) == f"{written}/s"


@given(NUMBERS, st.sampled_from(["MiB", "GiB", "TiB", "PiB"]))
def test_what_was_written_in_binary_units_is_answered_in_them(
    number: str, unit: str
) -> None:
    written = f"{float(number):.4g} {unit}"
    assert format_volume(parse_volume(written)) == written
    assert format_bandwidth(parse_bandwidth(f"{written}/s")) == f"{written}/s"


@pytest.mark.parametrize(
    ("amount", "like", "text"),
    [
        (18 * 2**20, 100e6, "18.87 MB"),
        (18 * 2**20, 8 * 2**20, "18 MiB"),
        (50e6, 8 * 2**20, "47.68 MiB"),
        (20 * 2**20, 0.0, "20.97 MB"),
        (41234567.891, None, "41.23 MB"),
        (12.345 * 2**20, None, "12.35 MiB"),
        # The same amount is as short in both: decimal, as elsewhere in the field.
        (512_000, None, "512 kB"),
        (65_536, None, "64 KiB"),
    ],
)
def test_amounts_beside_another_one_have_its_units(
    amount: float, like: float | None, text: str
) -> None:
    assert format_volume(amount, like) == text
    assert format_bandwidth(amount, like) == f"{text}/s"


@given(st.integers(10**6, 10**15).map(float), st.floats(1.0001, 1.9999))
def test_a_measured_amount_is_decimal(amount: float, noise: float) -> None:
    measured = amount * noise * 1.000000123
    assert "iB" not in format_volume(measured)


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("40 Gb/s", "bits are not supported; did you mean GB/s? known"),
        ("40 Gbit/s", "bits are not supported; did you mean GB/s? known"),
        ("40 Gbps", "bits are not supported; did you mean GB/s? known"),
        ("40 GB", "(did you mean GB/s? known"),
        ("40 GiB", "(did you mean GiB/s? known"),
        ("40 GBps", "(did you mean GB/s? known"),
        ("40 mb/s", "(did you mean MB/s? known"),
        ("40 kb/s", "(did you mean kB/s? known"),
        ("40 gib/s", "(did you mean GiB/s? known"),
        ("40 MIB/S", "(did you mean MiB/s? known"),
        ("40 mbit/s", "bits are not supported; did you mean MB/s? known"),
        ("40 parsecs", "(known for a bandwidth: "),
        ("40 s", "(known for a bandwidth: "),
    ],
)
def test_a_wrong_unit_of_a_bandwidth_gets_advice(text: str, advice: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_bandwidth(text)
    assert advice in str(caught.value)


def test_bits_of_a_volume_get_advice() -> None:
    with pytest.raises(InputError, match="bits are not supported; did you mean MB"):
        parse_volume("5 Mbit")
    with pytest.raises(InputError, match=r"\(known for a time: "):
        parse_time("5 Mb")


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs")]
)
def test_one_is_no_plural(number: int, text: str) -> None:
    assert counted(number, "run") == text


def test_an_instant_is_in_the_time_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    try:
        with monkeypatch.context() as patched:
            patched.setenv("TZ", "UTC-2")
            time.tzset()
            assert format_instant(86400.0) == "1970-01-02 02:00:00"
    finally:
        time.tzset()


@pytest.mark.parametrize("text", ["1 h", " 1.5min ", "0", "-0.0 ", "2e3 ns", ".5 d"])
def test_the_pattern_of_times_accepts_what_the_parser_accepts(text: str) -> None:
    parse_time(text)
    assert re.search(quantity_pattern("time"), text)
    assert re.search(quantity_pattern("time", "volume"), text)


@pytest.mark.parametrize("text", ["1", "h", "1 GB", "1 hour", "1 h 2", "inf", "nan s"])
def test_the_pattern_of_times_refuses_what_the_parser_refuses(text: str) -> None:
    with pytest.raises(InputError):
        parse_time(text)
    assert not re.search(quantity_pattern("time"), text)


@pytest.mark.parametrize(("value", "number"), [(3, 3), ("3", 3), (" 12 ", 12)])
def test_whole_numbers_and_their_texts(value: object, number: int) -> None:
    assert parse_whole(value, least=0) == number


@pytest.mark.parametrize("value", [0, -1, "0", "x", "1.5", 1.5, None, True, [1]])
def test_what_is_no_whole_number_from_1_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="is not a whole number of at least 1"):
        parse_whole(value, least=1)


def test_a_whole_number_has_a_limit() -> None:
    assert parse_whole(9, least=1, most=9) == 9
    with pytest.raises(InputError, match="'10' is more than the limit of 9"):
        parse_whole("10", least=1, most=9)
