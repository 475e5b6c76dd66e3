# SPDX-License-Identifier: MIT
"""Real programs for ``penstock bench harmless``, and the files that they read.

Every program runs in a folder with the files of `make_inputs` and writes into ``out/``.
The inputs are large enough for most programs to take some tens of milliseconds.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import sqlite3
import sys
import tarfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["PROGRAMS", "BenchProgram", "forget_cached", "make_inputs", "missing_needs"]

_DATA_BYTES: Final = 32 << 20
_LINES: Final = 150_000
_SMALL_FILES: Final = 200
_ROWS: Final = 40_000
_SOURCES: Final = 2


@dataclass(frozen=True)
class BenchProgram:
    """A program and what must be installed for it."""

    name: str
    words: tuple[str, ...]
    """The command."""
    needs: tuple[str, ...]
    """Programs in PATH; ``python:X`` is a module."""


def _plain(name: str, command: str) -> BenchProgram:
    words = tuple(shlex.split(command))
    return BenchProgram(name, words, words[:1])


def _shell(name: str, command: str, *needs: str) -> BenchProgram:
    return BenchProgram(name, ("sh", "-c", command), needs or (name,))


def _python(name: str, text: str, *modules: str) -> BenchProgram:
    needs = tuple(f"python:{module}" for module in modules)
    return BenchProgram(name, (sys.executable, "-c", text), needs)


def _fio(name: str, *options: str) -> BenchProgram:
    common = ("fio", "--name=a", "--bs=16k", "--ioengine=psync", "--output=/dev/null")
    return BenchProgram(name, (*common, "--thread", "--size=16m", *options), ("fio",))


_GIT: Final = (
    "cp -r tree out && cd out && git -c init.defaultBranch=main init -q . "
    "&& git add . && git -c user.name=a -c user.email=a@b commit -qm m && git status -s"
)
_SQL: Final = (
    "create table copy as select * from t; create index i on copy(b); "
    "select count(distinct b) from copy;"
)
_LINES_OF_TEXT: Final = (
    "with open('text') as f, open('out/a', 'w') as g:\n"
    "    g.writelines(line.upper() for line in f)"
)
_COPIES: Final = (
    "import shutil; shutil.copytree('tree', 'out/t'); shutil.copy('data', 'out/a')"
)
_NUMPY: Final = (
    "import numpy as n; a = n.fromfile('data', 'u1'); n.save('out/a.npy', a)\n"
    "print(n.load('out/a.npy').sum())"
)
_HDF5: Final = (
    "import h5py, numpy as n; a = n.fromfile('data', 'u1')\n"
    "with h5py.File('out/a', 'w') as f: f['a'] = a\n"
    "with h5py.File('out/a') as f: print(f['a'][...].sum())"
)
_NODE: Final = (
    "const f = require('fs'); f.writeFileSync('out/a', f.readFileSync('data'))"
)
#: All programs, in the order in which the table shows them.
PROGRAMS: Final[Sequence[BenchProgram]] = (
    _shell("cat", "cat data text >out/a"),
    _plain("cp", "cp data out/a"),
    _plain("cp -r", "cp -r tree out/tree"),
    _plain("dd", "dd if=data of=out/a bs=64k status=none"),
    _plain("dd conv=fsync", "dd if=data of=out/a bs=1M status=none conv=fsync"),
    _plain("tar -c", "tar -cf out/a.tar tree data"),
    _plain("tar -x", "tar -xf tree.tar -C out"),
    _shell("gzip", "gzip -1 -c text >out/a.gz"),
    _shell("bzip2", "head -c 1000000 text | bzip2 -1 >out/a.bz2"),
    _shell("xz", "head -c 2000000 text | xz -0 >out/a.xz"),
    _plain("zstd", "zstd -q -1 data -o out/a.zst"),
    _plain("lz4", "lz4 -q data out/a.lz4"),
    _plain("zip", "zip -q -1 -r out/a.zip tree text"),
    _plain("sort", "sort -o out/a text"),
    _plain("grep", "grep -c line.*99 text data"),
    _shell("sed", "sed -n s/line/row/p text >out/a"),
    _plain("awk", "awk '{s += $2} END {print s}' text"),
    _plain("perl", "perl -ne '$s += length; END { print $s }' text"),
    _plain("wc", "wc text"),
    _plain("md5sum", "md5sum data text"),
    _plain("sha256sum", "sha256sum data"),
    _shell("cmp", "cp data out/a && cmp data out/a"),
    _plain("split", "split -b 1M data out/part."),
    _plain("find", "find tree -type f -exec cksum {} +"),
    _plain("rsync", "rsync -a data tree out/"),
    _plain("openssl", "openssl dgst -sha1 data"),
    _python("python lines", _LINES_OF_TEXT),
    _python("python shutil", _COPIES),
    _python("numpy", _NUMPY, "numpy"),
    _python("h5py", _HDF5, "h5py", "numpy"),
    _shell("sqlite3", f"cp base.sqlite out/a; sqlite3 out/a '{_SQL}'"),
    _shell("git", _GIT),
    _plain("gcc", "gcc -c source0.c -o out/a.o"),
    BenchProgram("make", ("make", "-s"), ("make", "gcc")),
    _fio("fio write", "--rw=write", "--filename=out/a"),
    _fio("fio randread", "--rw=randread", "--filename=data"),
    BenchProgram("node", ("node", "-e", _NODE), ("node",)),
)


def missing_needs(program: BenchProgram) -> list[str]:
    """Return what a program needs and is not installed."""
    return [need for need in program.needs if not _is_installed(need)]


def _is_installed(need: str) -> bool:
    name, _, module = need.partition(":")
    if module:
        return importlib.util.find_spec(module) is not None
    return shutil.which(name) is not None


# --- The files --------------------------------------------------------------------


def make_inputs(folder: Path) -> None:
    """Write the files that the programs read into `folder`."""
    (folder / "out").mkdir()
    (folder / "data").write_bytes(_incompressible(_DATA_BYTES // 64) * 64)
    lines = (f"line {i * 7919 % 1_000_003} of a text\n" for i in range(_LINES))
    (folder / "text").write_text("".join(lines))
    for number in range(_SMALL_FILES):
        file = folder / "tree" / f"part{number % 10}" / f"file{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_incompressible(1_000 + number * 7919 % 19_000))
    with tarfile.open(folder / "tree.tar", "w") as archive:
        archive.add(folder / "tree", "tree")
    with closing(sqlite3.connect(folder / "base.sqlite")) as base, base:
        base.execute("create table t (a integer primary key, b text)")
        rows = ((i, f"{i * 7919 % _ROWS} row") for i in range(_ROWS))
        base.executemany("insert into t values (?, ?)", rows)
    _write_sources(folder)


def _incompressible(size: int) -> bytes:
    """Return the same bytes every time, which no compressor makes smaller."""
    return hashlib.shake_128(b"penstock").digest(size)


def _write_sources(folder: Path) -> None:
    """Write C sources and a makefile that compiles them into ``out/``."""
    functions = "\n".join(
        f"int f{i}(int x) {{ return x > {i} ? x * {i} - f{i - 1}(x) : x / {i + 1}; }}"
        for i in range(1, 60)
    )
    for number in range(_SOURCES):
        text = f"#include <stdio.h>\nstatic int f0(int x) {{ return x; }}\n{functions}"
        (folder / f"source{number}.c").write_text(text + "\n")
    objects = " ".join(f"out/source{number}.o" for number in range(_SOURCES))
    rule = "out/%.o: %.c\n\tgcc -c $< -o $@\n"
    (folder / "Makefile").write_text(f"all: {objects}\n{rule}")


def forget_cached(folder: Path) -> None:
    """Remove the files below `folder` from the page cache, writing them first."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fdatasync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)
