# SPDX-License-Identifier: MIT
"""The log of a daemon, as text and as JSON."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from penstock.cli.live.daemons.logs import JsonFormatter, start_logging
from penstock.live.settings import load_settings

LOG = logging.getLogger("penstock.test")


@contextmanager
def _fresh_log() -> Iterator[None]:
    """Remove the handlers of the test runner, and put them back."""
    root, ours = logging.getLogger(), logging.getLogger("penstock")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    root.handlers.clear()
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(levels[0])
        ours.setLevel(levels[1])


def _logged(**flags: str) -> list[str]:
    stream = io.StringIO()
    with _fresh_log():
        start_logging(load_settings(flags, {}), stream)
        LOG.debug("one")
        LOG.info("%s two\nlines", "in")
        LOG.warning("three")
        logging.getLogger("library").debug("not ours")
    return stream.getvalue().split("\n")


def test_text_is_for_people() -> None:
    first, second, third, end = _logged()
    assert re.fullmatch(
        rf"[-0-9]+ [:,0-9]+ penstock\.test\[{os.getpid()}\]: in two", first
    )
    assert second == "lines"
    assert third.endswith(": three")
    assert end == ""


def test_json_is_one_object_per_line() -> None:
    *lines, end = _logged(log_format="json")
    assert end == ""
    first, second = map(json.loads, lines)
    assert first["message"] == "in two\nlines"
    assert (first["level"], second["level"]) == ("info", "warning")
    assert (first["logger"], first["process"]) == ("penstock.test", os.getpid())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["time"])


@pytest.mark.parametrize(
    ("level", "count"), [("debug", 3), ("info", 2), ("warning", 1), ("error", 0)]
)
def test_levels(level: str, count: int) -> None:
    assert len(_logged(log_format="json", log_level=level)) - 1 == count


def test_an_exception_stays_on_its_line() -> None:
    try:
        int("odd")
    except ValueError:
        record = LOG.makeRecord(
            "penstock.test", logging.ERROR, "f", 1, "failed", (), sys.exc_info()
        )
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert json.loads(line)["exception"].endswith(
        "ValueError: invalid literal for int() with base 10: 'odd'"
    )
