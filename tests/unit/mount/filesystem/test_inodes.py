# SPDX-License-Identifier: MIT
"""The table of files that the kernel knows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.mount.filesystem.backing import DirectoryEntry, look_up, open_path
from penstock.mount.filesystem.inodes import ROOT, InodeTable


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    for name in ("a", "b"):
        (tmp_path / name).touch()
    os.link(tmp_path / "a", tmp_path / "c")
    fd = open_path(bytes(tmp_path))
    yield fd
    os.close(fd)


@pytest.fixture
def table(root: int) -> Iterator[InodeTable]:
    table = InodeTable(os.dup(root))
    yield table
    table.close()


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_two_names_of_a_file_are_one_file(root: int, table: InodeTable) -> None:
    first, second = (table.remember(*look_up(root, name)) for name in (b"a", b"c"))
    assert first == second
    assert table.remember(*look_up(root, b"b")) != first


def test_numbers_are_those_of_the_backing_files(
    root: int, table: InodeTable, tmp_path: Path
) -> None:
    assert table.remember(*look_up(root, b"a")) == (tmp_path / "a").stat().st_ino
    assert os.fstat(table.fd(ROOT)).st_ino == tmp_path.stat().st_ino


def test_files_of_other_devices_never_share_a_number(
    root: int, table: InodeTable
) -> None:
    entry = look_up(root, b"a")
    fields = list(entry.status)
    fields[2] += 1
    other = os.stat_result(fields)
    assert table.remember(*entry) != table.remember(os.dup(entry.fd), other)


def test_a_deleted_file_stays_open_until_it_is_forgotten(
    root: int, table: InodeTable, tmp_path: Path
) -> None:
    number = table.remember(*look_up(root, b"b"))
    (tmp_path / "b").unlink()
    assert os.fstat(table.fd(number)).st_nlink == 0
    table.forget(number, 1)
    with pytest.raises(OSError, match="Stale"):
        table.fd(number)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.booleans())))
def test_a_file_forgotten_as_often_as_looked_up_is_closed(
    root: int, steps: list[tuple[bytes, bool]]
) -> None:
    before = _open_descriptors()
    table = InodeTable(os.dup(root))
    lookups: list[int] = []
    for name, remembers in steps:
        if remembers or not lookups:
            entry: DirectoryEntry = look_up(root, name)
            lookups.append(table.remember(*entry))
        else:
            table.forget(lookups.pop(), 1)
        assert len(table) == 1 + len(set(lookups))
    for number in lookups:
        table.forget(number, 1)
    assert len(table) == 1
    table.close()
    assert _open_descriptors() == before
