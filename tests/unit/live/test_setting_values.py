# SPDX-License-Identifier: MIT
"""Parsers of settings: what they return, what they refuse, and their schemas."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.live.setting_values import (
    SCHEMAS,
    choice,
    class_pairs,
    duration,
    folders,
    host_and_port,
    one_of,
    plain_text,
    priority_pairs,
    rate_or,
    rates,
    switch,
    tcp_address,
    unlimited_rate,
    volume,
    web_address,
)

jsonschema = pytest.importorskip("jsonschema", reason="checks schemas")

Parser = Callable[[Any], Any]
COLOUR = choice("red", "green")
SHORT = duration(0.5, 60.0)
RATE = rate_or("learn")
#: Parser, value in a file, and what the parser returns.
ACCEPTED: list[tuple[Parser, Any, Any]] = [
    (COLOUR, "red", "red"),
    (SHORT, "2 s", 2.0),
    (SHORT, "500 ms", 0.5),
    (RATE, "20 MB/s", 2e7),
    (RATE, "learn", "learn"),
    (unlimited_rate, "unlimited", inf),
    (volume, "2 GB", 2e9),
    (switch, "no", False),
    (switch, True, True),
    (plain_text, "x", "x"),
    (tcp_address, "tcp://n1:9999", "tcp://n1:9999"),
    (tcp_address, "", ""),
    (host_and_port, "[::1]:80", "[::1]:80"),
    (host_and_port, "", ""),
    (web_address, "unix:/run/page.sock", "unix:/run/page.sock"),
    (web_address, "localhost:80", "localhost:80"),
    (folders, "/a:/b", ("/a", "/b")),
    (folders, ["/a", "/b"], ("/a", "/b")),
    (rates, "1 MB/s, 2 MB/s,500 kB/s", (1e6, 2e6, 5e5)),
    (rates, "", ()),
    (
        priority_pairs,
        "urgent=10, back fill = -2.5",
        (("urgent", 10.0), ("back fill", -2.5)),
    ),
    (priority_pairs, "", ()),
    (
        class_pairs,
        "climate*=peak, x? =descent",
        (("climate*", "peak"), ("x?", "descent")),
    ),
]
#: Parser, value that it refuses, and a part of the message.
REFUSED: list[tuple[Parser, Any, str]] = [
    (COLOUR, "gren", "did you mean 'green'"),
    (SHORT, "61 s", "'61 s' is out of range (give 0.5 to 60 seconds)"),
    (SHORT, 3, "'3' has no unit"),
    (RATE, "0 B/s", "is not a positive bandwidth"),
    (RATE, "lern", "did you mean learn?"),
    (volume, "1 kB", "is too small"),
    (switch, "perhaps", "is not yes or no"),
    (switch, [1], "is not yes or no"),
    (plain_text, 3, "is not a text"),
    (tcp_address, "tcp://n1:0", "is not an address"),
    (host_and_port, "n1:65536", "is not an address"),
    (host_and_port, "80", "is not an address"),
    (host_and_port, ":9400", "is not an address"),
    (host_and_port, "n1:0", "is not an address"),
    (web_address, "unix:page.sock", "is not an address"),
    (web_address, "unix:/", "names no socket"),
    (folders, "a", "is not an absolute path"),
    (folders, 3, "is not a list of folders"),
    (rates, "fast", "fast"),
    (rates, "1 MB/s, 0 B/s", "is not a positive bandwidth"),
    (rates, "1 MB/s,,2 MB/s", "''"),
    (priority_pairs, 0, "is not a text"),
    (priority_pairs, "a=1000000001", "give -1000000000 to 1000000000"),
    (priority_pairs, "a=x", "is not a list of priorities"),
    (priority_pairs, "=1", "is not a list of priorities"),
    (class_pairs, [], "is not a text"),
    (class_pairs, "climate=fast", "ascent, descent, peak, neutral"),
]


@pytest.mark.parametrize(("parse", "value", "expected"), ACCEPTED)
def test_a_value_is_accepted_by_the_parser_and_its_schema(
    parse: Parser, value: Any, expected: Any
) -> None:
    assert parse(value) == expected
    assert jsonschema.Draft202012Validator(SCHEMAS[parse]).is_valid(value)


@pytest.mark.parametrize(("parse", "value", "problem"), REFUSED)
def test_a_wrong_value_is_refused_with_the_reason(
    parse: Parser, value: Any, problem: str
) -> None:
    with pytest.raises(InputError, match=re.escape(problem)):
        parse(value)


def test_words_of_a_placeholder() -> None:
    assert one_of("own", "all") == "{own,all}"


def test_no_schema_of_a_bandwidth_accepts_0() -> None:
    for parse in (RATE, unlimited_rate):
        assert not jsonschema.Draft202012Validator(SCHEMAS[parse]).is_valid(0)
        with pytest.raises(InputError, match="is not a positive bandwidth"):
            parse(0)
