# SPDX-License-Identifier: MIT
"""The BBIO calls: how arguments reach the preload library, and how errors come back.

`tests/e2e/live/test_staging.py` makes the calls with the real library.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.errors import InputError
from penstock.program import bbio


class FakeLibrary:
    """Stands for the preload library: records calls and returns a result."""

    def __init__(self, result: int = 0) -> None:
        self.result = result
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        prefix = "penstock_bbio_"
        if not name.startswith(prefix):
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            values = tuple(getattr(each, "value", each) for each in arguments)
            self.calls.append((name.removeprefix(prefix), values))
            if self.result != 0:
                ctypes.set_errno(errno.ENOSPC)
            return self.result

        return call


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    """Return a library that answers in place of the preload library."""
    fake = FakeLibrary()
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: fake)
    return fake


@pytest.fixture
def at_exit(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of functions that would be called at the exit."""
    registered: list[Any] = []
    monkeypatch.setattr(atexit, "register", registered.append)
    monkeypatch.setattr(
        atexit,
        "unregister",
        lambda function: registered.remove(function) if registered else None,
    )
    return registered


def test_bbio_is_an_attribute_of_penstock() -> None:
    assert penstock.bbio is bbio


@pytest.mark.parametrize(
    ("path", "size", "arguments"),
    [
        (None, 0, (None, 0)),
        ("/journals", "1 MiB", (b"/journals", 2**20)),
        (Path("/j\udcff"), 4096.4, (b"/j\xff", 4096)),
    ],
)
def test_init_passes_the_folder_and_the_size_in_bytes(
    library: FakeLibrary,
    path: str | Path | None,
    size: float | str,
    arguments: tuple[bytes | None, int],
) -> None:
    bbio.init(path, size)
    assert library.calls == [("init", arguments)]


@pytest.mark.parametrize("size", [-1, "-2 GiB", "much", "3 s", math.nan, math.inf])
def test_an_invalid_size_is_refused_before_the_library_is_called(
    library: FakeLibrary, size: float | str
) -> None:
    with pytest.raises(InputError):
        bbio.init("/journals", size)
    assert library.calls == []


@pytest.mark.parametrize("name", ["enable", "disable", "flush"])
def test_calls_on_a_descriptor_pass_its_number(library: FakeLibrary, name: str) -> None:
    getattr(bbio, name)(7)
    assert library.calls == [(name, (7,))]


def test_finalize_has_no_arguments(library: FakeLibrary) -> None:
    bbio.finalize()
    assert library.calls == [("finalize", ())]


def test_an_error_of_the_library_is_raised(library: FakeLibrary) -> None:
    library.result = -1
    for call in (bbio.init, bbio.finalize, lambda: bbio.flush(1)):
        with pytest.raises(OSError, match="No space left on device") as caught:
            call()
        assert caught.value.errno == errno.ENOSPC


@pytest.mark.usefixtures("at_exit")
def test_the_library_can_call_the_callback(library: FakeLibrary) -> None:
    called: list[int] = []
    bbio.on_flush(5, called.append)
    ((name, (descriptor, callback)),) = library.calls
    assert (name, descriptor) == ("on_flush", 5)
    callback(5)
    assert called == [5]


def test_none_removes_the_callback(library: FakeLibrary, at_exit: list[Any]) -> None:
    bbio.on_flush(5, None)
    ((name, (descriptor, callback)),) = library.calls
    assert (name, descriptor) == ("on_flush", 5)
    assert not callback  # a null pointer
    assert at_exit == []


@pytest.mark.usefixtures("library")
def test_files_are_drained_once_at_the_exit(at_exit: list[Any]) -> None:
    """Not later: a callback needs the interpreter."""
    for descriptor in (5, 6, 7):
        bbio.on_flush(descriptor, print)
    assert at_exit == [bbio.finalize]


@pytest.mark.usefixtures("at_exit")
def test_without_the_library_every_call_does_nothing() -> None:
    bbio.init("/no/such/folder", "1 MiB")
    for call in (bbio.enable, bbio.disable, bbio.flush):
        call(1)
    bbio.on_flush(1, print)
    bbio.finalize()
