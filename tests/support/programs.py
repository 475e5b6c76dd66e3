# SPDX-License-Identifier: MIT
"""Real programs, run with and without control.

The list serves the tests and the table of ``scripts/coverage_table.py``. Every program
runs in a folder with two files, ``data`` (1 MiB) and ``text``. Control must not change
its exit status, its output or the files that it leaves behind.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from math import inf
from pathlib import Path
from typing import Literal

from penstock.live.node.launch.shim import shim_environment
from penstock.live.node.pages.page import IoClass, Mode, Page
from penstock.live.staging.rules import Staging

__all__ = [
    "PROGRAMS",
    "Circumstance",
    "Observed",
    "Program",
    "Result",
    "command_words",
    "fill",
    "fixed_environment",
    "input_bytes",
    "missing",
    "observe",
    "prepare",
    "seen",
]

INPUTS = ("data", "text")
LIMIT_S = 240.0

Seen = Literal["all", "some", "none"]
Circumstance = Literal["free", "control", "off", "vanished", "staged"]
#: Granted rates (bytes/s); "free" runs without page and library.
_RATES: dict[str, float] = {
    "control": 50e6,
    "off": 0.0,
    "vanished": 1e5,
    "free": inf,
    "staged": 200e6,
}


@dataclass(frozen=True)
class Program:
    """A program, its kind of I/O, and how much of it control is expected to count."""

    name: str
    how: str
    command: tuple[str, ...]
    """``python`` is this interpreter, ``$TOOLS`` the folder of `prepare`."""
    needs: tuple[str, ...] = ()
    """Programs in PATH; ``python:X`` is a module."""
    writes: Seen = "all"
    """How much of the bytes that it leaves behind is counted."""
    reads: tuple[str, ...] = ()
    """Inputs that it reads completely, at least once."""
    sees_reads: Seen = "all"
    prepare: str = ""
    """Shell command that builds the program in ``$TOOLS``."""
    varies: tuple[str, ...] = ()
    """Patterns of files whose contents differ between runs."""


@dataclass(frozen=True)
class Result:
    """The result of a program."""

    status: int
    output: bytes
    errors: bytes
    files: dict[str, bytes]


@dataclass(frozen=True)
class Observed:
    """The result of a program, and the bytes that the page counted."""

    result: Result
    left: int
    """Size of the files that it left behind."""
    written: int
    read: int
    staged: int


def missing(program: Program) -> str:
    """Return the missing requirements of a program; empty if there is none."""
    return ", ".join(need for need in program.needs if not _is_there(need))


def _is_there(need: str) -> bool:
    kind, _, module = need.partition(":")
    if module:
        return importlib.util.find_spec(module) is not None
    return shutil.which(kind) is not None


def seen(counted: int, moved: int) -> Seen:
    """Return how much of the bytes that a program moved was counted.

    98 % are "all", because files may have holes that are not written.
    """
    if counted < 0.01 * moved:
        return "none"
    return "all" if counted >= 0.98 * moved else "some"


def fill(folder: Path) -> None:
    """Make a folder that has only the input files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "data").write_bytes(bytes(range(256)) * 4096)
    lines = [f"line {i * 7919 % 10000}\n" for i in range(9999)]
    (folder / "text").write_text("".join(lines))


def input_bytes(program: Program, root: Path) -> int:
    """Return the size of the inputs that a program reads completely."""
    folder = root / "controlled"
    return sum((folder / name).stat().st_size for name in program.reads)


def prepare(program: Program, tools: Path) -> str:
    """Build a program if necessary; return the error message if that fails."""
    if not program.prepare:
        return ""
    done = subprocess.run(
        ["sh", "-ec", program.prepare],
        cwd=tools,
        env=_environment(os.environ, tools),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


def observe(program: Program, root: Path, circumstance: Circumstance) -> Observed:
    """Run a program in ``root/controlled``; return its result and the counters.

    ``vanished``: while the program is held up, the page is removed and its lease ends,
    as if the agent was killed.
    """
    folder, path = root / "controlled", root / "page"
    fill(folder)
    path.unlink(missing_ok=True)
    with Page.create(
        path, mode=Mode.OFF if circumstance == "off" else Mode.CONTROL
    ) as page:
        page.grant(_RATES[circumstance])
        page.renew(0.5 if circumstance == "vanished" else 60.0)
        free = circumstance == "free"
        staging = Staging(root / "journals") if circumstance == "staged" else None
        environment = (
            os.environ if free else shim_environment(path, [folder], staging=staging)
        )
        process = _start(program, folder, root, environment)
        if circumstance == "vanished":
            _wait_for_first_call(page, process)
            path.unlink()
        output, errors = process.communicate(timeout=LIMIT_S)
        return Observed(
            Result(process.returncode, output, errors, _files(program, folder)),
            left=_left_bytes(folder),
            written=page.counters(IoClass.WRITE).moved_bytes,
            read=page.counters(IoClass.READ).moved_bytes,
            staged=page.staged.absorbed_bytes,
        )


def _wait_for_first_call(page: Page, process: subprocess.Popen[bytes]) -> None:
    """Wait until a call is counted, or until the program ends."""
    while process.poll() is None and page.operations_begun == 0:
        time.sleep(0.002)
        page.renew(0.5)


def _start(
    program: Program, folder: Path, tools: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command_words(program, tools),
        cwd=folder,
        env=_environment(environment, tools),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def command_words(program: Program, tools: Path) -> list[str]:
    """Return the words of the command."""
    words = [word.replace("$TOOLS", str(tools)) for word in program.command]
    return [sys.executable if words[0] == "python" else words[0], *words[1:]]


def _files(program: Program, folder: Path) -> dict[str, bytes]:
    return {
        (name := str(path.relative_to(folder))): b""
        if any(fnmatch(name, pattern) for pattern in program.varies)
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _left_bytes(folder: Path) -> int:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return sum(p.stat().st_size for p in files if p.name not in INPUTS)


def _environment(inherited: Mapping[str, str], tools: Path) -> dict[str, str]:
    return {**inherited, **fixed_environment(), "TOOLS": str(tools)}


def fixed_environment() -> dict[str, str]:
    """Return the variables that are the same in all runs."""
    fixed = {
        "LC_ALL": "C",
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    for role in ("AUTHOR", "COMMITTER"):
        fixed |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@b"}
        fixed |= {f"GIT_{role}_DATE": "2000-01-01T00:00:00Z"}
    return fixed


# --- The programs ---------------------------------------------------------------------

_JAVA = """
import java.io.*; import java.nio.*; import java.nio.channels.*; import java.nio.file.*;
public class Copy {
    public static void main(String[] word) throws Exception {
        Path from = Path.of("data"), to = Path.of("out");
        byte[] data = Files.readAllBytes(from);
        if (word[0].equals("stream"))
            try (var out = new FileOutputStream("out")) { out.write(data); }
        else if (word[0].equals("copy"))
            Files.copy(from, to);
        else if (word[0].equals("channel"))
            try (var out = FileChannel.open(to, StandardOpenOption.CREATE,
                    StandardOpenOption.WRITE)) { out.write(ByteBuffer.wrap(data), 0); }
        else
            try (var out = FileChannel.open(to, StandardOpenOption.CREATE,
                    StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                out.map(FileChannel.MapMode.READ_WRITE, 0, data.length).put(data);
            }
    }
}
"""
_JAVA_MAKE = f"cat > Copy.java <<'END'\n{_JAVA}\nEND\njavac Copy.java"

_GO = """
package main
import "os"
func main() {
    data, err := os.ReadFile("data")
    if err == nil { err = os.WriteFile("out", data, 0o600) }
    if err != nil { os.Exit(1) }
}
"""
_GO_MAKE = (
    "export GOCACHE=$TOOLS/cache GO111MODULE=off GOFLAGS=\n"
    f"cat > copy.go <<'END'\n{_GO}\nEND\ngo build -o copy-go copy.go"
)

_C = r"""
#include <stdio.h>
int main(void)
{
    static char data[1 << 20];
    FILE *in = fopen("data", "r"), *out = fopen("out", "w");
    if (fread(data, 1, sizeof data, in) != sizeof data) return 1;
    if (fwrite(data, 1, sizeof data, out) != sizeof data) return 1;
    return fclose(out);
}
"""


def _c_make(name: str, option: str) -> str:
    return f"cat > {name}.c <<'END'\n{_C}\nEND\ngcc {option} -o {name} {name}.c"


_MAPPED = (
    "import mmap\n"
    "with open('out', 'w+b') as f:\n"
    "    f.truncate(1 << 20); m = mmap.mmap(f.fileno(), 1 << 20)\n"
    "    m[:] = b'ab' * (1 << 19); m.flush()"
)
_CHILDREN = (
    "import subprocess\n"
    "for i in range(5):\n"
    "    with open('out', 'ab') as out:\n"
    "        subprocess.run(['cat', 'text'], stdout=out, check=True)"
)
_SQLITE = (
    "create table t (a); with recursive c(x) as (select 1 union all select x + 1 from"
    " c where x < 20000) insert into t select x from c; select sum(a) from t;"
)
_NUMPY = "import numpy as n; a = n.arange(131072.); "
_HDF5 = (
    "import h5py, numpy\n"
    "with h5py.File('out', 'w') as f: f['a'] = numpy.arange(131072.)\n"
    "with h5py.File('out') as f: print(f['a'][...].sum())"
)
_NETCDF = (
    "import netCDF4, numpy\n"
    "with netCDF4.Dataset('out', 'w', format={!r}) as f:\n"
    "    f.createDimension('n', 131072); v = f.createVariable('a', 'f8', ('n',))\n"
    "    v[:] = numpy.arange(131072.)"
)
_MPI = (
    "from mpi4py import MPI; import numpy\n"
    "c = MPI.COMM_WORLD; a = numpy.full(65536, c.rank, 'd')\n"
    "f = MPI.File.Open(c, 'out', MPI.MODE_CREATE | MPI.MODE_WRONLY)\n"
    "f.Write_at_all(c.rank * a.nbytes, a); f.Close()"
)
_GCC = (
    "{ echo 'char a[] = {'; od -An -vtu1 text | sed 's/[0-9]\\+/&,/g'; echo '};'; }"
    " > a.c; gcc -c a.c; gcc -shared -o b.so a.o; nm a.o"
)
_GIT = (
    "git init -q . && git add data text && git commit -qm m && git gc -q"
    " && git fsck && git rev-parse HEAD"
)


def _python(name: str, how: str, text: str, *needs: str, **more: object) -> Program:
    modules = tuple(f"python:{need}" for need in needs)
    return Program(name, how, ("python", "-c", text), modules, **more)  # type: ignore[arg-type]


def _fio(engine: str, how: str, writes: Seen, *more: str) -> Program:
    options = (
        *("--name=a", "--filename=out", "--rw=write", "--bs=64k", "--size=1m"),
        *("--buffer_pattern=0x1234", "--output=/dev/null", "--thread", *more),
    )
    # Create the file first: for mmap, fio would otherwise fill it with plain writes.
    command = f"truncate -s 1m out; exec fio --ioengine={engine} {' '.join(options)}"
    return Program(f"fio {engine}", how, ("sh", "-c", command), ("fio",), writes)


def _java(kind: str, how: str, writes: Seen = "all") -> Program:
    command = ("java", "-XX:-UsePerfData", "-cp", "$TOOLS", "Copy", kind)
    name, needs = f"Java {kind}", ("java", "javac")
    return Program(name, how, command, needs, writes, ("data",), prepare=_JAVA_MAKE)


PROGRAMS = {
    program.name: program
    for program in (
        Program(
            "cat",
            "copy_file_range",
            ("sh", "-c", "cat data text > out"),
            reads=INPUTS,
        ),
        Program("cp", "copy_file_range", ("cp", "data", "out"), reads=("data",)),
        Program("dd", "write", ("dd", "if=data", "of=out", "bs=64k", "status=none")),
        Program("sort", "stdio", ("sort", "-o", "out", "text"), reads=("text",)),
        Program(
            "tar",
            "write",
            ("tar", "--mtime=@0", "-cf", "out", "data", "text"),
            reads=INPUTS,
        ),
        Program(
            "rsync",
            "write, in processes joined by a pipe",
            ("rsync", "-a", "--no-times", "data", "copy"),
            ("rsync",),
            reads=("data",),
        ),
        Program(
            "git",
            "write; reads by mmap",
            ("sh", "-c", _GIT),
            ("git",),
            varies=(".git/*",),
        ),
        Program(
            "gcc",
            "stdio and write, in several processes",
            ("sh", "-ec", _GCC),
            ("gcc",),
        ),
        _python(
            "python, buffered",
            "write",
            "open('out', 'w').write(open('text').read() * 9)",
        ),
        _python(
            "python, unbuffered",
            "write",
            "open('out', 'wb', 0).write(open('data', 'rb', 0).read())",
            reads=("data",),
        ),
        _python(
            "python, shutil",
            "sendfile",
            "import shutil; shutil.copyfile('data', 'out')",
        ),
        _python("python, subprocess", "copy_file_range, in children", _CHILDREN),
        _python("python, mmap", "stores into a mapping", _MAPPED, writes="none"),
        _python(
            "numpy save", "stdio and write", _NUMPY + "n.save('out.npy', a)", "numpy"
        ),
        _python("numpy tofile", "stdio", _NUMPY + "a.tofile('out')", "numpy"),
        _python(
            "numpy memmap",
            "stores into a mapping",
            _NUMPY
            + "m = n.memmap('out', 'f8', 'w+', 0, (131072,)); m[:] = a; m.flush()",
            "numpy",
            writes="none",
        ),
        _python("h5py", "pwrite, by HDF5", _HDF5, "h5py", "numpy"),
        _python(
            "netCDF4", "pwrite, by HDF5", _NETCDF.format("NETCDF4"), "netCDF4", "numpy"
        ),
        _python(
            "netCDF4, classic format",
            "write",
            _NETCDF.format("NETCDF3_CLASSIC"),
            *("netCDF4", "numpy"),
        ),
        Program("sqlite3", "pwrite", ("sqlite3", "out", _SQLITE), ("sqlite3",)),
        Program(
            "sqlite3, write-ahead log",
            "pwrite; shared memory by mmap",
            ("sqlite3", "out", f"pragma journal_mode = wal; {_SQLITE}"),
            ("sqlite3",),
        ),
        _fio("sync", "lseek and write", "all"),
        _fio("psync", "pwrite", "all"),
        _fio("vsync", "writev", "all"),
        _fio("pvsync", "pwritev", "all"),
        _fio("pvsync2", "pwritev2", "all"),
        _fio("posixaio", "aio_write", "all", "--iodepth=4"),
        _fio("libaio", "raw system calls", "none", "--iodepth=4"),
        _fio("io_uring", "raw system calls", "none", "--iodepth=4"),
        _fio("mmap", "stores into a mapping", "none"),
        Program(
            "mpi4py, Open MPI",
            "pwrite, by MPI-IO",
            ("mpirun", "--oversubscribe", "-n", "2", sys.executable, "-c", _MPI),
            ("mpirun", "python:mpi4py", "python:numpy"),
        ),
        _java("stream", "write"),
        _java("channel", "pwrite"),
        _java("copy", "sendfile"),
        _java("mapped", "stores into a mapping", "none"),
        Program(
            "C program",
            "stdio",
            ("$TOOLS/dynamic",),
            ("gcc",),
            reads=("data",),
            prepare=_c_make("dynamic", ""),
        ),
        Program(
            "C program, static",
            "stdio, without a loader",
            ("$TOOLS/static",),
            ("gcc",),
            "none",
            ("data",),
            "none",
            prepare=_c_make("static", "-static"),
        ),
        Program(
            "busybox, static",
            "sendfile, without a loader",
            ("busybox", "cp", "data", "out"),
            ("busybox",),
            "none",
            ("data",),
            "none",
        ),
        Program(
            "Go program",
            "raw system calls",
            ("$TOOLS/copy-go",),
            ("go",),
            "none",
            ("data",),
            "none",
            prepare=_GO_MAKE,
        ),
    )
}
