# SPDX-License-Identifier: MIT
"""The time from a call to the new grant in the page, with a real daemon."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.bench.cost import page_latency
from penstock.bench.cost.page_latency import page_latencies
from penstock.errors import InputError

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder with a short path, because it will hold sockets."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_every_phase_gets_a_new_grant(folder: Path) -> None:
    latencies_s = page_latencies(folder, 3)
    assert len(latencies_s) == 3
    # A phase without a new grant would show the time limit of the probe, 1 s.
    assert all(0.0 < latency_s < 1.0 for latency_s in latencies_s)
    assert list(folder.iterdir()) == []


def test_a_measured_program_that_fails_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_latency, "PHASES", "raise SystemExit('out of order')")
    with pytest.raises(InputError, match=r"program failed: .*out of order"):
        page_latencies(folder, 1)
    assert list(folder.iterdir()) == []
