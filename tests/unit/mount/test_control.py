# SPDX-License-Identifier: MIT
"""What is said through the socket of a mount."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.errors import InputError, UnavailableError
from penstock.mount.control import (
    GetMountStatus,
    SetLimits,
    SetObjectives,
    Stop,
    ask,
    decode_question,
    encode,
    limits_document,
)
from penstock.mount.limiter import Limits
from penstock.mount.points import Mounted

RATES = st.none() | st.floats(1e-3, 1e15)


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("total", "read", "write"), RATES))
)
def test_limits_survive_the_way_and_those_not_named_stay(
    rates: dict[str, float | None],
) -> None:
    question = decode_question(encode(SetLimits(**rates)))
    assert isinstance(question, SetLimits)
    before = Limits(1.0, 2.0, inf)
    expected = limits_document(before) | rates
    assert limits_document(question.applied(before)) == expected


def test_other_questions_survive_the_way() -> None:
    for question in (GetMountStatus(), Stop(), SetObjectives({"applications": {}})):
        assert type(decode_question(encode(question))) is type(question)


@given(st.binary().filter(lambda line: b"type" not in line))
@example(b'{"type":"\xff"}')
@example(b'{"type":"objectives","document":{"a":"\xff"}}')
@example(b'{"type":"objectives","document":[]}')
def test_garbage_is_refused_in_one_way(line: bytes) -> None:
    with pytest.raises(InputError, match="not a question"):
        decode_question(line)


@pytest.mark.parametrize("rate", ["0", "-1", '"fast"', "true"])
def test_rates_that_are_none_are_refused(rate: str) -> None:
    with pytest.raises(InputError):
        decode_question(b'{"type":"limits","total":%s}' % rate.encode())


def test_a_mount_that_does_not_answer(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="does not answer"):
        ask(tmp_path, Mounted("/mnt", "0:57", "fuse.penstock"), GetMountStatus())
