# SPDX-License-Identifier: MIT
"""Before the first test: compile the C parts; a folder and a limit for all tests."""

from __future__ import annotations

import os
import subprocess
import tempfile
import warnings
from pathlib import Path

import pytest

from support.native_build import build_checkout

#: Limit of a test with full-size statistics (s); that of others: pyproject.toml.
_SLOW_LIMIT_S = 4 * 3600


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Compile once for all workers; without a compiler, say so and go on."""
    if hasattr(config, "workerinput"):
        return
    if os.geteuid() == 0 and config.option.basetemp is None:
        _use_own_folder(config)
    if reason := build_checkout():
        warnings.warn(
            pytest.PytestConfigWarning(f"without the C parts: {reason}"), stacklevel=1
        )


def _use_own_folder(config: pytest.Config) -> None:
    """Put the folders of all tests below a new one, which is removed at the end.

    RATIONALE: some tests of root act as other users, who must get to the folder of the
    test. Every session of pytest closes /tmp/pytest-of-root for other users when it
    begins, also while tests of another session are running.
    """
    # Short: the paths of sockets have at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="tests-"))
    folder.chmod(0o755)
    config.option.basetemp = str(folder / "run")
    config.add_cleanup(lambda: _remove(folder))


def _remove(folder: Path) -> None:
    """Remove a folder; not what is mounted there, which may not answer."""
    command = ["rm", "-rf", "--one-file-system", str(folder)]
    try:
        subprocess.run(command, check=False, stderr=subprocess.DEVNULL, timeout=300)
    except subprocess.TimeoutExpired:
        warnings.warn(pytest.PytestWarning(f"cannot remove {folder}"), stacklevel=1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests with full-size statistics more time."""
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.timeout(_SLOW_LIMIT_S))
