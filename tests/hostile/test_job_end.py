# SPDX-License-Identifier: MIT
"""The batch system ends a job, whatever the user of the job has done to its page."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostile.scene import scene, status
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import PageAssigned, RegisterJob
from support.users import as_user
from support.waiting import until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, to register a job of another user"
)

ATTACKER = 65_023


def test_a_link_to_its_page_does_not_keep_a_job_registered() -> None:
    with scene(lease="1 s") as daemon:
        with Client(daemon.home / "agent.sock") as client:
            reply = client.ask(RegisterJob("7", ATTACKER, ATTACKER, "", 1, "/"))
        assert isinstance(reply, PageAssigned)
        page = Path(reply.page)
        as_user(ATTACKER, lambda: os.link(page, daemon.data / "kept"))
        assert [job.user for job in status(daemon).jobs] == [ATTACKER]
        # As the epilog does.
        page.with_suffix(".note").unlink()
        page.unlink()
        until(lambda: not status(daemon).jobs)
