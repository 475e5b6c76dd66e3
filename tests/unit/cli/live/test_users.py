# SPDX-License-Identifier: MIT
"""Names of users in live commands; one user, ann, is known."""

from __future__ import annotations

import pytest

from penstock.cli.live.users import job_argument, job_labels, job_words, user_words


def test_users_without_a_name_are_shown_by_their_numbers() -> None:
    assert (user_words(1001), user_words(1002)) == ("ann", "1002")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("climate", "climate"),
        ("ann:climate", "1001:climate"),
        ("1001:climate", "1001:climate"),
        ("ann:a:b", "1001:a:b"),
        ("bob:climate", "bob:climate"),
        ("ann:", "ann:"),
        (":climate", ":climate"),
    ],
)
def test_a_job_is_named_with_its_user_or_without(text: str, name: str) -> None:
    assert job_argument(text) == name


def test_a_key_becomes_the_form_that_commands_take() -> None:
    assert job_words("1001:a:b") == "ann:a:b"
    assert job_words("1002:a") == "1002:a"
    assert job_argument(job_words("1001:climate")) == "1001:climate"


def test_a_user_is_named_only_where_the_name_of_a_job_is_not_enough() -> None:
    keys = ["1001:climate", "1002:climate", "1001:genome", "1002:ann:x"]
    assert [job_labels(keys)(key) for key in keys] == [
        "ann:climate",
        "1002:climate",
        "genome",
        # This name alone would be a job of ann.
        "1002:ann:x",
    ]
