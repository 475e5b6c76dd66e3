# SPDX-License-Identifier: MIT
"""The link of a mount to a controller, over a real socket; the controller is fake."""

from __future__ import annotations

import logging
import shutil
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq
from zmq.auth.thread import ThreadAuthenticator

from penstock.errors import InputError
from penstock.live.wire import curve
from penstock.live.wire.curve import make_keys, prepare_server
from penstock.live.wire.messages import FROM_AGENT, MountCredit, MountReport, encode
from penstock.mount import exchange
from penstock.mount.exchange import CreditLink, ExchangeSettings, MountState
from penstock.qos import ApplicationUse
from support.waiting import LIMIT_S, until

USE = ApplicationUse(10.0, 5.0, 0.5, 1)


@pytest.fixture
def settings(tmp_path: Path) -> ExchangeSettings:
    make_keys(str(tmp_path / "keys"))
    return ExchangeSettings(f"ipc://{tmp_path}/socket", tmp_path / "keys", "s")


@contextmanager
def controller(settings: ExchangeSettings, keys: Path | None = None) -> Iterator[Any]:
    """Return a socket that accepts mounts."""
    context = zmq.Context()
    guard = ThreadAuthenticator(context)
    guard.start()
    guard.configure_curve(domain="*", location=str(keys or settings.keys))
    socket = context.socket(zmq.ROUTER)
    prepare_server(socket, keys or settings.keys)
    socket.rcvtimeo = int(LIMIT_S * 1000)
    socket.bind(settings.controller)
    try:
        yield socket
    finally:
        guard.stop()
        context.destroy(linger=0)


def link(
    settings: ExchangeSettings, apply: Callable[[MountCredit], None] = lambda _: None
) -> CreditLink:
    return CreditLink(settings, lambda: MountState({"a": 1e6}, {"a": USE}), apply)


def next_report(socket: Any) -> tuple[bytes, MountReport]:
    identity, data = socket.recv_multipart()
    return identity, FROM_AGENT(data)


def credit(report: MountReport, number: int, **changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "run": report.run,
        "controller": "c",
        "number": number,
        "rates": {},
    }
    fields |= {"lease_s": 1.0, "elsewhere": {}, "report": report.number}
    return encode(MountCredit(**fields | changes))


def test_reports_are_numbered_and_hold_what_was_used(
    settings: ExchangeSettings,
) -> None:
    with controller(settings) as socket, link(settings):
        _, first = next_report(socket)
        _, second = next_report(socket)
    assert (first.storage, first.promises) == ("s", {"a": 1e6})
    assert msgspec.to_builtins(first.uses["a"]) == list(USE)
    assert second.run == first.run
    assert second.number > first.number


def test_credit_for_this_run_is_applied_once(settings: ExchangeSettings) -> None:
    applied: list[float] = []
    done = threading.Event()

    def apply(given: MountCredit) -> None:
        applied.append(given.rates["a"])
        if given.rates["a"] == 9.0:
            done.set()

    with controller(settings) as socket, link(settings, apply) as mount:
        mount_name, report = next_report(socket)
        assert mount.words() == "no answer yet"
        for data in (
            b"garbage",
            credit(report, 2, rates={"a": 1.0}),
            credit(report, 2, rates={"a": 2.0}),
            credit(report, 1, rates={"a": 3.0}),
            credit(report, 5, rates={"a": 4.0}, run="other"),
            credit(report, 1, rates={"a": 5.0}, controller="new"),
            credit(report, 3, rates={"a": 9.0}, controller="new"),
        ):
            socket.send_multipart([mount_name, data])
        assert done.wait(LIMIT_S)
        until(lambda: mount.words() == f"from {settings.controller}")
    assert applied == [1.0, 5.0, 9.0]


def test_a_contradiction_is_logged_once(
    settings: ExchangeSettings, caplog: pytest.LogCaptureFixture
) -> None:
    applied: list[int] = []
    with (
        caplog.at_level(logging.WARNING),
        controller(settings) as socket,
        link(settings, lambda given: applied.append(given.number)),
    ):
        mount_name, report = next_report(socket)
        for number in range(1, 5):
            data = credit(report, number, conflicts=["a is promised twice"])
            socket.send_multipart([mount_name, data])
        until(lambda: len(applied) == 4)
    assert caplog.text.count("a is promised twice") == 1


def test_a_controller_with_other_keys_is_reported_once(
    settings: ExchangeSettings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_keys(str(tmp_path / "other"))
    with (
        caplog.at_level(logging.WARNING),
        controller(settings, tmp_path / "other"),
        link(settings) as mount,
    ):
        until(lambda: "refuses the keys" in mount.words())
    assert caplog.text.count("refuses the keys") == 1


def test_a_controller_that_falls_silent_is_reported(
    settings: ExchangeSettings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(exchange, "_NO_ANSWER_S", 0.2)
    applied = threading.Event()
    with (
        caplog.at_level(logging.WARNING),
        link(settings, lambda _: applied.set()) as mount,
    ):
        with controller(settings) as socket:
            number = 0
            while not applied.is_set():
                mount_name, report = next_report(socket)
                number += 1
                socket.send_multipart([mount_name, credit(report, number)])
        until(lambda: "does not answer" in mount.words())
    assert caplog.text.count("does not answer") == 1


def test_a_missing_key_is_an_error(settings: ExchangeSettings) -> None:
    (settings.keys / "agent.key_secret").unlink()
    with pytest.raises(InputError, match="does not exist"):
        link(settings)


def test_new_keys_are_used_while_the_mount_goes_on(
    settings: ExchangeSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(curve, "KEYS_S", 0.05)
    new_keys = tmp_path / "new"
    make_keys(str(new_keys))
    with controller(settings, new_keys) as socket, link(settings) as mount:
        assert not socket.poll(500)
        for path in new_keys.iterdir():
            shutil.copy(path, settings.keys / path.name)
        mount_name, report = next_report(socket)
        socket.send_multipart([mount_name, credit(report, 1)])
        until(lambda: mount.words() == f"from {settings.controller}")


def test_a_lease_counts_from_the_report_that_is_answered(
    settings: ExchangeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credit that was under way for longer than a lease is not applied at all."""
    leases: list[tuple[float, float]] = []

    def apply(given: MountCredit) -> None:
        leases.append((given.rates["a"], given.lease_s))

    monkeypatch.setattr(exchange, "LEASE_S", 60.0)
    with controller(settings) as socket, link(settings, apply) as mount:
        mount_name, first = next_report(socket)
        monkeypatch.setattr(mount, "_sent_s", _Aged(mount._sent_s, first.number, 100.0))
        _, second = next_report(socket)
        for number, report, lease_s in (
            (1, first, 60.0),
            (2, second, 60.0),
            (3, second, 1e9),
            (4, msgspec.structs.replace(second, number=1000), 60.0),
            (5, second, 60.0),
        ):
            data = credit(report, number, rates={"a": number}, lease_s=lease_s)
            socket.send_multipart([mount_name, data])
        until(lambda: leases and leases[-1][0] == 5)
    assert [rate for rate, _ in leases] == [2, 3, 5]
    assert all(0.0 < lease_s < 60.0 for _, lease_s in leases)


class _Aged(deque[tuple[int, float]]):
    """Reports, of which one was sent earlier than it really was."""

    def __init__(self, sent_s: Any, number: int, earlier_s: float) -> None:
        super().__init__(
            (n, time_s - earlier_s * (n == number)) for n, time_s in sent_s
        )


def test_an_error_does_not_end_the_link(
    settings: ExchangeSettings, caplog: pytest.LogCaptureFixture
) -> None:
    applied = threading.Event()
    wrong = iter(range(2))

    def apply(given: MountCredit) -> None:
        if next(wrong, None) is not None:
            raise ZeroDivisionError("a bug in a scheduler")
        applied.set()

    with controller(settings) as socket, link(settings, apply) as mount:
        problems = set()
        for number in range(1, 1000):
            mount_name, report = next_report(socket)
            socket.send_multipart([mount_name, credit(report, number)])
            problems.add(mount.words())
            if applied.wait(0.0):
                break
        until(lambda: mount.words() == f"from {settings.controller}")
    assert any("fails: see the log" in problem for problem in problems)
    assert caplog.text.count("ZeroDivisionError: a bug in a scheduler") == 1
