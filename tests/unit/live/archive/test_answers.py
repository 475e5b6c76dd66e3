# SPDX-License-Identifier: MIT
"""Who sees what, and to whom lost time is attributed, in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from penstock.live.archive import answers, reader
from penstock.live.archive.answers import ArchiveAnswers
from penstock.live.control.past import DRY_RUN, CompletedOperation
from penstock.live.wire.messages import (
    LARGEST_BYTES,
    ControllerRequest,
    ExplainJob,
    GetJobReport,
    GetStatus,
    JobReport,
    ListPastJobs,
    ListUnderWay,
    PastJobs,
    Refused,
    ReportedOperation,
    TextAnswer,
    UserRequest,
)
from support.archives import WALL_S, operation, record, recorder, run


def _ask(
    folder: Path, request: ControllerRequest, user: int = 7, *, trusted: bool = False
) -> Any:
    archive = ArchiveAnswers(folder, lambda: WALL_S + 300.0)
    return archive.answer(UserRequest(1, user, trusted, request))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an archive in which a waits for b (its own user's) and for c.

    Job a is in an operation from 0 to 10 s and loses 6 s of them. Meanwhile b moves 1
    GB, and c half of the 4 GB of its operation.
    """
    record(
        tmp_path,
        (run("7:a"), [operation(0.0, 10.0, lost_s=6.0)]),
        (run("7:b"), [operation(2.0, 4.0)]),
        (run("8:c"), [operation(5.0, 15.0, moved_bytes=4e9)]),
        (run("8:elsewhere", storage="other"), [operation(0.0, 10.0)]),
    )
    return tmp_path


def test_lost_time_is_attributed_by_what_others_moved(folder: Path) -> None:
    report = _ask(folder, GetJobReport("a"), trusted=True)
    assert isinstance(report, JobReport)
    lost_s = {delay.job_name: delay.lost_s for delay in report.delays}
    assert lost_s == pytest.approx({"b": 2.0, "c": 4.0})
    moved_bytes = {delay.job_name: delay.moved_bytes for delay in report.delays}
    assert moved_bytes == pytest.approx({"b": 1e9, "c": 2e9})
    assert [other.job.job_name for other in report.others] == ["b", "c"]


def test_a_user_does_not_see_other_users_jobs(folder: Path) -> None:
    report = _ask(folder, GetJobReport("a"))
    assert [(d.job_name, d.lost_s) for d in report.delays] == [
        ("", pytest.approx(4.0)),
        ("b", pytest.approx(2.0)),
    ]
    assert report.others == []
    jobs = _ask(folder, ListPastJobs())
    assert isinstance(jobs, PastJobs)
    assert [job.job_name for job in jobs.jobs] == ["a", "b"]
    refused = _ask(folder, GetJobReport("c"))
    assert isinstance(refused, Refused)
    assert "penstock history lists past jobs" in refused.reason


def test_operators_see_all_jobs_and_the_latest_first_are_kept(folder: Path) -> None:
    jobs = _ask(folder, ListPastJobs(2), user=0, trusted=True).jobs
    assert len(jobs) == 2
    assert len(_ask(folder, ListPastJobs(), user=0, trusted=True).jobs) == 4


def test_an_earlier_run_is_reported_if_its_instant_is_given(folder: Path) -> None:
    record(folder, (run("7:a", joined_s=150.0, left_s=160.0, lost_s=0.0), []))
    first, last = [
        job for job in _ask(folder, ListPastJobs()).jobs if job.job_name == "a"
    ]
    for job in (first, last):
        report = _ask(folder, GetJobReport("a", job.joined_s))
        assert report.job == job
        words = _ask(folder, ExplainJob("a", job.joined_s)).text
        assert words.startswith("a ended ")
    assert first.joined_s < last.joined_s
    refused = _ask(folder, GetJobReport("a", last.joined_s + 1.0))
    assert "no run of 'a' began at" in refused.reason


def test_the_last_run_is_reported(folder: Path) -> None:
    record(folder, (run("7:a", joined_s=150.0, left_s=160.0, lost_s=0.0), []))
    report = _ask(folder, GetJobReport("a"))
    assert report.job.joined_s == WALL_S + 150.0
    assert report.operations == []


def test_explain_of_an_ended_job_is_one_line(folder: Path) -> None:
    answer = _ask(folder, ExplainJob("a"))
    assert isinstance(answer, TextAnswer)
    assert "lost 20 s of 1.667 min (yield 0.800)" in answer.text
    assert "It waited for jobs of other users (4 s), b (2 s)." in answer.text
    assert "\n" not in answer.text


def test_a_job_that_runs_is_suggested(folder: Path) -> None:
    request = UserRequest(1, 7, False, ExplainJob("genom"))
    refused = ArchiveAnswers(folder, running=["genome"]).answer(request)
    assert isinstance(refused, Refused)
    assert "did you mean genome?" in refused.reason


def test_a_name_that_jobs_of_several_users_have_is_refused(folder: Path) -> None:
    record(folder, (run("8:a"), []))
    refused = _ask(folder, GetJobReport("a"), user=0, trusted=True)
    assert isinstance(refused, Refused)
    assert "several jobs are called 'a'" in refused.reason
    assert "7:a or 8:a" in refused.reason
    for key in ("7:a", "8:a"):
        report = _ask(folder, GetJobReport(key), user=0, trusted=True)
        assert f"{report.job.user}:{report.job.job_name}" == key
    # A user sees only one of them.
    assert _ask(folder, GetJobReport("a")).job.user == 7


def test_jobs_of_several_users_with_one_name_are_told_apart(tmp_path: Path) -> None:
    """Job 7:a loses 6 s: two thirds to 8:a, which moves twice as much as b."""
    record(
        tmp_path,
        (run("7:a"), [operation(0.0, 10.0, lost_s=6.0)]),
        (run("8:a"), [operation(0.0, 10.0, moved_bytes=2e9)]),
        (run("8:b"), [operation(0.0, 10.0)]),
    )
    report = _ask(tmp_path, GetJobReport("7:a"), user=0, trusted=True)
    assert [(d.user, d.job_name) for d in report.delays] == [(8, "a"), (8, "b")]
    words = _ask(tmp_path, ExplainJob("7:a"), user=0, trusted=True)
    assert words.text.startswith("7:a ended ")
    assert "It waited for 8:a (4 s), b (2 s). See: penstock report 7:a" in words.text
    assert sorted(words.job_keys) == ["7:a", "8:a"]
    # A user sees only own jobs, and needs no numbers.
    words = _ask(tmp_path, ExplainJob("a"))
    assert words.text.endswith("See: penstock report a")
    refused = _ask(tmp_path, GetJobReport("a"), user=0, trusted=True)
    assert sorted(refused.job_keys) == ["7:a", "8:a"]


def test_the_nearest_name_is_suggested(folder: Path) -> None:
    record(folder, (run("7:dd-17960-1794841531"), []), (run("8:dd-1"), []))
    refused = _ask(folder, GetJobReport("dd"))
    assert "did you mean dd-17960-1794841531?" in refused.reason
    assert "did you mean" not in _ask(folder, GetJobReport("elsewhere")).reason


def test_other_requests_are_refused(folder: Path) -> None:
    assert isinstance(_ask(folder, GetStatus()), Refused)


def test_a_report_is_never_too_large_to_be_sent(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left out is said, and nothing is simulated on a part of the jobs."""
    monkeypatch.setattr(answers, "_MOST_OTHERS", 4)
    report = _ask(folder, GetJobReport("a"), trusted=True)
    assert (len(report.others), report.note) == (2, "")
    monkeypatch.setattr(answers, "_MOST_OTHERS", 3)
    report = _ask(folder, GetJobReport("a"), trusted=True)
    assert report.others == []
    assert report.note == "the other jobs have more than 3 operations"
    record(folder, (run("7:busy"), [operation(t, t + 0.5) for t in range(9)]))
    monkeypatch.setattr(answers, "_MOST_OPERATIONS", 5)
    report = _ask(folder, GetJobReport("busy"), trusted=True)
    assert (len(report.operations), report.operation_count) == (5, 9)
    assert report.note == "the job has more than 5 operations"


def test_a_report_reads_only_the_last_operations(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    monkeypatch.setattr(answers, "_MOST_OPERATIONS", 3)
    monkeypatch.setattr(answers, "_MOST_COMPARED", 4)
    decode = reader._operation

    def counted(row: Sequence[Any]) -> CompletedOperation:
        read.append(row)
        return decode(row)

    monkeypatch.setattr(reader, "_operation", counted)
    busy = [operation(t, t + 0.5, lost_s=0.1) for t in range(20)]
    record(folder, (run("7:x"), busy), (run("8:y"), busy))
    report = _ask(folder, GetJobReport("x"))
    assert len(read) == 3 + 4
    assert report.operation_count == 20
    assert [o.begin_s - WALL_S for o in report.operations] == [17.0, 18.0, 19.0]
    # Each of the three operations has lost 0.1 s.
    assert sum(delay.lost_s for delay in report.delays) == pytest.approx(0.3)


def test_lost_time_before_the_known_operations_is_not_attributed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last operation of others, that of c, begins after that of a."""
    monkeypatch.setattr(answers, "_MOST_COMPARED", 1)
    assert _ask(folder, GetJobReport("a"), trusted=True).delays == []


def test_nothing_is_simulated_if_some_jobs_are_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MOST_RUNS", 2)
    report = _ask(folder, GetJobReport("a"), trusted=True)
    assert report.others == []
    assert report.note == "more than 2 jobs ran at that time"


def test_few_operations_are_compared_with_many_jobs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_MOST_PAIRS", 4)
    busy = [operation(t, t + 0.5, lost_s=0.1) for t in range(6, 10)]
    record(folder, (run("7:x"), busy))
    # Beside three other jobs, one of four operations is looked at.
    report = _ask(folder, GetJobReport("x"), trusted=True)
    assert sum(delay.lost_s for delay in report.delays) == pytest.approx(0.1)


def test_the_largest_report_fits_into_a_message() -> None:
    done = [
        ReportedOperation(
            *(1.7e9 + i / 7, 1.7e9 + i / 3, 1e17 / 3, i / 7e5, i / 9e5, 1e15 / 7),
            "look-ahead-greedy-yield:horizon=window",
            [(1.7e9 + i / k, 1e15 / k) for k in (3, 7, 9, 11)],
        )
        for i in range(1000)
    ]
    size_bytes = len(msgspec.msgpack.encode(done)) / len(done)
    most = answers._MOST_OPERATIONS + answers._MOST_OTHERS
    assert size_bytes * most < LARGEST_BYTES / 2


def test_a_user_does_not_see_silent_jobs_of_others(tmp_path: Path) -> None:
    """A job without operations prevents no simulation, and is not sent either."""
    record(
        tmp_path,
        (run("7:a"), [operation(0.0, 10.0)]),
        (run("7:b"), []),
        (run("8:silent"), []),
    )
    report = _ask(tmp_path, GetJobReport("a"))
    assert [other.job.job_name for other in report.others] == ["b"]
    assert report.note == ""
    report = _ask(tmp_path, GetJobReport("a"), trusted=True)
    assert [other.job.job_name for other in report.others] == ["b", "silent"]


def test_a_job_that_runs_has_what_its_operation_has_lost_by_now(folder: Path) -> None:
    archive = recorder(folder)
    running = run("7:a", joined_s=100.0, left_s=None, lost_s=0.0, moved_bytes=1e9)
    archive.add([(running, operation(110.0, 120.0))], [])
    archive.close()
    # The archive knows it up to its last operation, the daemon up to now.
    now = replace(running, joined_s=WALL_S + 100.0, lost_s=150.0, moved_bytes=2e9)
    present = operation(WALL_S + 150.0, WALL_S + 300.0)
    answers = ArchiveAnswers(folder, lambda: WALL_S + 300.0, under_way=[(now, present)])

    def ask(request: ControllerRequest) -> Any:
        return answers.answer(UserRequest(1, 7, False, request))

    *_, job = ask(ListPastJobs()).jobs
    assert (job.left_s, job.lost_s, job.moved_bytes) == (None, 150.0, 2e9)
    assert job.progress_yield == pytest.approx(0.25)
    (under_way,) = ask(ListUnderWay()).runs
    assert under_way.job == job
    (shown,) = under_way.operations
    assert (shown.begin_s, shown.end_s) == (WALL_S + 150.0, WALL_S + 300.0)


def _with_new_run(
    folder: Path, operation_now: CompletedOperation | None
) -> ArchiveAnswers:
    """Return answers while a job runs of which the archive knows only an old run."""
    now = run("7:a", joined_s=WALL_S + 100.0, left_s=None, lost_s=50.0, moved_bytes=2e9)
    under_way = [(now, operation_now)]
    return ArchiveAnswers(
        folder, lambda: WALL_S + 300.0, running=["a", "idle"], under_way=under_way
    )


def test_a_job_in_its_first_operation_is_listed_and_reported(folder: Path) -> None:
    present = operation(WALL_S + 150.0, WALL_S + 300.0, lost_s=50.0)
    answers = _with_new_run(folder, present)

    def ask(request: ControllerRequest, user: int = 7) -> Any:
        return answers.answer(UserRequest(1, user, False, request))

    *_, job = ask(ListPastJobs()).jobs
    assert (job.job_name, job.joined_s, job.left_s) == ("a", WALL_S + 100.0, None)
    assert (job.lost_s, job.moved_bytes) == (50.0, 2e9)
    assert [each.job_name for each in ask(ListPastJobs(1)).jobs] == ["a"]
    for joined_s in (0.0, job.joined_s):
        report = ask(GetJobReport("a", joined_s))
        assert (report.job, report.operation_count) == (job, 1)
        (shown,) = report.operations
        assert (shown.begin_s, shown.end_s) == (WALL_S + 150.0, WALL_S + 300.0)
    # The old run can still be asked for; another user sees neither.
    assert ask(GetJobReport("a", WALL_S)).job.left_s == WALL_S + 100.0
    assert "a" not in [each.job_name for each in ask(ListPastJobs(), 8).jobs]


def test_an_operation_under_way_holds_up_others(folder: Path) -> None:
    record(
        folder,
        (
            run("7:late", joined_s=150.0, left_s=190.0),
            [operation(160.0, 180.0, lost_s=9.0)],
        ),
    )
    answers = _with_new_run(folder, operation(WALL_S + 150.0, WALL_S + 300.0))
    report = answers.answer(UserRequest(1, 7, False, GetJobReport("late")))
    assert isinstance(report, JobReport)
    assert {delay.job_name: delay.lost_s for delay in report.delays} == pytest.approx(
        {"a": 9.0}
    )


def test_a_run_that_is_archived_meanwhile_is_listed_once(folder: Path) -> None:
    answers = _with_new_run(folder, None)
    record(folder, (run("7:a", joined_s=100.0, left_s=150.0), []))
    past = answers.answer(UserRequest(1, 7, False, ListPastJobs()))
    assert isinstance(past, PastJobs)
    joined_s = [job.joined_s - WALL_S for job in past.jobs if job.job_name == "a"]
    assert joined_s == [0.0, 100.0]


def test_a_job_that_runs_without_io_is_not_suggested_for_itself(folder: Path) -> None:
    answers = _with_new_run(folder, None)
    refused = answers.answer(UserRequest(1, 7, False, GetJobReport("idle")))
    assert isinstance(refused, Refused)
    assert "job 'idle' has had no controlled I/O yet" in refused.reason
    assert "did you mean" not in refused.reason


def test_a_run_names_all_policies_that_it_saw(folder: Path) -> None:
    seen = ((0.0, "fair-share"), (40.0, "fcfs"), (70.0, "fair-share"), (90.0, DRY_RUN))
    several = run("7:m", policy=DRY_RUN, policies=seen)
    record(folder, (several, [operation(1.0, 100.0, policy=DRY_RUN)]))
    one, job = [
        next(j for j in _ask(folder, ListPastJobs()).jobs if j.job_name == name)
        for name in ("b", "m")
    ]
    assert job.policy == DRY_RUN
    assert [
        (span.policy, span.begin_s - WALL_S, span.end_s - WALL_S)
        for span in job.policies
    ] == [
        ("fair-share", 0.0, 40.0),
        ("fcfs", 40.0, 70.0),
        ("fair-share", 70.0, 90.0),
        (DRY_RUN, 90.0, 100.0),
    ]
    assert job.policy_names == ["fair-share", "fcfs", DRY_RUN]
    assert "under fair-share, fcfs, dry-run." in _ask(folder, ExplainJob("m")).text
    assert one.policy_names == [one.policy]
