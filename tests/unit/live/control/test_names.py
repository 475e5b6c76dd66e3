# SPDX-License-Identifier: MIT
"""Jobs are named by their names, or by their keys where that is needed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import penstock.live
from penstock.errors import InputError
from penstock.live.control.names import (
    JobNames,
    SeveralJobsError,
    nearest_name,
    refusal,
)


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


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("genom", "genome"),
        ("gemome", "genome"),
        ("egnome", "genome"),
        ("ggenome", "genome"),
        ("climate-2", "climate-1"),
        ("climte-1", "climate-1"),
        ("x", ""),
        ("", ""),
        ("genome" * 20, ""),
    ],
)
def test_a_name_is_near_if_it_begins_and_ends_alike(name: str, nearest: str) -> None:
    known = ["genome", "climate-1", "g" * 200, "", "other"]
    assert nearest_name(name, known) == nearest


def test_names_of_users_are_compared_in_linear_time() -> None:
    """A thousand long names of one user stopped the daemon for seconds (difflib)."""
    names = [("a" * 199) + str(number) for number in range(10_000)]
    begun_s = time.monotonic()
    assert nearest_name("a" * 198, names) == ""
    assert nearest_name("a" * 60, [name[-61:] for name in names])
    assert time.monotonic() - begun_s < 60.0


@pytest.mark.parametrize("folder", ["archive", "control", "daemon", "node", "wire"])
def test_no_daemon_compares_names_with_difflib(folder: str) -> None:
    """Its time grows with the cube of the length of a name, which a user chooses."""
    home = Path(penstock.live.__file__).parent / folder
    files = sorted(home.rglob("*.py"))
    assert files
    assert not [file.name for file in files if "from difflib" in file.read_text()]
