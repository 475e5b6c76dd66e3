# SPDX-License-Identifier: MIT
"""A message that cannot be encoded raises an `InputError` that names the field."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import (
    AttachProcess,
    ExplainJob,
    FromProgram,
    HintVolume,
    SetBandwidth,
)

REFUSED: dict[str, tuple[FromProgram, str]] = {
    "number": (
        AttachProcess("a", nodes=10**30),
        "cannot be sent: can't serialize ints",
    ),
    "not-text": (ExplainJob("\udcff"), "cannot be sent: 'utf-8' codec"),
    "negative": (
        SetBandwidth(-5.0),
        "bandwidth: expected a number of at least 0 (give",
    ),
    "long": (AttachProcess("a" * 5000), "job: expected a text of at most 200 ch"),
    "empty": (ExplainJob(""), "job: expected a text that is not empty (give"),
    "signs": (
        AttachProcess("a\nb"),
        "job: expected a text without control characters (",
    ),
    "other-signs": (
        AttachProcess("a\x9b2Jb"),
        "job: expected a text without control characters (",
    ),
    "other-line": (
        AttachProcess("a\u2028b"),
        "job: expected a text without control characters (",
    ),
    "volume": (HintVolume("a", -1.0), "volume: expected a number of at least 0 (give"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_message_is_checked_before_it_is_sent(case: str, tmp_path: Path) -> None:
    message, words = REFUSED[case]
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with Client(path) as client, pytest.raises(InputError) as caught:
            client.ask(message)
    assert words in str(caught.value)
    assert "$" not in str(caught.value)
