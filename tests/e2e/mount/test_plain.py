# SPDX-License-Identifier: MIT
"""The pass-through without a scheduler that a mount is compared with."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from penstock.bench.slo import mounts
from penstock.bench.slo.mounts import plain_mount
from penstock.errors import InputError


def test_plain_files_are_read_and_written(tmp_path: Path) -> None:
    with plain_mount(tmp_path) as point:
        (point / "new").write_bytes(b"data" * 10_000)
        (tmp_path / "backing" / "old").write_bytes(b"below")
        assert (point / "old").read_bytes() == b"below"
        assert (point / "new").stat().st_size == 40_000
        with (point / "new").open("r+b") as stream:
            stream.seek(4)
            stream.write(b"DATA")
    assert (tmp_path / "backing" / "new").read_bytes()[:12] == b"dataDATAdata"
    assert not point.is_mount()


def test_operations_that_no_benchmark_needs_are_not_supported(tmp_path: Path) -> None:
    with plain_mount(tmp_path) as point:
        with pytest.raises(OSError) as caught:
            (point / "folder").mkdir()
        assert caught.value.errno == errno.ENOSYS
        with pytest.raises(FileNotFoundError):
            (point / "none").read_bytes()


def test_a_mount_that_fails_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "program_path", lambda name: "/bin/false")
    with (
        pytest.raises(InputError, match="cannot mount a folder"),
        plain_mount(tmp_path / "root"),
    ):
        pytest.fail("nothing is mounted")
