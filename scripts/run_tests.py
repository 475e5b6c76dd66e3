# SPDX-License-Identifier: MIT
"""Run pytest; repeat a few failed tests alone, and name those that pass then.

``python scripts/run_tests.py PYTEST_ARGUMENTS``

Tests of live control share the processors of this machine with other tests. If at most
`MOST_REPEATED` tests failed, they are repeated one after the other in a session of
their own. If all of them pass there, they are named and the exit status is 0. Each of
them has a fault all the same, in penstock or in the test.

Nothing is repeated if more tests failed, if tests could not be collected, or if a
process with tests crashed. The exit status is then that of pytest.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

__all__ = ["MOST_REPEATED", "main"]

#: With more failed tests than this, nothing is repeated.
MOST_REPEATED = 5


class _FailureRecorder:
    """A plugin of pytest that remembers which tests failed."""

    def __init__(self) -> None:
        self.failed: dict[str, None] = {}
        """Names of failed tests, in the order of their failures."""
        self.is_broken = False
        """True if tests could not be collected, or a process with tests crashed."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a failed test; pytest-xdist reports a crash without a phase."""
        if report.failed:
            self.failed[report.nodeid] = None
            self.is_broken |= report.when not in ("setup", "call", "teardown")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Take note of files whose tests could not be collected."""
        self.is_broken |= report.failed

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take note of a process of pytest-xdist that ended with an error."""
        del node
        self.is_broken |= error is not None

    def to_repeat(self, status: int) -> list[str]:
        """Return the tests that may be repeated; `status` is that of pytest."""
        if status != pytest.ExitCode.TESTS_FAILED or self.is_broken:
            return []
        return list(self.failed) if len(self.failed) <= MOST_REPEATED else []


def main(arguments: Sequence[str]) -> int:
    """Run pytest with these arguments; return the exit status."""
    recorder = _FailureRecorder()
    status = int(pytest.main([*arguments], plugins=[recorder]))
    repeated = recorder.to_repeat(status)
    if not repeated:
        return status
    _say(f"repeating {len(repeated)} failed tests alone ...")
    # It says nothing if it passes: the last "N passed" is that of all.
    alone = subprocess.run(  # noqa: S603 - these tests
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *repeated],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if alone.returncode != 0:
        _say(alone.stdout)
        return alone.returncode
    for name in repeated:
        _say(f"failed beside other tests, passed alone: {name}")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # As `python -m pytest` does: modules come from there, not from this folder.
    sys.path[0] = str(Path.cwd())
    sys.exit(main(sys.argv[1:]))
