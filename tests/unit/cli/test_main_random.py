# SPDX-License-Identifier: MIT
"""Random command lines: an answer or one message and status 2, never a traceback."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.cli import build_parser, main
from penstock.errors import UnavailableError
from penstock.workloads import WORKLOADS

ROOT = Path(__file__).parents[3]
COMMANDS = (
    *("ctl", "top", "compare", "generate", "place", "bound", "policies", "drain"),
    *("check", "advise", "history", "report"),
)
#: What people and scripts write by mistake, and some good values.
VALUES = (
    *("", "-", "--", "x", "0", "1", "-1", "1e999", "nan", "inf", "0x10", "2 3"),
    *("10 MB/s", "10 Mb/s", "5", "-5 MB/s", "1 s", "9 GiB", "none", "help", "all"),
    *(".", "..", "/", "/dev/null", "/nowhere/x", "three.json", "problem.json"),
    *("folder", "folder/x/y.json", "text.toml", "log.darshan", "empty"),
    *("K=V", "=", "h=", "h=20000", "h=1e400", "pressure=0.5", "reading=x"),
    *("fcfs", "fcfs:", "fcfs:x=1", "set-10:period=given", "two-level", "t-cpu", ":"),
    *("os.system", "no.such.module", "apex", "synthetic", "io-sets", "ls", "a:b"),
    *("\udcff", "é", "%s", "{}", "a\nb", "x" * 5000, "@three.json"),
    *("status", "explain", "limit", "bandwidth", "policy", "hint", "slo", "off"),
)


def options_of(command: str) -> list[str]:
    """Return all options of a command and of its actions, but not --help."""
    parsers = [build_parser([command])]
    options: set[str] = set()
    while parsers:
        for action in parsers.pop()._actions:
            options |= set(action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                chosen: dict[str, Any] = dict(action.choices)
                parsers += [chosen[command]] if command in chosen else chosen.values()
    return sorted(options - {"-h", "--help", "--version"})


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    command = draw(st.sampled_from(COMMANDS))
    words = st.one_of(
        st.sampled_from(VALUES),
        st.sampled_from(options_of(command)),
        # The system passes neither NUL nor a character that is half of a pair.
        st.text(
            st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
            max_size=6,
        ),
    )
    return [command, *draw(st.lists(words, max_size=6))]


def reached(*_: object, **__: object) -> NoReturn:
    """Stand for the work of a command whose arguments are good."""
    raise UnavailableError("reached")


@pytest.fixture(scope="module", autouse=True)
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Work in a folder with a few files; replace what would compute for long."""
    here = tmp_path_factory.mktemp("here")
    for name in ("three.json", "problem.json"):
        shutil.copy(ROOT / "examples" / name, here / name)
    (here / "folder").mkdir()
    (here / "text.toml").write_text("[sweep]\n")
    (here / "log.darshan").write_bytes(b"3.21")
    (here / "empty").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.setenv("PENSTOCK_STAGING", str(here / "journals"))
        patch.setenv("PENSTOCK_FOLDER", str(here / "home"))
        patch.delenv("PENSTOCK_TRACEBACK", raising=False)
        for place in (
            "penstock.cli.simulation.compare._run",
            "penstock.cli.simulation.comparison.problem.compare_problem",
            "penstock.cli.simulation.compare.compare_problem",
            "penstock.cli.simulation.generate._write",
            "penstock.analysis.min_yield_bound",
            "penstock.live.wire.frames.Client",
        ):
            patch.setattr(place, reached)
        for workload in WORKLOADS.values():
            patch.setattr(workload, "instance", reached)
        yield


@given(words=command_lines())
@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_random_command_line_gets_an_answer_or_one_message(
    words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    before = Path.cwd()
    try:
        status = main(words)
    except SystemExit as stop:
        status = int(stop.code or 0)
    out, errors = capfd.readouterr()
    assert Path.cwd() == before
    assert status in (0, 1, 2), errors
    assert "Traceback" not in out + errors
    if status == 2 and not errors and words[0] == "check":
        return  # The verdict is the answer.
    lines = [line for line in errors.splitlines() if line.startswith("penstock")]
    assert len(lines) == (status == 2) or (words[0] == "compare" and lines), errors
