# SPDX-License-Identifier: MIT
"""Policies that cannot decide live are refused, at the start and when asked for."""

from __future__ import annotations

import asyncio
import sys
from math import inf
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.live.control.coordinator import Coordinator
from penstock.live.control.rates.controller import Controller
from penstock.live.daemon.control_loop import ControlLoop
from penstock.live.daemon.server import _control_loop
from penstock.live.settings import Settings
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    SetPolicy,
    UserReply,
    UserRequest,
)


def answer_to(request: SetPolicy, *, trusted: bool = True) -> Any:
    """Return the reply of a control loop to a request."""

    async def asking() -> Any:
        controller = Controller("fair-share", 100.0, compiled=False)
        config = AgentConfig("control", [], 0.1, 0.1, 3.0, inf, reads=True)
        loop = ControlLoop(Coordinator(controller, config), None)
        replies: asyncio.Queue[Any] = asyncio.Queue()
        loop.links["n"] = replies.put_nowait
        loop.receive("n", AgentHello([]))
        loop.receive("n", UserRequest(7, 1000, trusted, request))
        loop.start()
        try:
            while not isinstance(reply := await replies.get(), UserReply):
                pass
        finally:
            loop.close()
        assert reply.number == 7
        return reply.reply

    return asyncio.run(asyncio.wait_for(asking(), 60))


def test_a_policy_without_its_delta_is_refused() -> None:
    refused = answer_to(SetPolicy("periodic-greedy-yield"))
    assert "needs the parameter delta" in refused.reason
    assert "periodic-greedy-yield:delta=1" in refused.reason
    taken = answer_to(SetPolicy("periodic-greedy-yield:delta=1"))
    assert taken.text == "periodic-greedy-yield:delta=1 decides"


def test_a_daemon_does_not_start_with_a_policy_without_its_delta(
    tmp_path: Path,
) -> None:
    settings = Settings(
        policy="periodic-greedy-yield", bandwidth=1.0, folder=str(tmp_path)
    )
    with pytest.raises(InputError, match="needs the parameter delta"):
        _control_loop(settings)


def test_policies_are_not_imported_for_untrusted_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted.py").write_text("def allocate(view, rates): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    refused = answer_to(SetPolicy("planted.allocate"), trusted=False)
    assert "only root" in refused.reason
    assert "planted" not in sys.modules
