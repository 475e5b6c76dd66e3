# SPDX-License-Identifier: MIT
"""Jobs are named by their names, or by their keys where that is needed."""

from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.live.control.names import JobNames, SeveralJobsError, refusal


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("7:a", "7:a"),
        ("8:a", "8:a"),
        ("8:b", "b"),
        # This name could be taken for job b of user 8.
        ("9:8:b", "9:8:b"),
    ],
)
def test_a_key_is_shown_where_the_name_is_not_enough(key: str, shown: str) -> None:
    names = JobNames(["7:a", "8:a", "8:b", "9:8:b"])
    assert names.shown(key) == shown
    assert names.shown(key, lambda key: f"<{key}>") == (
        f"<{key}>" if shown == key else shown
    )


def test_an_answer_lists_the_keys_in_its_text() -> None:
    names = JobNames(["7:a", "8:a", "7:ab", "8:ab", "7:c"])
    answer = names.answer("7:a waits for 8:ab, from 14:05:39 on")
    assert answer.job_keys == ["7:a", "8:a", "8:ab"]
    shown = answer.words(lambda key: f"<{key}>")
    assert shown == "<7:a> waits for <8:ab>, from 14:05:39 on"


def test_a_refusal_lists_the_jobs_that_were_meant() -> None:
    refused = refusal(SeveralJobsError("a", ["7:a", "8:a"]))
    assert refused.job_keys == ["7:a", "8:a"]
    assert refused.words({"7:a": "ann:a", "8:a": "bob:a"}.__getitem__) == (
        "several jobs are called 'a' (name one by its user: ann:a or bob:a)"
    )
    assert refusal(InputError("no")).job_keys == []
