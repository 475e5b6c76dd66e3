# SPDX-License-Identifier: MIT
"""Values of settings: what parsers accept, and what their schemas say."""

from __future__ import annotations

import re
from math import inf
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.live import setting_values
from penstock.live.setting_values import (
    choice_of,
    duration_between,
    parse_folders,
    parse_job_classes,
    parse_priorities,
    parse_rates,
    parse_switch,
    parse_unlimited_rate,
    rate_or,
    value_schema,
)


def test_rates_are_a_list_in_order() -> None:
    assert parse_rates("1 MB/s, 2 MB/s,500 kB/s") == (1e6, 2e6, 5e5)
    assert parse_rates("") == ()


@pytest.mark.parametrize(
    "text", ["fast", "1 MB/s,,x", "1 MB/s, 0 B/s", "1 MB/s 2 MB/s"]
)
def test_a_rate_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_rates(text)


def test_priorities_are_pairs() -> None:
    assert parse_priorities("urgent=10, back fill = -2.5") == (
        ("urgent", 10.0),
        ("back fill", -2.5),
    )
    assert parse_priorities("") == ()


def test_classes_are_pairs_of_a_pattern_and_a_class() -> None:
    assert parse_job_classes("climate*=peak, x? =descent") == (
        ("climate*", "peak"),
        ("x?", "descent"),
    )
    with pytest.raises(InputError, match="ascent, descent, peak, neutral"):
        parse_job_classes("climate=fast")


@pytest.mark.parametrize(
    ("parse", "right", "wrong"),
    [
        (parse_priorities, ["", "a=1", "a=1,b=-2"], ["a", "a=", "=1", "a=x"]),
        (parse_job_classes, ["", "a*=peak", "a=peak,b=neutral"], ["a", "a=steep"]),
    ],
)
def test_the_schema_accepts_what_the_parser_accepts(
    parse: Any, right: list[str], wrong: list[str]
) -> None:
    pattern = value_schema(parse)["pattern"]
    for text in right:
        assert parse(text) is not None
        assert re.search(pattern, text)
    for text in wrong:
        assert not re.search(pattern, text)
        with pytest.raises(InputError):
            parse(text)


def test_a_parser_of_choices_knows_only_its_words() -> None:
    parse = choice_of("control", "off")
    assert parse("off") == "off"
    with pytest.raises(InputError, match="control"):
        parse("contrl")
    assert value_schema(parse) == {"enum": ["control", "off"]}


def test_words_beside_rates() -> None:
    parse = rate_or("learn", "measure")
    assert (parse("learn"), parse("3 MB/s")) == ("learn", 3e6)
    with pytest.raises(InputError, match="did you mean learn"):
        parse("lern")
    assert parse_unlimited_rate("unlimited") == inf


def test_a_time_must_be_in_its_range() -> None:
    parse = duration_between(1.0, 60.0)
    assert parse("1 min") == 60.0
    with pytest.raises(InputError, match="give 1 to 60 seconds"):
        parse("2 min")


def test_switches_and_folders() -> None:
    assert (parse_switch("yes"), parse_switch(False)) == (True, False)
    assert parse_folders("/a:/b:") == parse_folders(["/a", "/b"]) == ("/a", "/b")
    with pytest.raises(InputError, match="is not an absolute path"):
        parse_folders("a")


def test_every_parser_has_a_schema() -> None:
    parsers = [name for name in setting_values.__all__ if name.startswith("parse_")]
    assert all(value_schema(getattr(setting_values, name)) for name in parsers)
