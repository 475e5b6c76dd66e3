# SPDX-License-Identifier: MIT
"""The main loop: one time and one decision per turn, and no error stops it."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures.thread import _threads_queues
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import pytest

from penstock.live.archive.answers import ArchiveAnswers
from penstock.live.archive.recorder import ArchiveRecorder
from penstock.live.control.coordinator import Coordinator
from penstock.live.control.output import CoordinatorOutput
from penstock.live.control.past import JobRun
from penstock.live.control.rates.controller import Controller
from penstock.live.control.rates.jobs import JobHistory
from penstock.live.daemon import control_loop as module
from penstock.live.daemon.control_loop import ControlLoop
from penstock.live.daemon.history import History
from penstock.live.daemon.learnt import LearntBandwidths
from penstock.live.wire.messages import (
    AgentConfig,
    AgentHello,
    CounterReport,
    ExplainJob,
    GetJobReport,
    GetStatus,
    Grants,
    JobJoined,
    JobLeft,
    ListPastJobs,
    ListUnderWay,
    Refused,
    SetBandwidth,
    SetPolicy,
    TextAnswer,
    UserReply,
    UserRequest,
)
from support.waiting import LIMIT_S, until_async

# --- Turns ----------------------------------------------------------------------------


class _Recorder:
    """Stands for a coordinator: records the times at which it is called."""

    def __init__(self, wakes: list[float] | None = None) -> None:
        self.received: list[float] = []
        self.decided: list[float] = []
        self.failing_decisions: set[int] = set()
        self.failing_messages: set[int] = set()
        self._wakes = wakes or []

    def receive(self, _agent: str, _message: AgentHello, now: float) -> None:
        self.received.append(now)
        if len(self.received) in self.failing_messages:
            raise ZeroDivisionError

    def decide(self, now: float) -> CoordinatorOutput:
        self.decided.append(now)
        if len(self.decided) in self.failing_decisions:
            raise ZeroDivisionError
        return CoordinatorOutput(wake=now + self._wakes.pop(0) if self._wakes else inf)


def _is_longer(values: list[float], length: int) -> bool:
    return len(values) > length


def run_with(
    recorder: _Recorder, act: Callable[[ControlLoop], Awaitable[None]]
) -> None:
    """Run `act` with a loop that drives a recorder."""

    async def running() -> None:
        coordinator: Any = recorder
        loop = ControlLoop(coordinator, None)
        loop.start()
        try:
            await act(loop)
        finally:
            loop.close()

    asyncio.run(running())


def test_messages_and_their_decision_have_the_same_time() -> None:
    recorder = _Recorder()

    async def act(loop: ControlLoop) -> None:
        for _ in range(2):
            loop.receive("a", AgentHello([]))
            loop.receive("b", AgentHello([]))
            turns = len(recorder.decided)
            await until_async(partial(_is_longer, recorder.decided, turns))

    run_with(recorder, act)
    first, second = recorder.decided
    assert recorder.received == [first, first, second, second]
    assert first < second


def test_the_loop_wakes_when_the_coordinator_wants_to_be_woken() -> None:
    recorder = _Recorder(wakes=[0.01, 0.02])

    async def act(loop: ControlLoop) -> None:
        loop.receive("a", AgentHello([]))
        await until_async(lambda: len(recorder.decided) == 3)

    run_with(recorder, act)
    first, second, third = recorder.decided
    assert second >= first + 0.01
    assert third >= second + 0.02


def test_without_messages_and_wake_there_is_no_turn() -> None:
    recorder = _Recorder()

    async def act(_loop: ControlLoop) -> None:
        for _ in range(100):
            await asyncio.sleep(0)

    run_with(recorder, act)
    assert recorder.decided == []


def test_a_decision_that_fails_is_taken_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_RETRY_S", 0.001)
    recorder = _Recorder()
    recorder.failing_decisions = {1, 2}

    async def act(loop: ControlLoop) -> None:
        loop.receive("a", AgentHello([]))
        await until_async(lambda: len(recorder.decided) == 3)

    run_with(recorder, act)
    failed = "a turn of the control loop failed"
    assert [record.message for record in caplog.records] == [failed] * 2
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_message_that_fails_is_lost_and_no_other(
    failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decision follows at once: the time for a retry never comes."""
    monkeypatch.setattr(module, "_RETRY_S", inf)
    recorder = _Recorder()
    recorder.failing_messages = {failing}

    async def act(loop: ControlLoop) -> None:
        for agent in ("a", "b", "c"):
            loop.receive(agent, AgentHello([]))
        await until_async(lambda: recorder.decided)

    run_with(recorder, act)
    assert len(recorder.received) == 3
    assert len(recorder.decided) == 1


def test_messages_sent_during_a_turn_belong_to_the_next_one() -> None:
    class Echo(_Recorder):
        def decide(self, now: float) -> CoordinatorOutput:
            output = super().decide(now)
            if len(self.decided) == 1:
                output.messages.append(("n", Grants({})))
            return output

    recorder = Echo()

    async def act(loop: ControlLoop) -> None:
        loop.links["n"] = lambda _: loop.receive("n", AgentHello([]))
        loop.receive("n", AgentHello([]))
        await until_async(lambda: len(recorder.decided) == 2)

    run_with(recorder, act)
    assert recorder.received == recorder.decided


# --- With a coordinator ---------------------------------------------------------------


def with_agent(
    history: History | None, act: Callable[[ControlLoop, list[Any]], Awaitable[None]]
) -> None:
    """Run `act` with a loop that knows an agent "n", and the messages sent to it."""

    async def running() -> None:
        controller = Controller("fair-share", 100.0, compiled=False)
        config = AgentConfig("control", [], 0.1, 0.1, 3.0, inf, reads=True)
        recall = history.recall if history else lambda _: None
        loop = ControlLoop(Coordinator(controller, config, recall), history)
        sent: list[Any] = []
        loop.links["n"] = sent.append
        loop.receive("n", AgentHello([]))
        loop.start()
        try:
            await act(loop, sent)
        finally:
            loop.close()

    asyncio.run(running())


def test_messages_that_arrive_together_are_one_decision() -> None:
    async def act(loop: ControlLoop, sent: list[Any]) -> None:
        for job_key in ("0:a", "0:b"):
            loop.receive("n", JobJoined(job_key, 0, "0", 0, 0.0))
        assert sent == []
        await until_async(lambda: sent)
        config = loop.coordinator.agent_config
        assert sent == [config, Grants({"0:a": 100.0, "0:b": 100.0})]

    with_agent(None, act)


def test_an_error_in_the_coordinator_costs_one_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def act(loop: ControlLoop, sent: list[Any]) -> None:
        joined = loop.coordinator._job_joined

        def broken(agent: str, message: JobJoined, now: float) -> None:
            if message.job_key == "0:a":
                raise ZeroDivisionError
            joined(agent, message, now)

        monkeypatch.setattr(loop.coordinator, "_job_joined", broken)
        for job_key in ("0:a", "0:b"):
            loop.receive("n", JobJoined(job_key, 0, "0", 0, 0.0))
        await until_async(lambda: len(sent) == 2)
        assert sent[-1] == Grants({"0:b": 100.0})

    with_agent(None, act)


def test_messages_to_an_unknown_agent_are_dropped() -> None:
    async def act(loop: ControlLoop, sent: list[Any]) -> None:
        loop.receive("elsewhere", CounterReport([], 0))
        await until_async(lambda: sent)
        assert [type(message) for message in sent] == [AgentConfig]

    with_agent(None, act)


def test_messages_to_other_nodes_go_to_the_remote_link() -> None:
    remote: list[str] = []

    async def act(loop: ControlLoop, _sent: list[Any]) -> None:
        loop.remote = lambda agent, message: remote.append(agent)
        loop.receive("elsewhere", AgentHello([]))
        await until_async(lambda: remote)

    with_agent(None, act)
    assert remote == ["elsewhere"]


def test_the_histories_of_jobs_that_end_are_saved(tmp_path: Path) -> None:
    history = History(tmp_path / "h.sqlite", now=lambda: 50.0, wall=lambda: 1e9)

    async def act(loop: ControlLoop, sent: list[Any]) -> None:
        loop.receive("n", JobJoined("0:a", 0, "0", 0, 0.0))
        loop.receive("n", JobLeft("0:a"))
        await until_async(lambda: sent)

    with_agent(history, act)
    again = History(tmp_path / "h.sqlite", now=lambda: 50.0, wall=lambda: 1e9)
    assert isinstance(again.recall("0:a"), JobHistory)
    again.close()


def test_a_failure_to_save_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(tmp_path / "h.sqlite")
    learnt = LearntBandwidths(tmp_path / "bandwidth.json")

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(history, "save", fail)
    monkeypatch.setattr(learnt, "save", fail)

    async def act(loop: ControlLoop, sent: list[Any]) -> None:
        loop.learnt = learnt
        loop.receive("n", JobJoined("0:a", 0, "0", 0, 0.0))
        loop.receive("n", JobLeft("0:a"))
        await until_async(lambda: sent)

    with_agent(history, act)
    failures = [each for each in caplog.records if each.exc_info]
    # The job that left; at the end all jobs, and what was learnt.
    assert [each.message for each in failures] == ["what is known was not saved"] * 3


def test_files_that_do_not_answer_do_not_delay_the_end_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    history = History(tmp_path / "h.sqlite")
    go_on, threads = threading.Event(), list[threading.Thread]()

    def hang(*_: object) -> None:
        threads.append(threading.current_thread())
        go_on.wait(LIMIT_S)

    monkeypatch.setattr(history, "save", hang)
    monkeypatch.setattr(module, "_SAVE_S", 0.1)

    async def act(loop: ControlLoop, _sent: list[Any]) -> None:
        loop.save()
        await until_async(lambda: bool(threads))

    with_agent(history, act)
    assert "they do not answer" in caplog.text
    # Python does not wait for it either when the process ends.
    assert threads[0].daemon
    go_on.set()
    threads[0].join(LIMIT_S)
    assert history._database is None


def test_operations_that_end_are_given_to_the_predictor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    questions: list[tuple[str, object]] = []

    async def act(loop: ControlLoop, _sent: list[Any]) -> None:
        output = CoordinatorOutput(ended={"0:a"})
        monkeypatch.setattr(loop.coordinator, "decide", lambda _: output)
        loop.predict = lambda job_key, operations: questions.append(
            (job_key, operations)
        )
        loop.receive("n", AgentHello([]))
        await until_async(lambda: questions)

    with_agent(None, act)
    assert questions == [("0:a", [])]


class _Running:
    """Stands for a job that runs: counts how often its operation is asked for."""

    has_operated = True

    def __init__(self, name: str) -> None:
        self.name, self.key, self.asked = name, f"7:{name}", 0

    def under_way(self, now_s: float) -> tuple[JobRun, None]:
        self.asked += 1
        run = JobRun(
            job_key=self.key,
            user=7,
            storage="s",
            nodes=1,
            joined_s=now_s - 9.0,
            left_s=None,
            lost_s=0.0,
            moved_bytes=5.0,
            cap=inf,
            policy="fair-share",
        )
        return run, None


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        (ListUnderWay(), [4, 4]),
        (ListPastJobs(), [4, 4]),
        (GetJobReport("a"), [4, 4]),
        (ExplainJob("a", joined_s=1.0), [4, 0]),
        (ExplainJob("7:b", joined_s=1.0), [0, 4]),
    ],
)
def test_questions_that_are_refused_cost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: Any, asked: list[int]
) -> None:
    """The control loop looks at the jobs of accepted questions, and at those only."""
    go = threading.Event()

    def answer(_self: ArchiveAnswers, _message: UserRequest) -> TextAnswer:
        go.wait(LIMIT_S)
        return TextAnswer("read")

    monkeypatch.setattr(ArchiveAnswers, "answer", answer)

    async def act(loop: ControlLoop, sent: list[Any]) -> None:
        jobs = [_Running("a"), _Running("b")]
        monkeypatch.setattr(loop.coordinator, "seen_by", lambda _: jobs)
        loop.archive = ArchiveRecorder(tmp_path / "archive")
        for number in range(20):
            loop.receive("n", UserRequest(number, 7, False, question))
        assert [job.asked for job in jobs] == asked
        go.set()
        await until_async(lambda: sum(isinstance(m, UserReply) for m in sent) == 20)
        replies = [m.reply for m in sent if isinstance(m, UserReply)]
        assert replies.count(TextAnswer("read")) == 4
        assert sum(isinstance(reply, Refused) for reply in replies) == 16

    with_agent(None, act)


def test_a_user_who_asks_too_much_on_all_nodes_is_refused() -> None:
    """Each agent limits what is asked on its node only."""

    async def act(loop: ControlLoop, sent: list[Any]) -> None:
        loop.links["m"] = sent.append
        loop.receive("m", AgentHello([]))
        for user in (7, 8):
            loop.receive("n", JobJoined(f"{user}:a", user, "0", 0, 0.0))
        await until_async(lambda: loop.coordinator.has_key("8:a"))

        def ask(user: int, times: int, *, trusted: bool = False) -> None:
            for number in range(times):
                node = "nm"[number % 2]
                loop.receive(node, UserRequest(number, user, trusted, GetStatus()))

        def replies() -> list[Any]:
            return [each.reply for each in sent if isinstance(each, UserReply)]

        ask(7, 4000)
        await until_async(lambda: len(replies()) == 4000)
        refused = [each for each in replies() if isinstance(each, Refused)]
        assert len(refused) > 1000
        assert all(each.retry for each in refused)
        sent.clear()
        ask(8, 1)
        ask(0, 1, trusted=True)
        await until_async(lambda: len(replies()) == 2)
        of_other, of_operator = replies()
        assert of_other.throttled == []
        (throttled,) = of_operator.throttled
        assert (throttled.user, throttled.node) == (7, "the controller")
        assert throttled.times >= len(refused)
        assert throttled.what.startswith("requests to the controller were refused")

    with_agent(None, act)


def test_another_thread_reads_the_status() -> None:
    async def act(loop: ControlLoop, _sent: list[Any]) -> None:
        status = await asyncio.to_thread(loop.status_reader())
        assert status.policy == "fair-share"

    with_agent(None, act)


def test_a_change_by_an_operator_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def act(loop: ControlLoop, sent: list[Any]) -> None:
        loop.receive("n", UserRequest(1, 1000, True, SetBandwidth(40.0)))
        await until_async(lambda: sent)

    with caplog.at_level(logging.INFO, "penstock.serve"):
        with_agent(None, act)
    assert caplog.messages == ["user 1000: 40 B/s are shared"]


def test_joins_leaves_and_the_stop_are_logged_for_debugging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def act(loop: ControlLoop, sent: list[Any]) -> None:
        loop.receive("n", JobJoined("0:a", 0, "0", 0, 0.0))
        loop.receive("n", JobLeft("0:a"))
        await until_async(lambda: sent)

    with caplog.at_level(logging.DEBUG, "penstock.serve"):
        with_agent(None, act)
    assert caplog.messages == [
        "job 0:a joins on node n",
        "job 0:a leaves node n",
        "the controller stops",
    ]


def test_the_end_does_not_wait_for_a_policy_that_is_being_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiles, goes_on = threading.Event(), threading.Event()

    def compile_slowly(_: str) -> None:
        compiles.set()
        goes_on.wait(LIMIT_S)

    monkeypatch.setattr(module, "_compile", compile_slowly)

    async def main() -> None:
        loop = ControlLoop(_Recorder(), None)  # type: ignore[arg-type]
        monkeypatch.setattr(loop, "save", lambda: None)
        loop.receive("n", UserRequest(1, 0, True, SetPolicy("fcfs")))
        await until_async(compiles.is_set)
        loop.close()

    asyncio.run(main())
    compilers = [each for each in threading.enumerate() if "compiler" in each.name]
    # Python waits for other threads when it ends, and for those of its pools.
    assert [each.daemon for each in compilers] == [True]
    assert not {*compilers} & {*_threads_queues}
    goes_on.set()
