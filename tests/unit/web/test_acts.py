# SPDX-License-Identifier: MIT
"""What operators change on the page, and how it is undone."""

from __future__ import annotations

import asyncio
import logging
import os
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from penstock.errors import InputError, UnavailableError
from penstock.live.wire.messages import (
    ControllerRequest,
    GetStatus,
    SetBandwidth,
    SetLimit,
    SetMode,
    SetPolicy,
    TextAnswer,
)
from penstock.web.acts import (
    Act,
    ActLog,
    BandwidthAct,
    DaemonStart,
    LimitAct,
    ModeAct,
    PolicyAct,
    decode_act,
)
from penstock.web.identity.readers import OPERATOR, Reader
from support.statuses import job_line, status_of

STATUS = status_of(
    job_line("a", 7),
    job_line("b", 7, limit=5e6),
    job_line("twin", 7),
    job_line("twin", 8),
)
ACTS: list[tuple[Act, ControllerRequest, Act | None]] = [
    (PolicyAct("fcfs"), SetPolicy("fcfs"), PolicyAct("fair-share")),
    (BandwidthAct("2 MB/s"), SetBandwidth(2e6), BandwidthAct("10000000.0 B/s")),
    (BandwidthAct("learn"), SetBandwidth(None), BandwidthAct("10000000.0 B/s")),
    (LimitAct("7:a", "2 MB/s"), SetLimit("7:a", 2e6), LimitAct("7:a", "none")),
    (LimitAct("7:b", "none"), SetLimit("7:b", inf), LimitAct("7:b", "5000000.0 B/s")),
    (LimitAct("gone", "1 MB/s"), SetLimit("gone", 1e6), None),
    (ModeAct("off"), SetMode("off"), ModeAct("control")),
]


@pytest.mark.parametrize(("act", "request_", "undo"), ACTS)
def test_an_act_and_its_undoing(
    act: Act, request_: ControllerRequest, undo: Act | None
) -> None:
    assert act.request() == request_
    assert act.undo(STATUS) == undo
    # The page gets and sends acts as JSON.
    assert decode_act(msgspec.json.encode(act)) == act
    if undo is not None:
        undo.request()


def test_a_limit_names_the_job_by_its_user() -> None:
    """Jobs of two users may have one name; a change can be undone in any case."""
    daemon = FakeDaemon()
    log = ActLog(daemon)
    # The daemon refuses a name that several jobs have, as it does for penstock ctl.
    asyncio.run(log.carry_out(LimitAct("twin", "1 MB/s"), OPERATOR))
    assert daemon.asked == [GetStatus(explains=False), SetLimit("twin", 1e6)]
    for name, key in (("8:twin", "8:twin"), ("a", "7:a")):
        entry = asyncio.run(log.carry_out(LimitAct(name, "1 MB/s"), OPERATOR))
        assert daemon.asked[-1] == SetLimit(key, 1e6)
        assert entry.undo == LimitAct(key, "none")


def test_a_learnt_bandwidth_is_learnt_again() -> None:
    (storage,) = STATUS.storages
    learnt = replace(STATUS, storages=[replace(storage, learns=True)])
    assert BandwidthAct("2 MB/s").undo(learnt) == BandwidthAct("learn")
    unknown = status_of(bandwidth=None)
    assert BandwidthAct("2 MB/s").undo(unknown) == BandwidthAct("learn")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"act": "destroy"}',
        b'{"act": "policy"}',
        b'{"act": "policy", "policy": 1}',
        b'{"act": "mode", "mode": "sometimes"}',
        b"[" * 1000,
    ],
)
def test_documents_that_are_no_acts(text: bytes) -> None:
    with pytest.raises(InputError, match="is not an act"):
        decode_act(text)


@pytest.mark.parametrize("rate", ["20", "0 B/s", "-1 MB/s", "fast", "nan MB/s", ""])
def test_rates_that_are_refused(rate: str) -> None:
    for act, where in (
        (BandwidthAct(rate), "bandwidth"),
        (LimitAct("a", rate), "limit"),
    ):
        with pytest.raises(InputError, match=rf"^{where}: "):
            act.request()


class FakeDaemon:
    """A daemon that agrees, unless `error` is set."""

    def __init__(self) -> None:
        self.asked: list[ControllerRequest] = []
        self.error: Exception | None = None

    async def ask(self, request: ControllerRequest, reader: Reader) -> Any:
        self.asked.append(request)
        if isinstance(request, GetStatus):
            return STATUS
        if self.error is not None:
            raise self.error
        return TextAnswer("done")


def test_acts_are_remembered_with_their_users(caplog: pytest.LogCaptureFixture) -> None:
    daemon = FakeDaemon()
    log = ActLog(daemon, wall=lambda: 5.0)
    with caplog.at_level(logging.INFO, "penstock.web"):
        asyncio.run(log.carry_out(PolicyAct("fcfs"), Reader(None, "user 0")))
        asyncio.run(log.carry_out(LimitAct("two\nlines", "none"), OPERATOR))
    second, first = log.entries()
    assert msgspec.to_builtins(first) == {
        "time": 5.0,
        "reader": "user 0",
        "act": {"act": "policy", "policy": "fcfs"},
        "answer": "done",
        "undo": {"act": "policy", "policy": "fair-share"},
    }
    assert second.undo is None
    assert daemon.asked[:2] == [GetStatus(explains=False), SetPolicy("fcfs")]
    assert caplog.messages == [
        'user 0 on the web page: {"act":"policy","policy":"fcfs"}',
        'operator on the web page: {"act":"limit","job":"two\\nlines","limit":"none"}',
    ]


@pytest.mark.parametrize("error", [InputError("no"), UnavailableError("not now")])
def test_acts_that_are_refused_are_not_remembered(error: Exception) -> None:
    daemon = FakeDaemon()
    daemon.error = error
    log = ActLog(daemon)
    with pytest.raises(type(error)):
        asyncio.run(log.carry_out(PolicyAct("fcfs"), OPERATOR))
    assert log.entries() == []


def test_a_wrong_rate_does_not_reach_the_daemon() -> None:
    daemon = FakeDaemon()
    with pytest.raises(InputError, match="has no unit"):
        asyncio.run(ActLog(daemon).carry_out(BandwidthAct("20"), OPERATOR))
    assert daemon.asked == []


# --- The file -------------------------------------------------------------------------


def _log(path: Path, started_s: float) -> ActLog:
    return ActLog(FakeDaemon(), lambda: started_s + 5.0, path, started_s)


def test_acts_survive_a_restart_which_is_in_the_list(tmp_path: Path) -> None:
    path = tmp_path / "acts.json"
    first = _log(path, 1000.0)
    assert first.entries() == []
    asyncio.run(first.carry_out(PolicyAct("fcfs"), OPERATOR))
    # The process of the page fails, and is started again: the daemon goes on.
    assert _log(path, 1000.0).entries() == first.entries()
    again = _log(path, 2000.0)
    start, act = again.entries()
    assert [act] == first.entries()
    assert (start.time_s, start.act, start.undo) == (2000.0, DaemonStart(), None)
    asyncio.run(again.carry_out(PolicyAct("fair-share"), OPERATOR))
    assert len(_log(path, 2000.0).entries()) == 3


def test_nobody_starts_the_daemon_on_the_page() -> None:
    with pytest.raises(InputError, match="is not an act"):
        decode_act(b'{"act": "start"}')


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "\udcff", '{"version": 99, "acts": []}', '{"version": 1}'],
)
def test_a_file_that_cannot_be_used_is_ignored(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "acts.json"
    path.write_bytes(os.fsencode(text))
    log = _log(path, 1000.0)
    assert log.entries() == []
    assert f"{path} is ignored" in caplog.text
    asyncio.run(log.carry_out(PolicyAct("fcfs"), OPERATOR))
    assert len(_log(path, 1000.0).entries()) == 1


def test_an_act_is_carried_out_though_it_cannot_be_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    log = _log(tmp_path / "file" / "acts.json", 1000.0)
    asyncio.run(log.carry_out(PolicyAct("fcfs"), OPERATOR))
    assert len(log.entries()) == 1
    assert "but not kept" in caplog.text
