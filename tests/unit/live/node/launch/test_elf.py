# SPDX-License-Identifier: MIT
"""The reader of executables gives the results of binutils, or `InputError`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.live.node.launch.elf import read_elf

CAT = Path(shutil.which("cat") or sys.executable).resolve()
needs_binutils = pytest.mark.skipif(
    shutil.which("readelf") is None, reason="needs readelf"
)


def _output(*words: str | Path) -> str:
    return subprocess.run(
        words, capture_output=True, text=True, check=True, timeout=120
    ).stdout


@needs_binutils
@pytest.mark.parametrize("name", ["cat", sys.executable, "git", "gcc"])
def test_libraries_loader_and_imports_are_those_of_binutils(name: str) -> None:
    file = shutil.which(name)
    if file is None:
        pytest.skip(f"needs {name}")
    path = Path(file).resolve()
    elf = read_elf(path.read_bytes())
    assert elf is not None
    table = _output("readelf", "-W", "-d", path).splitlines()
    needed = [line.split("[")[1].rstrip("]") for line in table if "(NEEDED)" in line]
    assert list(elf.needed) == needed
    assert f"interpreter: {elf.interpreter}]" in _output("readelf", "-W", "-l", path)
    symbols = _output("nm", "-D", "--undefined-only", path).splitlines()
    undefined = {line.split()[-1].partition("@")[0] for line in symbols}
    # A symbol that no relocation names is not used by the program.
    assert elf.imports <= undefined
    used = _output("readelf", "-W", "-r", path)
    assert elf.imports == {name for name in undefined if f" {name}@" in used} | {
        name for name in undefined if f" {name} + 0" in used
    }


def test_a_text_is_no_program() -> None:
    assert read_elf(b"#!/bin/sh\n") is None
    assert read_elf(b"") is None


def test_of_a_program_for_another_processor_only_the_header_is_read() -> None:
    head = b"\x7fELF\x01\x02" + bytes(10) + b"\x00\x02\x00\x08"
    elf = read_elf(head)
    assert elf is not None
    assert elf.platform == (32, ">", 8)
    assert elf.interpreter == ""


@given(st.integers(4, 4000))
def test_a_cut_program_gives_one_message(size: int) -> None:
    with pytest.raises(InputError, match="a damaged ELF file"):
        read_elf(CAT.read_bytes()[:size])


@given(st.lists(st.tuples(st.integers(4, 5000), st.integers(0, 255)), max_size=8))
def test_a_damaged_program_is_read_or_refused(
    changes: list[tuple[int, int]],
) -> None:
    data = bytearray(CAT.read_bytes())
    for position, value in changes:
        data[position] = value
    try:
        read_elf(bytes(data))
    except InputError:
        return
