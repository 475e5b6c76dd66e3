# SPDX-License-Identifier: MIT
"""What a reader may see."""

from __future__ import annotations

import os
import pwd

import pytest
from msgspec.structs import replace

from penstock.errors import InputError
from penstock.live.wire.messages import ExplainJob, OnBehalfOf, ThrottledUser
from penstock.web.identity.readers import OPERATOR, Reader, reader_named, reader_of_user
from support.statuses import coordinator_of, job_line, status_of


def test_root_and_the_user_of_the_daemon_are_operators() -> None:
    assert reader_of_user(0) == reader_of_user(os.geteuid()) == OPERATOR
    assert reader_of_user(54321) == Reader(54321)


def test_names_of_readers() -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    assert reader_named("nobody") == reader_named(str(nobody)) == Reader(nobody)
    assert reader_named("operator") == reader_named("root") == OPERATOR
    assert reader_named("operator:ann").name == "operator:ann"


@pytest.mark.parametrize("name", ["", "no-such-user", "operator:", "operator:a b", "²"])
def test_a_name_of_nobody(name: str) -> None:
    with pytest.raises(InputError, match=r"here: there is no user .* or operator"):
        reader_named(name, "here")


def test_users_see_their_own_jobs_only() -> None:
    throttled = [ThrottledUser(user, "too many", 1, 0.0, "n") for user in (7, 8)]
    status = replace(status_of(job_line("a", 7), job_line("b", 8)), throttled=throttled)
    part = Reader(8).part_of(status)
    assert [line.job_name for line in part.jobs] == ["b"]
    assert [each.user for each in part.throttled] == [8]
    assert (part.mode, part.storages) == (status.mode, status.storages)
    assert OPERATOR.part_of(status) is status


def test_the_part_is_what_the_daemon_answers_to_the_user() -> None:
    coordinator = coordinator_of(7, 8)
    everything = coordinator.status(1.0, explains=False)
    assert [line.user for line in everything.jobs] == [7, 8]
    for user in (7, 8, 9):
        answer = coordinator.status(1.0, user, explains=False)
        assert Reader(user).part_of(everything) == answer


def test_keys_begin_with_the_whole_user_id() -> None:
    assert Reader(7).may_see("7:a")
    assert not Reader(7).may_see("70:a")
    assert not Reader(70).may_see("7:0:a")
    assert OPERATOR.may_see("7:a")


def test_the_daemon_is_asked_with_the_rights_of_the_reader() -> None:
    request = ExplainJob("a")
    assert OPERATOR.request(request) == request
    assert Reader(7).request(request) == OnBehalfOf(7, request)
