# SPDX-License-Identifier: MIT
"""The digest of a check changes with the code that decides, and with nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from penstock.experiments.check_digest import check_digest
from penstock.papers import FIGURES, get_figure

LEAST = "LEAST = 0.5\n"
HELPER = "def least():\n    return LEAST\n"
CHECK = 'def _check(x, more=0):\n    """Old."""\n    return x > least() + more\n'
SOURCE = f"{LEAST}\n\n{HELPER}\n\n{CHECK}"

Digest = Callable[[str], str]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that imports a text as a module of the same name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    count = iter(range(9))

    def load(text: str) -> ModuleType:
        # A folder for each: Python keeps lines and compiled files by path.
        home = tmp_path / str(next(count))
        home.mkdir()
        (home / "a_check.py").write_text(text)
        monkeypatch.syspath_prepend(str(home))
        sys.modules.pop("a_check", None)
        return import_module("a_check")

    return load


@pytest.fixture
def digest(module: Callable[[str], Any]) -> Digest:
    """Return a function that returns the digest of `_check` in a text."""
    return lambda text: check_digest(module(text)._check)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x > least", "x >= least"),
        ("LEAST = 0.5", "LEAST = 0.4"),
        ("return LEAST", "return 2 * LEAST"),
    ],
)
def test_the_check_its_helpers_and_constants_count(
    digest: Digest, old: str, new: str
) -> None:
    assert digest(SOURCE) != digest(SOURCE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Old.", "New."),
        ("def _check", "@(lambda check: check)\ndef _check"),
        ("LEAST =", "OTHER = 1\nLEAST ="),
    ],
)
def test_docstrings_decorators_and_other_names_do_not_count(
    digest: Digest, old: str, new: str
) -> None:
    assert digest(SOURCE) == digest(SOURCE.replace(old, new))


def test_the_arguments_of_a_case_count(module: Callable[[str], Any]) -> None:
    check = module(SOURCE)._check
    digests = {check_digest(partial(check, more=more)) for more in (0, 1)}
    assert len({check_digest(check), *digests}) == 3
    assert check_digest(partial(check, more=1)) in digests


def test_the_function_behind_a_wrapper_counts(digest: Digest) -> None:
    wrapper = "def wrapped(f):\n    return lambda x: f(x)\n"
    text = f"{SOURCE}\n\n{wrapper}\n\n_check = wrapped(_check)\n"
    assert digest(text) != digest(text.replace("x > least", "x < least"))


def test_every_declared_check_has_a_digest_that_is_stable() -> None:
    for name in FIGURES:
        for claim in get_figure(name).claims:
            assert check_digest(claim.check) == check_digest(claim.check)
