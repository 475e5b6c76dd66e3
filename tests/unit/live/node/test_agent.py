# SPDX-License-Identifier: MIT
"""The agent with a made-up controller: what it says, and what it does to pages."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.live.node.agent import Agent
from penstock.live.node.page import Page
from penstock.live.wire.frames import Peer
from penstock.live.wire.messages import (
    FROM_AGENT,
    AgentConfig,
    AgentHello,
    AttachProcess,
    CounterReport,
    GetStatus,
    Grants,
    JobJoined,
    JobLeft,
    PageAssigned,
    Refused,
    RegisterJob,
    RequestHello,
    RequestReport,
    TextAnswer,
    UserReply,
    UserRequest,
    encode,
)
from support.waiting import until_async

TERMS = AgentConfig("control", [], 0.1, 0.05, 0.6, inf, reads=True)
ME = Peer(os.getpid(), os.geteuid(), os.getegid())


class Site:
    """An agent, what it has said, and its clock, which stands still."""

    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        self.said: list[Any] = []
        self.agent = Agent(folder, self.said.append, clock=lambda: self.now)
        self.agent.start()

    def look_after(self, time_s: float) -> None:
        """Let time pass, and the agent look."""
        self.now += time_s
        self.agent.update()

    def heard(self, kind: type[Any]) -> list[Any]:
        """Return what was said of one kind, and forget everything."""
        found = [message for message in self.said if isinstance(message, kind)]
        self.said.clear()
        return found

    async def enter(self, job: str = "a", peer: Peer = ME, **rest: Any) -> Any:
        return await self.agent.reply(peer, AttachProcess(job, **rest))


def with_site(folder: Path, act: Callable[[Site], Any]) -> None:
    """Run `act` in a loop, with an agent that has heard the terms."""

    async def running() -> None:
        site = Site(folder)
        site.agent.receive(TERMS)
        try:
            await act(site)
        finally:
            site.agent.close()

    asyncio.run(running())


def key(job: str = "a") -> str:
    """Return how the controller calls a job of this user."""
    return f"{os.geteuid()}:{job}"


def test_it_says_hello_until_it_is_heard(tmp_path: Path) -> None:
    async def running() -> None:
        site = Site(tmp_path)
        assert site.heard(AgentHello) == [AgentHello([])]
        site.agent.update()
        assert site.said == []
        refused = await site.enter()
        assert isinstance(refused, Refused)
        assert "the controller is not reachable" in refused.reason
        site.look_after(5.0)
        assert site.heard(AgentHello) == [AgentHello([])]
        site.agent.close()

    asyncio.run(running())


def test_a_process_enters(tmp_path: Path) -> None:
    async def act(site: Site) -> None:
        reply = await site.enter(nodes=3, volume_bytes=7.0, folder="/home/me")
        assert isinstance(reply, PageAssigned)
        assert reply.prefixes == ["/home/me"]
        assert site.heard(JobJoined) == [
            JobJoined(key(), ME.user, str(ME.group), 3, 7.0)
        ]
        with Page.open(Path(reply.page)) as page:
            site.agent.receive(Grants({key(): 0.0, "0:unknown": 5.0}))
            first = page.granted_bytes()
            time.sleep(0.01)
            assert first == page.granted_bytes() is not None
        again = await site.enter()
        assert again.page == reply.page
        assert site.heard(JobJoined) == []

    with_site(tmp_path, act)


def test_a_job_is_reported_as_it_comes(tmp_path: Path) -> None:
    """All that it does afterwards is seen as new."""

    async def act(site: Site) -> None:
        await site.enter()
        join, report = site.said[-2:]
        assert isinstance(join, JobJoined)
        assert [(c.posts, c.announced_bytes) for c in report.counters] == [(0, 0.0)]

    with_site(tmp_path, act)


def test_prefixes_of_the_controller_count(tmp_path: Path) -> None:
    async def act(site: Site) -> None:
        terms = AgentConfig("control", ["/scratch"], 0.1, 0.05, 0.6, inf, reads=True)
        site.agent.receive(terms)
        assert (await site.enter(folder="/home/me")).prefixes == ["/scratch"]

    with_site(tmp_path, act)


def test_who_is_not_trusted_cannot_claim_nodes(tmp_path: Path) -> None:
    stranger = Peer(os.getpid(), 54321, 54321)

    async def act(site: Site) -> None:
        reply = await site.enter(peer=stranger, nodes=99)
        if os.geteuid() == 0:
            assert Path(reply.page).stat().st_uid == 54321
            assert site.heard(JobJoined) == [
                JobJoined("54321:a", 54321, "54321", 0, 0.0)
            ]
        else:
            # The page could not be given away.
            assert isinstance(reply, Refused)

    with_site(tmp_path, act)


def test_a_job_is_over_with_its_last_process(tmp_path: Path) -> None:
    async def act(site: Site) -> None:
        with subprocess.Popen(["sleep", "60"]) as process:
            reply = await site.enter(peer=Peer(process.pid, ME.user, ME.group))
            site.heard(JobJoined)
            process.kill()
            process.wait()
            await until_async(lambda: site.said)
        report, part = site.said
        assert isinstance(report, CounterReport)
        assert report.counters[0].job_key == key()
        assert part == JobLeft(key())
        assert not Path(reply.page).exists()

    with_site(tmp_path, act)


def test_a_process_that_has_ended_already(tmp_path: Path) -> None:
    async def act(site: Site) -> None:
        with subprocess.Popen(["true"]) as process:
            process.wait()
        await site.enter(peer=Peer(process.pid, ME.user, ME.group))
        assert site.heard(JobLeft) == [JobLeft(key())]

    with_site(tmp_path, act)


@pytest.mark.parametrize("ends", ["unseen", "later"])
def test_a_process_that_cannot_be_watched_has_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    def exhausted(pid: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async def act(site: Site) -> None:
        with subprocess.Popen(["sleep", "600"]) as process, ExitStack() as at_end:
            at_end.callback(process.kill)
            with monkeypatch.context() as patch:
                patch.setattr(os, "pidfd_open", exhausted)
                await site.enter(peer=Peer(process.pid, ME.user, ME.group))
                site.look_after(TERMS.lease_s)
                assert site.heard(JobLeft) == []
                if ends == "unseen":
                    process.kill()
                    process.wait()
            site.look_after(TERMS.lease_s)
            process.kill()
            process.wait()
            await until_async(lambda: JobLeft(key()) in site.said)

    with_site(tmp_path, act)


def test_reports_and_heartbeats(tmp_path: Path) -> None:
    async def act(site: Site) -> None:
        await site.enter()
        site.agent.update()
        (report,) = site.heard(CounterReport)
        assert [counts.job_key for counts in report.counters] == [key()]
        assert report.job_count == 1
        # An idle job is not looked at again until the next heartbeat.
        site.look_after(TERMS.lease_s / 4.0)
        assert site.said == []
        site.look_after(TERMS.lease_s / 4.0)
        assert len(site.heard(CounterReport)) == 1

    with_site(tmp_path, act)


def test_leases_are_renewed_only_while_the_controller_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted: list[float] = []

    def renew(page: Page, duration_s: float, *, floor: float) -> None:
        granted.append(duration_s / TERMS.lease_s)

    async def act(site: Site) -> None:
        await site.enter()
        site.now += TERMS.lease_s / 2.0
        site.agent.receive(Grants({}))
        site.agent.update()
        for leases in (0.5, 0.75):
            site.look_after(leases * TERMS.lease_s)
        # Silent for half a lease: the other half is left. Then nothing is.
        assert granted == pytest.approx([1.0, 1.0, 0.5])

    monkeypatch.setattr(Page, "renew", renew)
    with_site(tmp_path, act)


def test_a_controller_that_has_forgotten_is_told_again(tmp_path: Path) -> None:
    async def act(site: Site) -> None:
        await site.enter()
        site.said.clear()
        site.agent.receive(RequestHello())
        assert site.said == [
            AgentHello([key()]),
            JobJoined(key(), ME.user, str(ME.group), 0, 0.0),
        ]

    with_site(tmp_path, act)


def test_the_next_agent_goes_on(tmp_path: Path) -> None:
    async def act(site: Site) -> None:
        await site.enter(volume_bytes=3.0)

    with_site(tmp_path, act)

    async def again(site: Site) -> None:
        assert site.said[:2] == [
            AgentHello([key()]),
            JobJoined(key(), ME.user, str(ME.group), 0, 3.0),
        ]

    with_site(tmp_path, again)


def test_questions_are_passed_on(tmp_path: Path) -> None:
    async def act(site: Site) -> None:
        asking = asyncio.create_task(site.agent.reply(ME, GetStatus()))
        await asyncio.sleep(0)
        (asked,) = site.heard(UserRequest)
        assert (asked.user, asked.trusted) == (ME.user, True)
        site.agent.receive(UserReply(asked.number + 1, TextAnswer("to somebody else")))
        site.agent.receive(UserReply(asked.number, TextAnswer("yes")))
        assert await asking == TextAnswer("yes")

    with_site(tmp_path, act)


def test_a_controller_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.live.node.agent._ANSWER_S", 0.01)

    async def act(site: Site) -> None:
        reply = await site.agent.reply(ME, GetStatus())
        assert reply == Refused("the controller does not answer", retry=True)

    with_site(tmp_path, act)


def test_nobody_may_have_too_many_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.live.node.agent._MAX_JOBS", 2)

    async def act(site: Site) -> None:
        for job in ("a", "b"):
            assert isinstance(await site.enter(job), PageAssigned)
        assert "has 2 jobs on this node" in (await site.enter("c")).reason
        assert isinstance(await site.enter("a"), PageAssigned)

    with_site(tmp_path, act)


def test_a_full_disk_is_refused_in_one_line(tmp_path: Path) -> None:
    async def act(site: Site) -> None:
        site.agent._folder = Path("/proc")
        refused = await site.enter()
        assert isinstance(refused, Refused)
        assert "\n" not in refused.reason

    with_site(tmp_path, act)


# --- Jobs of a batch system -----------------------------------------------------------


def test_a_job_is_registered_until_its_page_is_removed(tmp_path: Path) -> None:
    me, group = ME.user, ME.group

    async def act(site: Site) -> None:
        word = RegisterJob("17", me, group, "physics", 4, "/scratch/dir")
        reply = await site.agent.reply(ME, word)
        assert isinstance(reply, PageAssigned)
        assert reply.prefixes == ["/scratch/dir"]
        assert site.heard(JobJoined)[-1] == JobJoined(f"{me}:17", me, "physics", 4, 0.0)
        # A process that enters, and ends, is not the end of the job.
        with subprocess.Popen(["true"]) as process:
            process.wait()
        await site.enter("17", Peer(process.pid, me, group))
        site.look_after(TERMS.lease_s / 2.0)
        assert site.heard(JobLeft) == []
        Path(reply.page).unlink()
        site.look_after(TERMS.lease_s / 2.0)
        assert site.heard(JobLeft) == [JobLeft(f"{me}:17")]

    with_site(tmp_path, act)


def test_only_who_is_trusted_registers_jobs(tmp_path: Path) -> None:
    stranger = Peer(os.getpid(), 54321, 54321)

    async def act(site: Site) -> None:
        site.said.clear()
        word = RegisterJob("17", ME.user, ME.group, "physics", 4)
        reply = await site.agent.reply(stranger, word)
        assert reply == Refused(
            "only root may register a job (start it with penstock run)"
        )
        assert site.said == []

    with_site(tmp_path, act)


# --- Whatever a user does to its page -------------------------------------------------


def spoil(page: Path, how: str) -> None:
    """Do what only the owner of a page can do."""
    if how == "cut off":
        os.truncate(page, 0)
    elif how == "cut short":
        os.truncate(page, 100)
    elif how == "emptied":
        page.write_bytes(bytes(4096))
    else:
        page.write_bytes(b"?" * 4096)


@pytest.mark.parametrize("how", ["cut off", "cut short", "emptied", "garbage"])
@pytest.mark.parametrize("seen_by", ["look", "grant", "terms", "renewal", "itself"])
def test_a_spoilt_page_is_let_go_and_no_other(
    tmp_path: Path, how: str, seen_by: str
) -> None:
    async def act(site: Site) -> None:
        spoilt, sound = (await site.enter("a")).page, (await site.enter("b")).page
        site.said.clear()
        spoil(Path(spoilt), how)
        if seen_by == "grant":
            site.agent.receive(Grants({key("a"): 5.0, key("b"): 0.0}))
        elif seen_by == "terms":
            site.agent.receive(TERMS)
        elif seen_by == "renewal":
            site.look_after(TERMS.lease_s / 2.0)
        elif seen_by == "look":
            site.agent.receive(RequestReport([key("a"), key("b")]))
        else:
            await until_async(lambda: JobLeft(key("a")) in site.said)
        assert site.heard(JobLeft) == [JobLeft(key("a"))]
        site.agent.receive(RequestReport([key("b")]))
        assert [c.job_key for c in site.heard(CounterReport)[-1].counters] == [key("b")]
        assert Path(sound).exists()
        assert not Path(spoilt).exists()
        # It may come back, with a new page.
        assert isinstance(await site.enter("a"), PageAssigned)

    with_site(tmp_path, act)


@settings(max_examples=50)
@given(st.binary(min_size=0, max_size=688), st.integers(16, 300))
def test_whatever_is_in_a_page_is_reported_in_lawful_messages(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, offset: int
) -> None:
    """Nobody can spoil the reports on others, which are in the same message."""

    async def act(site: Site) -> None:
        for job in ("a", "b"):
            reply = await site.enter(job)
            if job == "a":
                with Path(reply.page).open("r+b") as page:
                    page.seek(offset)
                    page.write(data)
        site.agent.receive(TERMS)
        site.agent.receive(Grants({key("a"): 7.0, key("b"): 7.0}))
        site.agent.receive(RequestReport([key("a"), key("b")]))
        for message in site.said:
            assert FROM_AGENT(encode(message)) == message
        assert {c.job_key for c in site.heard(CounterReport)[-1].counters} == {
            key("a"),
            key("b"),
        }

    with_site(tmp_path_factory.mktemp("pages"), act)
