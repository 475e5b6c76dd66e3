# SPDX-License-Identifier: MIT
"""Writing processes of the benchmarks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock.bench.writers import LARGEST_BYTES, writers
from penstock.errors import InputError
from penstock.live.node.pages.page import IoClass

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


def test_a_missing_folder_gives_one_message(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="no temporary folder can be created: No such"),
        writers(tmp_path / "none"),
    ):
        pytest.fail("there is no folder")


@needs_gcc
@pytest.mark.parametrize("controlled", [True, False])
def test_a_writer_counts_in_the_page_only_if_it_is_controlled(
    tmp_path: Path, controlled: bool
) -> None:
    with writers(tmp_path) as starter:
        starter.renew()
        process = starter.start(1000, 50, controlled=controlled)
        process.begin_at(0)
        cost_ns, end_ns = process.finish()
        moved_bytes = starter.page.counters(IoClass.WRITE).moved_bytes
        name = "controlled" if controlled else "other"
        assert (starter.root / name / "file").stat().st_size == 1000
    assert cost_ns > 0.0
    assert end_ns > 0
    assert moved_bytes == (50_000 if controlled else 0)
    assert list(tmp_path.iterdir()) == []


@needs_gcc
def test_a_writer_that_fails_is_reported(tmp_path: Path) -> None:
    with writers(tmp_path) as starter:
        shutil.rmtree(starter.root / "controlled")
        process = starter.start(LARGEST_BYTES, 1, free=True)
        with pytest.raises(InputError, match="writing process of the benchmark failed"):
            process.finish()
