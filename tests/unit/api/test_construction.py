# SPDX-License-Identifier: MIT
"""Numbers are bytes and seconds, texts carry units, and both mean the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from penstock.api.construction import Application, Instance, Platform
from penstock.errors import InputError


def test_numbers_and_texts_are_equal() -> None:
    assert Platform(2e9, 1e9) == Platform("2 GB/s", "1 GB/s")
    with_text = Application("a", 1, [("work", "1 min"), ("io", "1 kB")], "2 s")
    with_numbers = Application("a", 1, [("work", 60), ("io", 1000)], 2)
    assert with_text.phases() == with_numbers.phases()
    assert with_text.release == with_numbers.release == 2.0


def test_other_fields_are_passed_on() -> None:
    assert Application("a", 1, [("io", 1)], user="ann").user == "ann"
    assert Platform(2.0, 1.0, targets=4).targets == 4


@pytest.mark.parametrize(
    "phase", [("work", "1 GB"), ("io", "1 h"), ("sleep", "1 h"), ("io", -1.0)]
)
def test_wrong_phases_are_refused(phase: tuple[str, object]) -> None:
    with pytest.raises(InputError):
        Application("a", 1, [phase])


def test_an_instance_is_checked() -> None:
    one = Application("a", 1, [("work", "1 h")], release="2 h")
    with pytest.raises(InputError, match="window ends"):
        Instance(Platform(1.0, 1.0), [one], ("0 s", "1 h"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Application(cast(Any, 3), 1, [("io", 1)]), "name: 3 is not a name"),
        (lambda: Application("a", 1, []), "phases: no phase"),
        (lambda: Application("a", 1, cast(Any, 5)), "phases: 5 is not a list"),
        (lambda: Application("a", 1, cast(Any, "io")), "phases: 'io' is not a list"),
        (lambda: Application("a", 1, [("io", 1)], "1 GB"), "release: unknown unit"),
        (lambda: _instance(_one()), "applications: the application 'a' is not in a"),
        (lambda: _instance(3), "applications: 3 is not a list of applications"),
        (lambda: _instance(["a"]), "applications\\[0\\]: 'a' is not made with ps.App"),
        (lambda: Instance(cast(Any, 5), [_one()], (0, 1)), "platform: 5 is not made"),
        (lambda: _instance([_one()], cast(Any, 5)), "window: 5 is not a window"),
        (lambda: _instance([_one()], (0, "1 GB")), "window: unknown unit"),
    ],
)
def test_mistakes_are_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert caught.value.remedy


def _one() -> Any:
    return Application("a", 1, [("work", "1 h")])


def _instance(applications: Any, window: Any = (0, 1)) -> object:
    return Instance(Platform(1.0, 1.0), applications, window)
