# SPDX-License-Identifier: MIT
"""Messages as bytes: `encode`, and a `Decoder` for each direction."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from penstock.live.wire.messages.answers import Reply
from penstock.live.wire.messages.control import FromAgent, ToAgent
from penstock.live.wire.messages.message import (
    LARGEST_BYTES,
    LARGEST_REQUEST_BYTES,
    VERSION,
    Message,
    MessageError,
)
from penstock.live.wire.messages.mounts import MountCredit, MountReport
from penstock.live.wire.messages.requests import FromProgram

__all__ = [
    "FROM_AGENT",
    "FROM_PROGRAM",
    "REPLY",
    "TO_AGENT",
    "TO_MOUNT",
    "Decoder",
    "encode",
    "too_long_error",
]

_ENCODER: Final = msgspec.msgpack.Encoder()


def encode(message: Message) -> bytes:
    """Return a message as bytes."""
    return bytes([VERSION]) + _ENCODER.encode(message)


def too_long_error(size_bytes: int) -> MessageError:
    """Return the error for a message of this size."""
    return MessageError(f"a message of {size_bytes} bytes is too long")


class Decoder:
    """Decodes messages of given kinds.

    Parameters
    ----------
    kinds
        Union of the kinds of messages to accept.
    largest_bytes
        Size of the longest message to accept.
    """

    def __init__(self, kinds: Any, largest_bytes: int) -> None:
        self.largest_bytes = largest_bytes
        self._decoder: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(kinds)

    def __call__(self, data: bytes) -> Any:
        """Return the message in `data`, or raise `MessageError`."""
        if len(data) > self.largest_bytes:
            raise too_long_error(len(data))
        if not data or data[0] != VERSION:
            version = f"of version {data[0]}" if data else "empty"
            raise MessageError(
                f"a message is {version}, not of version {VERSION}",
                remedy="use the same version of penstock on both sides",
            )
        try:
            return self._decoder.decode(memoryview(data)[1:])
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise MessageError(f"not a message: {error}") from None


FROM_PROGRAM: Final = Decoder(FromProgram, LARGEST_REQUEST_BYTES)
REPLY: Final = Decoder(Reply, LARGEST_BYTES)
FROM_AGENT: Final = Decoder(FromAgent | MountReport, LARGEST_BYTES)
TO_AGENT: Final = Decoder(ToAgent, LARGEST_BYTES)
TO_MOUNT: Final = Decoder(MountCredit, LARGEST_BYTES)
