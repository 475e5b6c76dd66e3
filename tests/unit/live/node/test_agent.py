# SPDX-License-Identifier: MIT
"""The agent without a controller: the messages it sends, and the words it writes."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from ctypes import c_uint64
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.live.node import budgets
from penstock.live.node.agent import Agent
from penstock.live.node.budgets import Holding, Spending
from penstock.live.node.file_system import storage_name
from penstock.live.node.local_job import Bypass, LocalJob
from penstock.live.node.pages.bell import Bell, BellWords
from penstock.live.node.pages.page import Page
from penstock.live.node.pages.page_layout import PageWords, StagingWords
from penstock.live.wire.frames import Peer
from penstock.live.wire.identity import process_start_ticks
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
    Partition,
    Refused,
    RegisterJob,
    RequestHello,
    RequestReport,
    TextAnswer,
    UserReply,
    UserRequest,
    encode,
)
from support.waiting import LIMIT_S, until_async

CONFIG = AgentConfig("control", [], 0.1, 0.05, 0.6, inf, reads=True)
ME = Peer(os.getpid(), os.geteuid(), os.getegid())
ENDED_WORDS = "the process that asks has ended (let it run until the answer)"


class AgentRig:
    """An agent, the messages it has sent, and its clock, which a test moves."""

    def __init__(self, folder: Path) -> None:
        self.now = 1000.0
        self.sent: list[Any] = []
        self.answers = True
        self.agent = Agent(folder, self._send, clock=lambda: self.now)
        self.agent.start()

    def _send(self, message: Any) -> None:
        """Keep a message; a job that joins gets a grant, as from a controller."""
        self.sent.append(message)
        if isinstance(message, JobJoined) and self.answers:
            self.agent.receive(Grants({message.job_key: inf}))

    def pass_time(self, time_s: float) -> None:
        """Move the clock, and let the agent update."""
        self.now += time_s
        self.agent.update()

    def take(self, kind: type[Any]) -> list[Any]:
        """Return the messages of one kind that were sent; drop all others."""
        messages = [message for message in self.sent if isinstance(message, kind)]
        self.sent.clear()
        return messages

    async def attach(self, job: str = "a", peer: Peer = ME, **rest: Any) -> Any:
        return await self.agent.reply(peer, AttachProcess(job, **rest))


def with_agent(folder: Path, act: Callable[[AgentRig], Any]) -> None:
    """Run `act` in a loop, with an agent that is configured."""

    async def running() -> None:
        rig = AgentRig(folder)
        rig.agent.receive(CONFIG)
        try:
            await act(rig)
        finally:
            rig.agent.close()

    asyncio.run(running())


def key(job_name: str = "a") -> str:
    """Return the key of a job of this user."""
    return f"{os.geteuid()}:{job_name}"


def test_it_greets_the_controller_until_it_is_configured(tmp_path: Path) -> None:
    async def running() -> None:
        rig = AgentRig(tmp_path)
        assert rig.take(AgentHello) == [AgentHello([])]
        rig.agent.update()
        assert rig.sent == []
        refused = await rig.attach()
        assert isinstance(refused, Refused)
        assert "the controller is not reachable" in refused.reason
        rig.pass_time(5.0)
        assert rig.take(AgentHello) == [AgentHello([])]
        rig.agent.close()

    asyncio.run(running())


def test_a_program_does_not_start_before_its_job_has_a_grant(tmp_path: Path) -> None:
    async def act(rig: AgentRig) -> None:
        rig.answers = False
        first = asyncio.create_task(rig.attach())
        second = asyncio.create_task(rig.attach())
        await until_async(lambda: bool(rig.take(JobJoined)))
        rig.agent.receive(Grants({}))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not first.done()
        assert not second.done()
        rig.agent.receive(Grants({key(): 5.0}))
        assert isinstance(await first, PageAssigned)
        assert isinstance(await second, PageAssigned)

    with_agent(tmp_path, act)


def test_a_program_does_not_wait_for_ever_for_a_grant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.live.node.agent._FIRST_GRANT_S", 0.01)

    async def act(rig: AgentRig) -> None:
        rig.answers = False
        assert isinstance(await rig.attach(), PageAssigned)

    with_agent(tmp_path, act)


def test_nobody_waits_for_a_grant_of_a_silent_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise every program would start late while there is no controller."""
    monkeypatch.setattr("penstock.live.node.agent._FIRST_GRANT_S", 10.0 * LIMIT_S)

    async def act(rig: AgentRig) -> None:
        rig.answers = False
        rig.now += CONFIG.lease_s
        for job_name in ("a", "a", "b"):
            reply = await asyncio.wait_for(rig.attach(job_name), LIMIT_S)
            assert isinstance(reply, PageAssigned)

    with_agent(tmp_path, act)


def test_the_end_does_not_wait_for_a_measurement_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hang(_: object) -> Bypass:
        begun.set()
        go_on.wait(LIMIT_S)
        return Bypass([], {})

    monkeypatch.setattr("penstock.live.node.bypass_meter.find_bypass", hang)
    monkeypatch.setattr("penstock.live.node.bypass_meter._END_S", 0.0)

    async def act(rig: AgentRig) -> None:
        await rig.attach()
        rig.pass_time(CONFIG.lease_s)
        assert begun.wait(LIMIT_S)
        rig.agent.close()
        assert not go_on.is_set()
        go_on.set()

    with_agent(tmp_path, act)


def test_a_process_is_attached(tmp_path: Path) -> None:
    async def act(rig: AgentRig) -> None:
        reply = await rig.attach(nodes=3, volume_bytes=7.0, folder="/home/me")
        assert isinstance(reply, PageAssigned)
        assert reply.prefixes == ["/home/me"]
        storage = storage_name("/home/me")
        assert rig.take(JobJoined) == [
            JobJoined(
                *(key(), ME.user, str(ME.group), 3, 7.0, storage), several_nodes=True
            )
        ]
        with Page.open(Path(reply.page)) as page:
            rig.agent.receive(Grants({key(): 0.0, "0:unknown": 5.0}))
            first = page.granted_bytes()
            time.sleep(0.01)
            assert first == page.granted_bytes() is not None
        again = await rig.attach()
        assert again.page == reply.page
        assert rig.take(JobJoined) == []

    with_agent(tmp_path, act)


def test_a_process_that_attaches_often_costs_one_descriptor(tmp_path: Path) -> None:
    async def act(rig: AgentRig) -> None:
        await rig.attach()
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        for _ in range(100):
            await rig.attach()
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208

    with_agent(tmp_path, act)


def test_a_new_job_is_reported_at_once(tmp_path: Path) -> None:
    """The controller takes this first report as the zero point."""

    async def act(rig: AgentRig) -> None:
        await rig.attach()
        join, report = rig.sent[-2:]
        assert isinstance(join, JobJoined)
        assert [(c.operations_begun, c.announced_bytes) for c in report.counters] == [
            (0, 0.0)
        ]

    with_agent(tmp_path, act)


def test_prefixes_of_the_controller_replace_the_working_directory(
    tmp_path: Path,
) -> None:
    async def act(rig: AgentRig) -> None:
        terms = AgentConfig("control", ["/scratch"], 0.1, 0.05, 0.6, inf, reads=True)
        rig.agent.receive(terms)
        assert (await rig.attach(folder="/home/me")).prefixes == ["/scratch"]

    with_agent(tmp_path, act)


def test_the_priority_of_a_job_reaches_the_controller(tmp_path: Path) -> None:
    async def act(rig: AgentRig) -> None:
        await rig.attach(priority=2.5)
        assert [joined.priority for joined in rig.take(JobJoined)] == [2.5]
        await rig.agent.reply(ME, RegisterJob("17", 0, 0, "", 1, "/", qos="urgent"))
        assert rig.take(JobJoined)[-1].qos == "urgent"

    with_agent(tmp_path, act)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a page to its user")
def test_an_untrusted_peer_may_only_lower_its_priority(tmp_path: Path) -> None:
    stranger = Peer(os.getpid(), 54321, 54321)

    async def act(rig: AgentRig) -> None:
        await rig.attach("a", peer=stranger, priority=5.0)
        await rig.attach("b", peer=stranger, priority=-5.0)
        assert [joined.priority for joined in rig.take(JobJoined)] == [0.0, -5.0]

    with_agent(tmp_path, act)


def test_an_untrusted_peer_cannot_claim_nodes(tmp_path: Path) -> None:
    stranger = Peer(os.getpid(), 54321, 54321)

    async def act(rig: AgentRig) -> None:
        reply = await rig.attach(peer=stranger, nodes=99)
        if os.geteuid() == 0:
            assert Path(reply.page).stat().st_uid == 54321
            # But such a claim keeps its files from being redirected.
            facts = ("54321:a", 54321, "54321", 0, 0.0)
            assert rig.take(JobJoined) == [JobJoined(*facts, several_nodes=True)]
        else:
            # Only root can give the page to its user.
            assert isinstance(reply, Refused)

    with_agent(tmp_path, act)


def test_a_process_that_claims_nodes_later(tmp_path: Path) -> None:
    async def act(rig: AgentRig) -> None:
        await rig.attach()
        await rig.attach(nodes=2)
        await rig.attach(nodes=2)
        joined = rig.take(JobJoined)
        assert [message.several_nodes for message in joined] == [False, True]

    with_agent(tmp_path, act)


def test_a_job_is_over_with_its_last_process(tmp_path: Path) -> None:
    async def act(rig: AgentRig) -> None:
        with subprocess.Popen(["sleep", "60"]) as process:
            reply = await rig.attach(peer=Peer(process.pid, ME.user, ME.group))
            rig.take(JobJoined)
            process.kill()
            process.wait()
            await until_async(lambda: rig.sent)
        report, left = rig.sent
        assert isinstance(report, CounterReport)
        assert report.counters[0].job_key == key()
        assert left == JobLeft(key())
        assert not Path(reply.page).exists()

    with_agent(tmp_path, act)


def test_a_process_that_has_ended_already(tmp_path: Path) -> None:
    async def act(rig: AgentRig) -> None:
        with subprocess.Popen(["true"]) as process:
            process.wait()
        asked = AttachProcess("a")
        refused = await rig.agent.reply(Peer(process.pid, ME.user, ME.group), asked)
        assert refused == Refused(ENDED_WORDS, retry=True)
        assert not rig.take(JobJoined)

    with_agent(tmp_path, act)


def test_a_process_with_the_number_of_the_one_that_asked_joins_no_job(
    tmp_path: Path,
) -> None:
    """A connection outlives the process that has made it, if another one has it."""

    async def act(rig: AgentRig) -> None:
        known, asked = ME.identified(), AttachProcess("a")
        assert known.start == process_start_ticks(os.getpid())
        assert known.start is not None
        later = replace(known, start=known.start - 1)
        assert await rig.agent.reply(later, asked) == Refused(ENDED_WORDS, retry=True)
        assert not rig.take(JobJoined)
        assert isinstance(await rig.agent.reply(known, asked), PageAssigned)

    with_agent(tmp_path, act)


@pytest.mark.parametrize("ends", ["unseen", "later"])
def test_a_process_that_cannot_be_watched_has_not_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    def exhausted(pid: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async def act(rig: AgentRig) -> None:
        with subprocess.Popen(["sleep", "600"]) as process, ExitStack() as at_end:
            at_end.callback(process.kill)
            with monkeypatch.context() as patch:
                patch.setattr(os, "pidfd_open", exhausted)
                await rig.attach(peer=Peer(process.pid, ME.user, ME.group))
                rig.pass_time(CONFIG.lease_s)
                assert rig.take(JobLeft) == []
                if ends == "unseen":
                    process.kill()
                    process.wait()
            rig.pass_time(CONFIG.lease_s)
            process.kill()
            process.wait()
            await until_async(lambda: JobLeft(key()) in rig.sent)

    with_agent(tmp_path, act)


def test_reports_and_heartbeats(tmp_path: Path) -> None:
    async def act(rig: AgentRig) -> None:
        await rig.attach()
        rig.agent.update()
        (report,) = rig.take(CounterReport)
        assert [counts.job_key for counts in report.counters] == [key()]
        assert report.job_count == 1
        # An idle job is not reported again until the next heartbeat.
        rig.pass_time(CONFIG.lease_s / 4.0)
        assert rig.sent == []
        rig.pass_time(CONFIG.lease_s / 4.0)
        assert len(rig.take(CounterReport)) == 1

    with_agent(tmp_path, act)


def test_leases_are_renewed_only_while_the_controller_sends_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    granted: list[float] = []

    def renew(bell: Bell, duration_s: float) -> None:
        granted.append(duration_s / CONFIG.lease_s)

    async def act(rig: AgentRig) -> None:
        await rig.attach()
        rig.now += CONFIG.lease_s / 2.0
        rig.agent.receive(Grants({}))
        rig.agent.update()
        for leases in (0.5, 0.75):
            rig.pass_time(leases * CONFIG.lease_s)
        # After half a lease of silence, half a lease is left; then nothing is.
        assert granted == pytest.approx([1.0, 1.0, 0.5])

    monkeypatch.setattr(Bell, "renew", renew)
    with_agent(tmp_path, act)


@pytest.mark.parametrize("silent_leases", [0.25, 5.0])
def test_a_new_job_does_not_extend_leases_without_a_controller(
    tmp_path: Path, silent_leases: float
) -> None:
    """A paused job runs again though its user starts other jobs all the time."""
    left_s = max(1.0 - silent_leases, 0.0) * CONFIG.lease_s

    async def act(rig: AgentRig) -> None:
        before_ns = time.monotonic_ns()
        await rig.attach("a")
        first_ns = lease_ns(tmp_path)
        assert first_ns >= before_ns + CONFIG.lease_s * 1e9
        rig.now += silent_leases * CONFIG.lease_s
        reply = await rig.attach("b")
        after_ns = time.monotonic_ns() + left_s * 1e9
        # A lease that has ended already is left as it is.
        assert lease_ns(tmp_path) <= (after_ns if left_s else first_ns)
        with Page.open(Path(reply.page)) as page:
            assert page._read().lease_ns <= after_ns

    with_agent(tmp_path, act)


def lease_ns(folder: Path) -> int:
    """Return when the lease of all jobs of this user ends (ns)."""
    data = (folder / f"{ME.user}.bell").read_bytes()
    return int(BellWords.from_buffer_copy(data).lease_ns)


def test_a_job_is_reported_once_after_several_greetings(tmp_path: Path) -> None:
    async def act(rig: AgentRig) -> None:
        await rig.attach()
        for _ in range(3):
            rig.agent.receive(RequestHello())
        rig.sent.clear()
        rig.agent.update()
        (report,) = rig.take(CounterReport)
        assert [counts.job_key for counts in report.counters] == [key()]
        # Greetings that nobody answers take no memory.
        for _ in range(50):
            rig.agent.receive(RequestHello())
        assert len(rig.agent._schedule) <= 4

    with_agent(tmp_path, act)


def test_a_controller_that_asks_is_greeted_again(tmp_path: Path) -> None:
    async def act(rig: AgentRig) -> None:
        await rig.attach()
        rig.sent.clear()
        rig.agent.receive(RequestHello())
        assert rig.sent == [
            AgentHello([key()]),
            JobJoined(key(), ME.user, str(ME.group), 0, 0.0),
        ]

    with_agent(tmp_path, act)


def test_a_later_agent_reopens_the_pages(tmp_path: Path) -> None:
    async def act(rig: AgentRig) -> None:
        await rig.attach(volume_bytes=3.0)

    with_agent(tmp_path, act)

    async def again(rig: AgentRig) -> None:
        assert rig.sent[:2] == [
            AgentHello([key()]),
            JobJoined(key(), ME.user, str(ME.group), 0, 3.0),
        ]

    with_agent(tmp_path, again)


def test_requests_of_users_are_forwarded(tmp_path: Path) -> None:
    async def act(rig: AgentRig) -> None:
        reply = asyncio.create_task(rig.agent.reply(ME, GetStatus()))
        await asyncio.sleep(0)
        (request,) = rig.take(UserRequest)
        assert (request.user, request.trusted) == (ME.user, True)
        rig.agent.receive(UserReply(request.number + 1, TextAnswer("to somebody else")))
        rig.agent.receive(UserReply(request.number, TextAnswer("yes")))
        assert await reply == TextAnswer("yes")

    with_agent(tmp_path, act)


def test_a_controller_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.live.node.agent._ANSWER_S", 0.01)

    async def act(rig: AgentRig) -> None:
        reply = await rig.agent.reply(ME, GetStatus())
        assert reply == Refused("the controller does not answer", retry=True)

    with_agent(tmp_path, act)


def test_a_user_may_not_have_too_many_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "is_operator", lambda _: False)
    monkeypatch.setitem(budgets._MOST, Holding.JOBS, 2)

    async def act(rig: AgentRig) -> None:
        for job in ("a", "b"):
            assert isinstance(await rig.attach(job), PageAssigned)
        assert "too many jobs on this node" in (await rig.attach("c")).reason
        assert isinstance(await rig.attach("a"), PageAssigned)
        (throttled,) = rig.agent.budgets.throttled(rig.agent._clock())
        assert throttled.what == Holding.JOBS

    with_agent(tmp_path, act)


def test_a_full_disk_is_refused_in_one_line(tmp_path: Path) -> None:
    async def act(rig: AgentRig) -> None:
        rig.agent._folder = Path("/proc")
        refused = await rig.attach()
        assert isinstance(refused, Refused)
        assert "\n" not in refused.reason

    with_agent(tmp_path, act)


def test_drains_and_measurements_count_in_the_budget_of_their_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "is_operator", lambda _: False)
    monkeypatch.setitem(budgets._RATES, Spending.DRAINS, (0.001, 2.0))
    monkeypatch.setattr(LocalJob, "orphaned_parts", lambda *_: [object()])
    monkeypatch.setattr(LocalJob, "leftovers", lambda *_, **__: [])

    async def act(rig: AgentRig) -> None:
        swept: list[object] = []
        monkeypatch.setattr(rig.agent._drains.sweeper, "sweep", swept.extend)
        await rig.attach()
        for _ in range(5):
            rig.agent.receive(RequestReport([key()]))
        assert len(swept) == 2
        (throttled,) = rig.agent.budgets.throttled(rig.agent._clock())
        assert throttled.what == str(Spending.DRAINS)
        rig.agent._note_bypass(Bypass([], {ME.user: 1.0}))
        debt_s = rig.agent.budgets.debt_s(ME.user, Spending.LOOKS, rig.agent._clock())
        # One second of a processor is 10,000 looks.
        assert debt_s > 5.0

    with_agent(tmp_path, act)


# --- Parts ----------------------------------------------------------------------------


def test_parts_of_processes_that_ended_and_of_jobs_with_two_nodes_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job goes on: the agent does not wait for its end."""
    orphans, living = object(), object()
    monkeypatch.setattr(LocalJob, "orphaned_parts", lambda *_: [orphans])
    monkeypatch.setattr(LocalJob, "leftovers", lambda *_, **__: [living])

    async def act(rig: AgentRig) -> None:
        swept: list[object] = []
        merged: list[object] = []
        monkeypatch.setattr(rig.agent._drains.sweeper, "sweep", swept.extend)
        monkeypatch.setattr(rig.agent._drains.merger, "sweep", merged.extend)
        with subprocess.Popen(["sleep", "60"]) as process:
            await rig.attach()
            await rig.attach(peer=Peer(process.pid, ME.user, ME.group))
            swept.clear()
            process.kill()
        await until_async(lambda: swept == [orphans])
        job = rig.agent._jobs[key()]
        rig.agent.receive(Grants({}, partitions={key(): Partition(3, "/jobs/a")}))
        rig.agent.receive(Grants({}, partitions={key(): Partition(0, "/jobs/a")}))
        assert merged == []  # nothing was redirected
        job.place(Partition(3, "/jobs/a"))
        redirected = PageWords.staging.offset + StagingWords.redirected_bytes.offset
        job.page._write(redirected, c_uint64(5))
        rig.agent.receive(Grants({}, partitions={key(): Partition(0, "/jobs/a")}))
        # It does not wait behind drains, which may take long.
        assert (swept, merged) == ([orphans], [living])

    with_agent(tmp_path, act)


# --- Jobs of a batch system -----------------------------------------------------------


def test_a_job_is_registered_until_its_page_is_removed(tmp_path: Path) -> None:
    me, group = ME.user, ME.group

    async def act(rig: AgentRig) -> None:
        folder = "/scratch/dir"
        message = RegisterJob(
            "17", me, group, "physics", 4, folder, history_name="climate"
        )
        reply = await rig.agent.reply(ME, message)
        assert isinstance(reply, PageAssigned)
        assert reply.prefixes == [folder]
        facts = (f"{me}:17", me, "physics", 4, 0.0, storage_name(folder))
        assert rig.take(JobJoined)[-1] == JobJoined(*facts, history_name="climate")
        # The end of an attached process does not end a registered job.
        with subprocess.Popen(["true"]) as process:
            process.wait()
        await rig.attach("17", Peer(process.pid, me, group))
        assert rig.take(JobJoined) == []
        # What penstock run announces inside the job is passed on, once.
        for _ in range(2):
            await rig.attach("17", volume_bytes=5.0, work_s=7.0, priority=-1.0)
        (told,) = rig.take(JobJoined)
        assert (told.volume_bytes, told.work_s, told.priority) == (5.0, 7.0, -1.0)
        assert (told.nodes, told.group, told.history_name) == (4, "physics", "climate")
        rig.pass_time(CONFIG.lease_s / 2.0)
        assert rig.take(JobLeft) == []
        Path(reply.page).unlink()
        rig.pass_time(CONFIG.lease_s / 2.0)
        assert rig.take(JobLeft) == [JobLeft(f"{me}:17")]

    with_agent(tmp_path, act)


def test_only_a_trusted_peer_registers_jobs(tmp_path: Path) -> None:
    stranger = Peer(os.getpid(), 54321, 54321)

    async def act(rig: AgentRig) -> None:
        rig.sent.clear()
        message = RegisterJob("17", ME.user, ME.group, "physics", 4)
        reply = await rig.agent.reply(stranger, message)
        assert reply == Refused(
            "only root may register a job (start it with penstock run)"
        )
        assert rig.sent == []

    with_agent(tmp_path, act)


# --- Damaged pages --------------------------------------------------------------------


def damage(page: Path, how: str) -> None:
    """Damage a page as its owner can."""
    if how == "cut off":
        os.truncate(page, 0)
    elif how == "cut short":
        os.truncate(page, 100)
    elif how == "emptied":
        page.write_bytes(bytes(4096))
    else:
        page.write_bytes(b"?" * 4096)


@pytest.mark.parametrize("how", ["cut off", "cut short", "emptied", "garbage"])
@pytest.mark.parametrize("seen_by", ["report", "grant", "config", "renewal"])
def test_only_the_job_of_a_damaged_page_is_removed(
    tmp_path: Path, how: str, seen_by: str
) -> None:
    async def act(rig: AgentRig) -> None:
        damaged, sound = (await rig.attach("a")).page, (await rig.attach("b")).page
        rig.sent.clear()
        damage(Path(damaged), how)
        if seen_by == "grant":
            rig.agent.receive(Grants({key("a"): 5.0, key("b"): 0.0}))
        elif seen_by == "config":
            rig.agent.receive(CONFIG)
        elif seen_by == "renewal":
            rig.pass_time(CONFIG.lease_s / 2.0)
        else:
            rig.agent.receive(RequestReport([key("a"), key("b")]))
        assert rig.take(JobLeft) == [JobLeft(key("a"))]
        rig.agent.receive(RequestReport([key("b")]))
        assert [c.job_key for c in rig.take(CounterReport)[-1].counters] == [key("b")]
        assert Path(sound).exists()
        assert not Path(damaged).exists()
        # The job may come back, with a new page.
        assert isinstance(await rig.attach("a"), PageAssigned)

    with_agent(tmp_path, act)


@settings(max_examples=50)
@given(st.binary(min_size=0, max_size=688), st.integers(16, 300))
def test_the_report_of_any_page_is_a_valid_message(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, offset: int
) -> None:
    """A page cannot spoil the reports of other jobs in the same message."""

    async def act(rig: AgentRig) -> None:
        for job in ("a", "b"):
            reply = await rig.attach(job)
            if job == "a":
                with Path(reply.page).open("r+b") as page:
                    page.seek(offset)
                    page.write(data)
        rig.agent.receive(CONFIG)
        rig.agent.receive(Grants({key("a"): 7.0, key("b"): 7.0}))
        rig.agent.receive(RequestReport([key("a"), key("b")]))
        for message in rig.sent:
            assert FROM_AGENT(encode(message)) == message
        # A job that claims what nobody can have moved is not controlled any more.
        removed = {sent.job_key for sent in rig.sent if isinstance(sent, JobLeft)}
        reported = {c.job_key for c in rig.take(CounterReport)[-1].counters}
        assert reported | removed == {key("a"), key("b")}
        assert key("b") in reported

    with_agent(tmp_path_factory.mktemp("pages"), act)
