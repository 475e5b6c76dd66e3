# SPDX-License-Identifier: MIT
"""The shapes of files: their keys, and the kinds of phases that readers know."""

from __future__ import annotations

import re

import msgspec
import pytest

from penstock.model.formats import (
    NAME,
    PHASES,
    ApplicationFormat,
    InstanceFormat,
    ProblemFormat,
    optional_keys,
    required_keys,
)


def test_keys_are_required_or_optional() -> None:
    assert required_keys(InstanceFormat) == {
        *("penstock", "platform", "window", "applications"),
    }
    assert optional_keys(InstanceFormat) == set()
    assert required_keys(ApplicationFormat) == {"name", "nodes", "release", "phases"}
    assert {"start", "period", "bandwidth"} <= optional_keys(ApplicationFormat)


@pytest.mark.parametrize("shape", [InstanceFormat, ProblemFormat])
def test_schemas_refuse_unknown_keys(shape: type[msgspec.Struct]) -> None:
    for name, part in msgspec.json.schema(shape)["$defs"].items():
        if "properties" in part:
            assert part["additionalProperties"] is False, name


def test_every_kind_of_phase_has_a_parser() -> None:
    assert PHASES["work"][1]("2 min") == 120.0
    assert PHASES["io"][1]("2 kB") == 2000.0


@pytest.mark.parametrize("name", ["a", "ä b", "x" * 1000, "🙂"])
def test_names(name: str) -> None:
    assert re.search(NAME, name)


@pytest.mark.parametrize("name", ["", "a\tb", "a\x7f", "\x85", "a\u2028"])
def test_texts_that_are_no_names(name: str) -> None:
    assert not re.search(NAME, name)
