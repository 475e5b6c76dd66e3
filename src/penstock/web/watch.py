# SPDX-License-Identifier: MIT
"""Watches the daemon for all browsers: one poll per second, however many there are.

A browser has no queue here. `events` remembers the number of the last poll that it has
sent, and sends the latest one when there is news. Polls that a slow or reconnected
browser has missed become one event ``picture``. So a browser misses nothing, and costs
no memory if it does not read.

Events (server-sent) and their data, all JSON:

| event | data |
|---|---|
| ``picture`` | `picture` of missed polls; ``reset``: it replaces what was there |
| ``status`` | the document of ``ctl status --json -``, ``why`` empty, and ``time`` |
|  | ``rates``: job key -> bytes/s since the poll before, without jobs at 0 |
|  | ``users``: user id -> name, of those whose names are known |
| ``mounts`` | ``mounts``: the status of each mount; for operators only |
| ``silence`` | ``since``: instant of the last answer or null; ``reason``; |
|  | ``ended``: whether the rights of the reader have ended |

The id of an event is the run of this process and the number of the poll. A browser
sends it back when it reconnects.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import msgspec

from penstock.errors import PenstockError
from penstock.live.wire.messages import ControllerRequest, GetStatus, StatusDocument
from penstock.mount.control import MountStatus
from penstock.web.identity.readers import Reader
from penstock.web.identity.user_names import UserNames
from penstock.web.pictures.picture import RecentRates, picture

__all__ = ["Poll", "StatusSource", "Watch", "event_text"]

#: Time between two polls (s).
_POLL_S: Final = 1.0
#: A comment is sent if there was no news for this long: proxies cut silent lines (s).
_ALIVE_S: Final = 15.0
#: When a browser connects again after it has lost the connection (ms).
_RETRY_MS: Final = 2000


class StatusSource(Protocol):
    """Answers requests to the daemon."""

    async def ask(self, request: ControllerRequest) -> Any:
        """Return the answer; raise `PenstockError` if there is none."""


@dataclass(frozen=True, slots=True)
class Poll:
    """One answer of the daemon."""

    number: int
    time_s: float
    """Seconds since 1970."""
    status: StatusDocument
    """The status of all jobs, without explanations."""
    mounts: Sequence[MountStatus] = ()


def event_text(name: str, document: Any, event_id: str = "") -> bytes:
    """Return a server-sent event; JSON has no line ends."""
    identity = f"id: {event_id}\n" if event_id else ""
    data = msgspec.json.encode(document)
    return f"{identity}event: {name}\ndata: ".encode() + data + b"\n\n"


class Watch:
    """Polls the daemon, and gives what it says to all browsers.

    Parameters
    ----------
    mounts
        Returns the status of all mounts; called in a thread, because a mount may take
        long to answer.
    wall
        The wall clock (s).
    names
        The names of users; None: those of this machine.
    """

    def __init__(
        self,
        source: StatusSource,
        mounts: Callable[[], Sequence[MountStatus]] = lambda: (),
        wall: Callable[[], float] = time.time,
        names: UserNames | None = None,
    ) -> None:
        self._source = source
        self._mounts = mounts
        self._wall = wall
        self._run = secrets.token_hex(4)
        self._number = 0
        self._news = asyncio.Event()
        self._is_closed = False
        self._recent = RecentRates()
        self._names = names or UserNames()
        self._mount_task: asyncio.Task[Sequence[MountStatus]] | None = None
        self._last_mounts: Sequence[MountStatus] = ()
        #: Event -> text, for the readers of the latest poll.
        self._texts: dict[tuple[str, Reader], bytes] = {}
        self.latest: Poll | None = None
        """The last answer of the daemon."""
        self.silence = "the daemon was not asked yet"
        """Why the last poll had no answer; "" if it had one."""

    def job_words(self, job_key: str) -> str:
        """Return a job key, UID:NAME, as USER:NAME if the name of the user is known."""
        user, _, job_name = job_key.partition(":")
        return f"{self._names.known([int(user)]).get(user, user)}:{job_name}"

    # --- Polls ------------------------------------------------------------------------

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            begun_s = time.monotonic()
            await self.poll()
            await asyncio.sleep(max(begun_s + _POLL_S - time.monotonic(), 0.0))

    async def poll(self) -> None:
        """Ask the daemon once; wake all readers."""
        try:
            status = await self._source.ask(GetStatus(explains=False))
        except PenstockError as error:
            self.silence = str(error)
        else:
            self._number += 1
            now_s = self._wall()
            self.latest = Poll(self._number, now_s, status, self._mounts_now())
            self._recent.add(self._number, now_s, status)
            self._texts.clear()
            self.silence = ""
        self._wake_readers()

    def close(self) -> None:
        """End the events of all readers."""
        self._is_closed = True
        self._wake_readers()

    def _wake_readers(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def _mounts_now(self) -> Sequence[MountStatus]:
        """Return the last known status of the mounts; ask for the next one."""
        task = self._mount_task
        if task is None or task.done():
            if task is not None and not task.cancelled() and not task.exception():
                self._last_mounts = task.result()
            self._mount_task = asyncio.create_task(asyncio.to_thread(self._mounts))
        return self._last_mounts

    # --- Readers ----------------------------------------------------------------------

    async def events(
        self,
        reader: Reader,
        last_id: str = "",
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> AsyncIterator[bytes]:
        """Yield the events for one reader.

        Parameters
        ----------
        last_id
            Id of the last event that the browser has got; "" if it is new.
        may_go_on
            Returns False if the rights of the reader have ended.
        """
        sent = self._number_of(last_id)
        yield f"retry: {_RETRY_MS}\n\n".encode()
        while may_go_on() and not self._is_closed:
            news = self._news
            if self.silence:
                yield self._silence_event(self.silence)
            elif self.latest is not None and self.latest.number != sent:
                poll = self.latest
                for text in await self._events_of(poll, sent, reader):
                    yield text
                sent = poll.number
            try:
                await asyncio.wait_for(news.wait(), _ALIVE_S)
            except TimeoutError:
                yield b": no news\n\n"
        if not self._is_closed:
            yield self._silence_event("Your access has ended: log in again", ended=True)

    def _number_of(self, event_id: str) -> int | None:
        """Return the number of a poll of this run; None for any other id."""
        run, _, number = event_id.partition("-")
        if run != self._run or not number.isascii() or not number.isdecimal():
            return None
        # More digits than any poll has, sent by a browser that does not mean well.
        return int(number[:15])

    async def _events_of(
        self, poll: Poll, sent: int | None, reader: Reader
    ) -> list[bytes]:
        """Return the events for a reader whose last poll was `sent`."""
        texts = [self._text("status", reader, poll)]
        if reader.user is None and (poll.mounts or sent is None):
            texts.append(self._text("mounts", reader, poll))
        if sent is None or sent < poll.number - 1:
            missed = self._recent.after(sent or 0)[:-1]
            # An hour of 1,000 jobs takes a second: not in the loop.
            document = await asyncio.to_thread(picture, missed, reader)
            document["reset"] = sent is None
            texts.insert(0, event_text("picture", document))
        return texts

    def _text(self, name: str, reader: Reader, poll: Poll) -> bytes:
        """Return an event; readers with the same rights share its text."""
        text = self._texts.get((name, reader))
        if text is None:
            if name == "mounts":
                document: dict[str, Any] = {"mounts": poll.mounts}
            else:
                status = reader.part_of(poll.status).document()
                document = status | {
                    "time": poll.time_s,
                    "rates": self._recent.latest_rates(reader),
                    "users": self._names.known(line["user"] for line in status["jobs"]),
                }
            text = event_text(name, document, f"{self._run}-{poll.number}")
            self._texts[name, reader] = text
        return text

    def _silence_event(self, reason: str, *, ended: bool = False) -> bytes:
        since_s = None if self.latest is None else self.latest.time_s
        document = {"since": since_s, "reason": reason, "ended": ended}
        return event_text("silence", document)
