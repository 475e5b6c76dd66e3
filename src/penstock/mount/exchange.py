# SPDX-License-Identifier: MIT
"""The link of a mount to the controller that shares storages among mounts.

A thread sends a report once per period and receives the credit of this mount
(`penstock.qos.credit`), over ZeroMQ with CURVE keys. `CreditLink` calls two functions:
one returns what the applications have used, one applies the credit.

The mount never waits for the controller. Reports that cannot be sent are dropped; the
next one holds the same totals. When no credit comes, the lease of the last one ends and
the mount serves without limits from others. A lease begins when the report was sent
that the credit answers, so credit that comes late holds for less time, or not at all.
Each state (connected, no answer, wrong key, error) is logged once.
"""

from __future__ import annotations

import logging
import platform
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

import msgspec

from penstock.errors import InputError
from penstock.live.wire.messages import (
    TO_MOUNT,
    MessageError,
    MountCredit,
    MountReport,
    MountUse,
    encode,
)
from penstock.mount.callbacks import ErrorLog
from penstock.qos import ApplicationUse
from penstock.qos.credit.allocator import LEASE_S, PERIOD_S

__all__ = ["CreditLink", "ExchangeSettings", "MountState"]

_LOG: Final = logging.getLogger("penstock.mount")
#: Without credit for this time the mount says that nobody answers.
_NO_ANSWER_S: Final = 3 * LEASE_S
#: Longest wait for the end of the thread.
_CLOSE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class ExchangeSettings:
    """The controller of a mount, and the storage that it shares with other mounts."""

    controller: str
    """ZeroMQ address, ``tcp://HOST:PORT``."""
    keys: Path
    """Folder with ``agent.key_secret`` and ``controller.key``."""
    storage: str
    """Mounts that name the same storage share it."""


@dataclass(frozen=True, slots=True)
class MountState:
    """What a mount reports."""

    promises: Mapping[str, float]
    """Application -> promised throughput (bytes/s)."""
    uses: Mapping[str, ApplicationUse]


class CreditLink:
    """Sends reports to a controller and receives credit, in a thread.

    Parameters
    ----------
    settings
        Controller, keys and storage. Wrong ones raise `InputError`.
    state
        Returns what to report; called in the thread of the link.
    apply
        Applies a credit; called in the thread of the link.
    """

    def __init__(
        self,
        settings: ExchangeSettings,
        state: Callable[[], MountState],
        apply: Callable[[MountCredit], None],
    ) -> None:
        self.problem = "no answer yet"
        """Why there is no credit; empty if there is."""
        self._settings = settings
        self._state, self._apply = state, apply
        self._run = secrets.token_hex(8)
        self._number = 0
        self._sent_s: deque[tuple[int, float]] = deque()
        """Number, and time of sending, of the reports of the last lease."""
        self._applied = ("", 0)
        """Run of the controller, and number, of the credit applied last."""
        self._credit_s = self._keys_s = time.monotonic()
        self._conflicts: list[str] = []
        self._stop = threading.Event()
        self._open()
        self._thread = threading.Thread(target=self._serve, name="credit", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread and close the socket."""
        self._stop.set()
        self._thread.join(timeout=_CLOSE_S)
        self._context.destroy(linger=0)

    def words(self) -> str:
        """Return where credit comes from, or why there is none."""
        return self.problem or f"from {self._settings.controller}"

    def _open(self) -> None:
        import zmq  # noqa: PLC0415 - mounts without exchange need no ZeroMQ

        from penstock.live.wire.curve import (  # noqa: PLC0415
            KeyWatch,
            attach,
            prepare_client,
        )

        self._key_watch = KeyWatch(self._settings.keys)
        with ExitStack() as stack:
            self._context = zmq.Context()
            stack.callback(self._context.destroy, linger=0)
            self._socket = self._context.socket(zmq.DEALER)
            prepare_client(self._socket, self._settings.keys)
            self._socket.identity = f"mount:{platform.node()}:{self._run}".encode()
            refused = (
                zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
            )
            refused |= zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
            self._refusals = self._socket.get_monitor_socket(refused)
            attach(self._socket.connect, self._settings.controller)
            # Everything succeeded: keep the context.
            stack.pop_all()

    # --- The thread -------------------------------------------------------------------

    def _serve(self) -> None:
        """Send and receive until `close`."""
        errors = ErrorLog("the link to the controller")
        # Main loop of the link.
        while not self._stop.is_set():
            is_done = False
            with errors:
                self._exchange()
                is_done = True
            if not is_done:
                # The link goes on: the error may concern one credit, or end.
                self._report_problem("the link to the controller fails: see the log")
                self._stop.wait(PERIOD_S)

    def _exchange(self) -> None:
        """Send a report, and receive credit for one period."""
        self._send_report()
        next_s = time.monotonic() + PERIOD_S
        while (left_s := next_s - time.monotonic()) > 0:
            if self._socket.poll(int(left_s * 1000) + 1):
                self._receive()
        self._update_problem()
        self._follow_keys()

    def _follow_keys(self) -> None:
        """Connect anew if the keys were replaced."""
        from penstock.live.wire.curve import KEYS_S, renew_client  # noqa: PLC0415

        now_s = time.monotonic()
        if now_s - self._keys_s < KEYS_S:
            return
        self._keys_s = now_s
        if not self._key_watch.has_changed():
            return
        settings = self._settings
        try:
            renew_client(self._socket, settings.keys, settings.controller)
        except InputError as error:
            _LOG.warning("the new keys are not used: %s", error)
        else:
            _LOG.info("the new keys in %s are used", settings.keys)

    def _send_report(self) -> None:
        import zmq  # noqa: PLC0415

        state = self._state()
        self._number += 1
        report = MountReport(
            storage=self._settings.storage,
            run=self._run,
            number=self._number,
            promises=dict(state.promises),
            uses={name: MountUse(*use) for name, use in state.uses.items()},
        )
        now_s = time.monotonic()
        self._sent_s.append((self._number, now_s))
        while now_s - self._sent_s[0][1] > LEASE_S:
            self._sent_s.popleft()
        try:
            self._socket.send(encode(report), zmq.NOBLOCK)
        except zmq.Again:
            # Not connected, or slow: the next report holds the same totals.
            return

    def _receive(self) -> None:
        try:
            credit = TO_MOUNT(b"".join(self._socket.recv_multipart()))
        except MessageError as error:
            self._report_problem(f"the controller: {error}")
            return
        run, number = self._applied
        is_new = credit.controller != run or credit.number > number
        if credit.run != self._run or not is_new:
            return
        self._applied = credit.controller, credit.number
        left_s = self._left_s(credit)
        if left_s <= 0.0:
            return
        self._apply(msgspec.structs.replace(credit, lease_s=left_s))
        self._credit_s = time.monotonic()
        self._report_problem("")
        self._report_conflicts(credit.conflicts)

    def _left_s(self, credit: MountCredit) -> float:
        """Return how long a credit still holds: a lease counts from its report.

        A credit may have waited for long in this process, or in the network.
        """
        sent_s = dict(self._sent_s).get(credit.report)
        if sent_s is None:
            return 0.0
        return min(credit.lease_s, LEASE_S) - (time.monotonic() - sent_s)

    # --- The log ----------------------------------------------------------------------

    def _update_problem(self) -> None:
        where = self._settings.controller
        if self._was_refused():
            self._report_problem(
                f"the controller at {where} refuses the keys in {self._settings.keys} "
                "(copy agent.key_secret and controller.key from its folder)"
            )
        elif time.monotonic() - self._credit_s > _NO_ANSWER_S and not self.problem:
            self._report_problem(
                f"the controller at {where} does not answer: shares hold only among "
                "the applications of this mount"
            )

    def _was_refused(self) -> bool:
        """Return True if the controller has refused the keys since the last call."""
        refused = False
        while self._refusals.poll(0):
            self._refusals.recv_multipart()
            refused = True
        return refused

    def _report_problem(self, problem: str) -> None:
        """Log a problem, or its end, once."""
        if problem == self.problem:
            return
        if problem:
            _LOG.warning("%s", problem)
        else:
            _LOG.info("credit comes from %s", self._settings.controller)
        self.problem = problem

    def _report_conflicts(self, conflicts: list[str]) -> None:
        for conflict in conflicts:
            if conflict not in self._conflicts:
                _LOG.warning("%s", conflict)
        self._conflicts = conflicts
