# SPDX-License-Identifier: MIT
"""What operators change on the page, who did it, and how it is undone.

An act is a JSON document such as ``{"act": "policy", "policy": "fcfs"}``. Quantities
are texts, as on the command line: ``"20 MB/s"``, ``"learn"``, ``"none"``. The act that
undoes another one is made of the status before it, and is an act like any other.

The list is kept in a file beside the histories of jobs, so that a restart of the daemon
does not lose it. It then says when the daemon began anew: from there on its settings
hold again, and the limits of jobs that still run.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from penstock.errors import InputError, plain_mismatch
from penstock.live.daemon.kept_file import KeptContent, KeptFile
from penstock.live.wire.messages import (
    ControllerRequest,
    GetStatus,
    ModeName,
    SetBandwidth,
    SetLimit,
    SetMode,
    SetPolicy,
    StatusDocument,
)
from penstock.units import parse_bandwidth
from penstock.web.identity.readers import Reader

__all__ = [
    "Act",
    "ActEntry",
    "ActLog",
    "ActSource",
    "BandwidthAct",
    "DaemonStart",
    "LimitAct",
    "ModeAct",
    "PolicyAct",
    "decode_act",
]

_LOG: Final = logging.getLogger("penstock.web")
#: Acts that are remembered.
_MOST: Final = 100
_VERSION: Final = 1
_LEARN: Final = "learn"
_NONE: Final = "none"


class PolicyAct(msgspec.Struct, frozen=True, tag_field="act", tag="policy"):
    """Switch to another policy."""

    policy: str

    def request(self) -> ControllerRequest:
        """Return the message to the daemon."""
        return SetPolicy(self.policy)

    def undo(self, before: StatusDocument) -> Act | None:
        """Return the act that brings a status back; None if it is not known."""
        return PolicyAct(before.policy)


class BandwidthAct(msgspec.Struct, frozen=True, tag_field="act", tag="bandwidth"):
    """Set the bandwidth that is shared, or ``learn`` it."""

    bandwidth: str

    def request(self) -> ControllerRequest:
        """Return the message to the daemon."""
        return SetBandwidth(_rate(self.bandwidth, _LEARN, "bandwidth"))

    def undo(self, before: StatusDocument) -> Act | None:
        """Return the act that brings a status back; None if it is not known."""
        learns = any(storage.learns for storage in before.storages)
        if learns or before.bandwidth is None:
            return BandwidthAct(_LEARN)
        return BandwidthAct(f"{before.bandwidth!r} B/s")


class LimitAct(msgspec.Struct, frozen=True, tag_field="act", tag="limit"):
    """Limit the grant of a job; ``none`` removes the limit."""

    job: str
    """Name or key of the job."""
    limit: str

    def request(self) -> ControllerRequest:
        """Return the message to the daemon."""
        limit = _rate(self.limit, _NONE, "limit")
        return SetLimit(self.job, inf if limit is None else limit)

    def exact(self, before: StatusDocument) -> LimitAct:
        """Return this act with the key of its job.

        A name that no job or several jobs have stays: the daemon refuses it.
        """
        keys = [f"{line.user}:{line.job_name}" for line in before.jobs]
        if self.job in keys:
            return self
        named = [key for key in keys if key.partition(":")[2] == self.job]
        return LimitAct(named[0], self.limit) if len(named) == 1 else self

    def undo(self, before: StatusDocument) -> Act | None:
        """Return the act that brings a status back; None if it is not known."""
        for line in before.jobs:
            if self.job == f"{line.user}:{line.job_name}":
                limit = _NONE if line.limit is None else f"{line.limit!r} B/s"
                return LimitAct(self.job, limit)
        return None


class ModeAct(msgspec.Struct, frozen=True, tag_field="act", tag="mode"):
    """Switch control on, off, or to a dry run."""

    mode: ModeName

    def request(self) -> ControllerRequest:
        """Return the message to the daemon."""
        return SetMode(self.mode)

    def undo(self, before: StatusDocument) -> Act | None:
        """Return the act that brings a status back; None if it is not known."""
        return decode_act(msgspec.json.encode({"act": "mode", "mode": before.mode}))


class DaemonStart(msgspec.Struct, frozen=True, tag_field="act", tag="start"):
    """The daemon began anew; nobody did this on the page."""


Act = PolicyAct | BandwidthAct | LimitAct | ModeAct
_DECODER: Final[msgspec.json.Decoder[Act]] = msgspec.json.Decoder(Act)


def decode_act(text: bytes) -> Act:
    """Return the act in a JSON document; raise `InputError` if it is not one."""
    try:
        return _DECODER.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"is not an act: {plain_mismatch(str(error))}",
            remedy='e.g. {"act": "policy", "policy": "fcfs"}',
        ) from None


def _rate(text: str, word: str, where: str) -> float | None:
    """Return a positive bandwidth (bytes/s), or None for this word."""
    if text == word:
        return None
    try:
        rate = parse_bandwidth(text)
    except InputError as error:
        raise error.at(where) from None
    if rate <= 0.0:
        raise InputError(
            f"{text!r} is not positive",
            where=where,
            remedy=f'write a rate such as "20 MB/s", or {word}',
        )
    return rate


class ActEntry(msgspec.Struct, frozen=True):
    """What is remembered of an act."""

    time_s: float = msgspec.field(name="time")
    """Seconds since 1970."""
    reader: str
    """Who did it; "" for a start of the daemon."""
    act: Act | DaemonStart
    answer: str
    """What the daemon said."""
    undo: Act | None
    """The act that brings the status before it back; None: it is not known."""


class _ActFile(KeptContent, frozen=True):
    acts: list[ActEntry]
    """The oldest first."""


class ActSource(Protocol):
    """Answers requests to the daemon with the rights of a reader."""

    async def ask(self, request: ControllerRequest, reader: Reader) -> Any:
        """Return the answer; raise `PenstockError` if there is none."""


class ActLog:
    """Carries out acts, and remembers the last ones.

    Parameters
    ----------
    wall
        The wall clock (s).
    path
        File in which they are kept; None: they are forgotten at the end.
    started_s
        When the daemon began (s since 1970).
    """

    def __init__(
        self,
        source: ActSource,
        wall: Callable[[], float] = time.time,
        path: Path | None = None,
        started_s: float = 0.0,
    ) -> None:
        self._source = source
        self._wall = wall
        self._file = path and KeptFile(
            *(path, _ActFile, _VERSION, _LOG),
            consequence="the change is carried out, but not kept",
        )
        kept = self._file.read() if self._file else None
        self._done: deque[ActEntry] = deque(kept.acts if kept else (), maxlen=_MOST)
        if self._done and self._done[-1].time_s < started_s:
            started = ActEntry(started_s, "", DaemonStart(), "", None)
            self._done.append(started)
        self._turn = asyncio.Lock()

    async def carry_out(self, act: Act, reader: Reader) -> ActEntry:
        """Carry out an act; return what is remembered of it.

        The daemon refuses readers who are not operators.

        Raises
        ------
        PenstockError
            If the daemon refuses, or does not answer.
        """
        # Bad quantities are refused before the daemon is asked.
        act.request()
        # One after the other: what undoes an act is what was there directly before.
        async with self._turn:
            before = await self._source.ask(GetStatus(explains=False), reader)
            if isinstance(act, LimitAct):
                act = act.exact(before)
            answer = await self._source.ask(act.request(), reader)
            undo = act.undo(before)
            entry = ActEntry(self._wall(), reader.name, act, answer.text, undo)
            self._done.append(entry)
            if self._file:
                content = _ActFile(_VERSION, list(self._done))
                await asyncio.to_thread(self._file.write, content)
        # An act is text of a user: in the log it stands in one line, as JSON.
        text = msgspec.json.encode(act).decode()
        _LOG.info("%s on the web page: %s", reader.name, text)
        return entry

    def entries(self) -> list[ActEntry]:
        """Return the last acts, the latest first."""
        return list(reversed(self._done))
