# SPDX-License-Identifier: MIT
"""Messages survive the wire; anything else is refused in one line."""

from __future__ import annotations

from contextlib import suppress
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.live.wire import messages
from penstock.live.wire.messages import (
    FROM_AGENT,
    FROM_PROGRAM,
    LARGEST_REQUEST_BYTES,
    REPLY,
    TO_AGENT,
    VERSION,
    Decoder,
    Message,
    MessageError,
    encode,
)

TERMS = messages.AgentConfig("control", ["/scratch"], 0.1, 0.1, 3.0, inf, reads=True)
STATUS = messages.StatusDocument("off", "fcfs", 1.0, None, ["n"], 3, [], [])
COUNTS = messages.JobCounters("0:a", 1, 2.0, 3.0, waiting=True, idle_s=inf)
EXAMPLES: list[tuple[Decoder, Message]] = [
    (FROM_PROGRAM, messages.AttachProcess("job", 3, 1e9, "/home")),
    (FROM_PROGRAM, messages.HintVolume("job", 5.0)),
    (FROM_PROGRAM, messages.GetStatus()),
    (FROM_PROGRAM, messages.SetLimit("job", inf)),
    (FROM_PROGRAM, messages.SetMode("dry-run")),
    (REPLY, messages.PageAssigned("/run/page", ["/scratch"])),
    (REPLY, STATUS),
    (FROM_AGENT, messages.AgentHello(["0:a"])),
    (FROM_AGENT, messages.CounterReport([COUNTS], 1)),
    (
        FROM_AGENT,
        messages.UserRequest(1, 1000, trusted=False, request=messages.GetStatus()),
    ),
    (TO_AGENT, TERMS),
    (TO_AGENT, messages.Grants({"0:a": 5.0, "0:b": inf})),
    (TO_AGENT, messages.UserReply(1, STATUS)),
]
DECODERS = (FROM_PROGRAM, REPLY, FROM_AGENT, TO_AGENT)


@pytest.mark.parametrize(("decode", "message"), EXAMPLES)
def test_there_and_back(decode: Decoder, message: Message) -> None:
    assert decode(encode(message)) == message


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", f"message is empty, not of version {VERSION}"),
        (
            bytes([VERSION + 1]) + encode(messages.GetStatus())[1:],
            f"is of version {VERSION + 1}",
        ),
        (encode(messages.GetStatus())[:-1], "not a message"),
        (encode(messages.GetStatus()) + b"x", "not a message"),
        (encode(messages.AgentHello([])), "not a message: Invalid value 'AgentHello'"),
        (encode(messages.AttachProcess("")), "not a message: .*length"),
        (encode(messages.AttachProcess("x" * 1000)), "not a message: .*length"),
        (encode(messages.AttachProcess("x", -1)), "not a message: .*>= 0"),
        (encode(messages.HintVolume("x", -1.0)), "not a message: .*>= 0"),
        (encode(messages.HintVolume("x", nan)), "not a message: .*>= 0"),
        (encode(messages.HintVolume("x", inf)), "not a message: .*<= "),
        (encode(messages.AttachProcess("x", volume_bytes=inf)), "not a message: .*<= "),
        (encode(messages.AttachProcess("x", work_s=inf)), "not a message: .*<= "),
        (encode(messages.SetMode("sideways")), "not a message: Invalid enum"),  # type: ignore[arg-type]
        (bytes([VERSION]) + b"\x91" * 5000, "not a message"),
        (bytes([VERSION]) * (LARGEST_REQUEST_BYTES + 1), "too long"),
    ],
)
def test_anything_else_is_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(MessageError, match=complaint) as caught:
        FROM_PROGRAM(data)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=200), st.booleans(), st.sampled_from(DECODERS))
def test_garbage_is_refused(data: bytes, versioned: bool, decode: Decoder) -> None:
    try:
        message = decode(bytes([VERSION]) + data if versioned else data)
    except MessageError:
        return
    assert isinstance(message, Message)


@given(st.sampled_from(EXAMPLES), st.integers(0, 300), st.integers(0, 255))
def test_a_changed_byte_is_refused_or_another_message(
    example: tuple[Decoder, Message], place: int, value: int
) -> None:
    decode, message = example
    data = bytearray(encode(message))
    data[place % len(data)] = value
    with suppress(MessageError):
        assert isinstance(decode(bytes(data)), Message)


@pytest.mark.parametrize("bad", [inf, nan, -1.0])
def test_counters_are_finite(bad: float) -> None:
    """One infinite total would make the rate of an application NaN for ever."""
    counts = messages.JobCounters("0:a", 1, bad, 3.0, waiting=True, idle_s=0.0)
    use = messages.MountUse(bad, 0.0, 0.0, 0)
    reports = (
        messages.CounterReport([counts], 1),
        messages.MountReport("s", "r", 1, {"a": 1e6}, {"a": use}),
    )
    for report in reports:
        with pytest.raises(MessageError, match=r">= 0|<= 1e\+?30|float"):
            FROM_AGENT(encode(report))
