# SPDX-License-Identifier: MIT
"""Files shared with programs: mapping, truncation, and waiting for futexes."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from ctypes import c_uint32
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.node.pages import shared_file
from penstock.live.node.pages.shared_file import (
    SharedFile,
    SharedFileError,
    wait_for_any,
    wake,
)


def open_descriptors() -> int:
    """Return the number of descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_file_costs_one_descriptor_until_it_is_closed(tmp_path: Path) -> None:
    before = open_descriptors()
    first = SharedFile.create(tmp_path / "a", 4096, "page")
    again = SharedFile.open(tmp_path / "a", 4096, "page")
    assert open_descriptors() == before + 2
    for file in (first, again, again):
        file.close()
    assert open_descriptors() == before


def test_both_sides_see_what_is_written(tmp_path: Path) -> None:
    file = SharedFile.create(tmp_path / "a", 4096, "page")
    file.write(8, c_uint32(77))
    assert c_uint32.from_address(file.address + 8).value == 77
    c_uint32.from_address(file.address + 12).value = 78
    assert file.read(8, 8) == bytes(c_uint32(77)) + bytes(c_uint32(78))
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600
    file.close()


def test_a_truncated_file_raises_an_error_and_no_signal(tmp_path: Path) -> None:
    file = SharedFile.create(tmp_path / "a", 4096, "page")
    os.truncate(tmp_path / "a", 100)
    with pytest.raises(SharedFileError, match="truncated"):
        file.read(4096)
    os.truncate(tmp_path / "a", 0)
    wake(file.address)
    wait_for_any([(file.address, 0)], 0.01)
    file.close()


@pytest.mark.parametrize("what", ["short", "missing", "folder", "link"])
def test_other_files_are_refused(tmp_path: Path, what: str) -> None:
    before = open_descriptors()
    path = tmp_path / what
    if what == "short":
        path.write_bytes(bytes(100))
    elif what == "folder":
        path.mkdir()
    elif what == "link":
        SharedFile.create(tmp_path / "a", 4096, "page").close()
        path.symlink_to(tmp_path / "a")
    with pytest.raises(InputError):
        SharedFile.open(path, 4096, "page")
    assert open_descriptors() == before


@pytest.mark.parametrize("kind", ["page", "bell"])
def test_errors_say_what_the_file_is(tmp_path: Path, kind: str) -> None:
    with pytest.raises(InputError, match=f"cannot map the {kind}: No such file"):
        SharedFile.open(tmp_path / "a", 4096, kind)
    (tmp_path / "a").write_bytes(b"short")
    with pytest.raises(InputError, match=f"not a {kind}: a {kind} is a regular file"):
        SharedFile.open(tmp_path / "a", 4096, kind)
    with pytest.raises(InputError, match=f"cannot map the {kind}: File exists"):
        SharedFile.create(tmp_path / "a", 4096, kind)


def test_an_existing_file_is_neither_replaced_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"mine")
    with pytest.raises(InputError, match="File exists"):
        SharedFile.create(tmp_path / "a", 4096, "page")
    assert (tmp_path / "a").read_bytes() == b"mine"


def test_a_closed_file_does_not_use_the_descriptor_of_another(tmp_path: Path) -> None:
    file = SharedFile.create(tmp_path / "a", 4096, "page")
    file.close()
    with (tmp_path / "other").open("wb") as stream:
        with pytest.raises(SharedFileError):
            file.write(0, c_uint32(1))
        assert stream.tell() == (tmp_path / "other").stat().st_size == 0


@pytest.fixture(params=["several words", "one word"])
def one_word(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Wait as on new kernels, and as on those before Linux 5.16."""
    if request.param == "one word":
        monkeypatch.setattr(shared_file, "MOST_FUTEXES", 1)
    elif shared_file.MOST_FUTEXES == 1:
        pytest.skip("needs Linux 5.16")
    return bool(request.param == "one word")


@pytest.mark.usefixtures("one_word")
def test_a_wait_ends_at_once_if_the_value_is_another(tmp_path: Path) -> None:
    word = c_uint32(3)
    begin = time.monotonic()
    wait_for_any([(ctypes.addressof(word), 2)], 600.0)
    assert time.monotonic() - begin < 300.0
    begin = time.monotonic()
    wait_for_any([(ctypes.addressof(word), 3)], 0.05)
    assert time.monotonic() - begin >= 0.04


def test_a_wait_ends_when_any_word_is_woken(tmp_path: Path, one_word: bool) -> None:
    file = SharedFile.create(tmp_path / "a", 4096, "page")
    other = SharedFile.open(tmp_path / "a", 4096, "page")
    private = c_uint32(0)
    futexes = [(file.address, 0)]
    if not one_word:
        futexes.insert(0, (ctypes.addressof(private), 0))
    woken = threading.Event()

    def wait() -> None:
        wait_for_any(futexes, 600.0)
        woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    # Through another mapping, as another process does.
    c_uint32.from_address(other.address).value += 1
    while not woken.wait(0.01):
        wake(other.address)
    thread.join()
    file.close()
    other.close()
