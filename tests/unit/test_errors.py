# SPDX-License-Identifier: MIT
"""Errors: what they say, how places nest, and that they survive pickling."""

from __future__ import annotations

import pickle

import pytest

from penstock.errors import (
    InputError,
    InternalError,
    PenstockError,
    PolicyError,
    UnknownNameError,
    reason_of,
)


@pytest.mark.parametrize("error", [InputError, PolicyError, InternalError])
def test_all_are_penstock_errors(error: type[Exception]) -> None:
    assert issubclass(error, PenstockError)
    assert issubclass(UnknownNameError, InputError)
    assert not issubclass(PolicyError, InputError)


@pytest.mark.parametrize(
    ("where", "remedy", "message"),
    [
        ("", "", "-1 is negative"),
        ("a.json: nodes", "", "a.json: nodes: -1 is negative"),
        ("", "give 1", "-1 is negative (give 1)"),
        ("nodes", "give 1", "nodes: -1 is negative (give 1)"),
    ],
)
def test_message_has_place_fact_and_remedy(
    where: str, remedy: str, message: str
) -> None:
    assert str(InputError("-1 is negative", where=where, remedy=remedy)) == message


@pytest.mark.parametrize(
    ("prefix", "where", "place"),
    [
        ("applications[3]", "phases[7]", "applications[3].phases[7]"),
        ("window", "[0]", "window[0]"),
        ("applications[3]", "", "applications[3]"),
        ("a.json: ", "window[0]", "a.json: window[0]"),
        ("a.json: ", "", "a.json"),
    ],
)
def test_at_puts_the_place_inside_another(prefix: str, where: str, place: str) -> None:
    error = InputError("wrong", where=where, remedy="mend it").at(prefix)
    assert str(error) == f"{place}: wrong (mend it)"


def test_at_nests_several_times() -> None:
    error = InputError("wrong", where="phases[7]").at("applications[3]").at("a.json: ")
    assert str(error) == "a.json: applications[3].phases[7]: wrong"


def test_at_keeps_fact_and_remedy_apart() -> None:
    error = InputError("wrong", where="b", remedy="mend it").at("a")
    assert (error.what, error.where, error.remedy) == ("wrong", "a.b", "mend it")


def test_unknown_name_lists_the_known_sorted_and_the_nearest() -> None:
    error = UnknownNameError("policy", "fcsf", ["set-10", "fcfs"], where="here")
    assert str(error) == (
        "here: unknown policy 'fcsf' (did you mean 'fcfs'? known: fcfs, set-10)"
    )


def test_unknown_name_without_a_near_one() -> None:
    assert str(UnknownNameError("key", "zzz", ["a"])) == (
        "unknown key 'zzz' (known: a)"
    )
    assert "known: none" in str(UnknownNameError("key", "zzz", []))


@pytest.mark.parametrize(
    "error",
    [
        InputError("what", where="where", remedy="remedy"),
        UnknownNameError("policy", "fcsf", ["fcfs"], where="here"),
        UnknownNameError("policy", "fcsf", ["fcfs"]).at("file: "),
        PolicyError("policy fcfs failed"),
        InternalError("status 7"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_come_back_from_a_worker_process_unchanged(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_a_reason_is_on_one_line() -> None:
    assert reason_of(ValueError("one\n  two")) == "ValueError: one two"
    assert reason_of(KeyError("x")) == "KeyError: 'x'"
