# SPDX-License-Identifier: MIT
"""A look for a job that hangs costs its user a job, and nobody else anything."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.mount import job_lookups, rules
from penstock.mount.job_lookups import MOST_LOOKS, MOST_LOOKS_OF_ALL, JobLookups
from penstock.mount.rules import FileOpener, Rule
from support.waiting import LIMIT_S, until

SOME, OTHER = 7, 8


def test_a_look_that_hangs_finds_nothing_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_lookups, "_ANSWER_S", 0.01)
    answers = threading.Event()

    def hang() -> list[str]:
        answers.wait(LIMIT_S)
        return ["job"]

    lookups = JobLookups()
    for _ in range(MOST_LOOKS):
        assert lookups.names(SOME, hang) == []
    # From now on nothing is asked for this user.
    assert lookups.names(SOME, lambda: ["job"]) == []
    monkeypatch.setattr(job_lookups, "_ANSWER_S", LIMIT_S)
    assert lookups.names(OTHER, lambda: ["other"]) == ["other"]
    answers.set()
    until(lambda: lookups.names(SOME, lambda: ["job"]) == ["job"])
    assert lookups._under_way[OTHER] == 0


@pytest.mark.parametrize(
    ("owner_of", "most"),
    [(lambda _: SOME, MOST_LOOKS), (lambda user: user, MOST_LOOKS_OF_ALL)],
    ids=["one owner", "many owners"],
)
def test_many_user_ids_do_not_have_more_looks_that_hang(
    monkeypatch: pytest.MonkeyPatch, owner_of: Callable[[int], int], most: int
) -> None:
    monkeypatch.setattr(job_lookups, "_ANSWER_S", 0.01)
    answers, begun = threading.Event(), itertools.count()

    def hang() -> list[str]:
        next(begun)
        answers.wait(LIMIT_S)
        return []

    lookups = JobLookups(owner_of)
    for user in range(2 * MOST_LOOKS_OF_ALL):
        lookups.names(user, hang)
    answers.set()
    until(lambda: not lookups._under_way)
    assert next(begun) == most


def test_an_error_of_a_look_is_passed_on() -> None:
    def fail() -> list[str]:
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError):
        JobLookups().names(SOME, fail)


def test_the_storage_of_a_note_cannot_hold_up_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process names the file itself: it may lie on the mount that asks."""
    monkeypatch.setattr(job_lookups, "_ANSWER_S", 0.01)
    (process := tmp_path / "12").mkdir()
    page = tmp_path / "x.page"
    (process / "environ").write_bytes(b"PENSTOCK_PAGE=%s\0" % bytes(page))
    note = {"job": f"{SOME}:a", "user": SOME}
    page.with_suffix(".note").write_text(json.dumps(note))
    answers = threading.Event()

    def open_slowly(path: Path) -> bytes:
        answers.wait(LIMIT_S)
        return path.with_suffix(".note").read_bytes()

    monkeypatch.setattr(rules, "_trusted_content", open_slowly)
    opened_by = FileOpener(12, SOME, "/file", tmp_path)
    assert not Rule("a", job="*").matches(opened_by)
    answers.set()
