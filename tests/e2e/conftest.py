# SPDX-License-Identifier: MIT
"""Fixtures of the tests of whole commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.campaigns import Bench, undisturbed_table


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Return a folder in which to run a small campaign."""
    with closing(Bench(tmp_path / "bench")) as bench:
        yield bench


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the table of a campaign that nothing disturbs, in one process."""
    return undisturbed_table(tmp_path_factory.mktemp("undisturbed"))
