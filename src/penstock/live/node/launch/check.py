# SPDX-License-Identifier: MIT
"""Examine whether a program can be controlled, without starting it.

A program can be controlled if the loader preloads our library, and if its I/O goes
through functions that the library wraps. A script is examined by its interpreter. The
libraries that the program is linked with are examined as well. Libraries that it loads
at run time are not known here; `penstock ctl status` shows I/O that control misses.
"""

from __future__ import annotations

import mmap
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Final

from penstock.errors import InputError
from penstock.live.node.launch.elf import Elf, read_elf
from penstock.native.files import SOURCES

__all__ = [
    "UNCOVERED",
    "CheckReport",
    "Controllability",
    "Finding",
    "check",
    "refusal",
    "wrapped_calls",
]


class Controllability(IntEnum):
    """How much of the I/O of a program is controlled."""

    CONTROLLABLE = 0
    PARTLY = 1
    NOT = 2


@dataclass(frozen=True)
class Finding:
    """A reason against control, or a remark (verdict CONTROLLABLE)."""

    verdict: Controllability
    what: str
    remedy: str


@dataclass(frozen=True)
class CheckReport:
    """The result of the examination of a program."""

    program: str
    """The program as the user named it."""
    examined: tuple[str, ...]
    """Paths of the program, of the interpreter if it is a script, and of libraries."""
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Controllability:
        """The worst verdict of the findings."""
        return max(
            (f.verdict for f in self.findings), default=Controllability.CONTROLLABLE
        )


#: Kind of call -> calls that move file data and that the library may not wrap.
UNCOVERED: Final = {
    "formatted input": (
        *("fscanf", "__isoc99_fscanf", "__isoc23_fscanf", "vfscanf"),
        *("__isoc99_vfscanf", "__isoc23_vfscanf"),
    ),
    "input of wide characters": ("fgetwc", "fgetws", "getwc", "fwscanf"),
    "words": ("getw", "putw"),
    "mapped files": ("msync",),
    "reading ahead": ("readahead",),
}
_BYPASSES: Final = {
    "io_uring": ("io_uring_queue_init", "io_uring_queue_init_params", "io_uring_setup"),
    "libaio": ("io_submit",),
}
#: Beginnings of the names of the C library and its parts, which are not examined.
_SYSTEM: Final = ("linux-vdso", "ld-linux", "ld64", "libc.so", "libpthread.", "librt.")
_LOADERS: Final = re.compile(r"ld-linux[\w-]*\.so\.\d+|ld64\.so\.\d+")
_MACHINES: Final = {3: "x86", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv"}
_MOUNT: Final = "control a mount instead (`penstock mount`)"
_RELINK: Final = f"link it dynamically with glibc, or {_MOUNT}"
_OWN: Final = Path("/proc/self/exe")
_SCRIPTS_MAX: Final = 4
_LIST_LIMIT_S: Final = 20.0


@cache
def wrapped_calls() -> frozenset[str]:
    """Return the calls that the preload library wraps."""
    text = (SOURCES / "shim" / "real.h").read_text()
    return frozenset(re.findall(r"\bX\((\w+), \w+\)", text)) - {"name"}


def refusal(program: str) -> Finding | None:
    """Return why the preload library would not be loaded into a program, if so.

    It only reads the file of the program (or of the interpreter of a script), so it is
    fast enough for every start. Raises as `check` does.
    """
    path = _program_files(program)[-1]
    return _refusal(path, _read(path))


def check(program: str) -> CheckReport:
    """Examine a program, given by its path or by its name in PATH.

    Raises `InputError` if there is no such program or it cannot be read.
    """
    files = _program_files(program)
    path = files[-1]
    elf = _read(path)
    if refused := _refusal(path, elf):
        return CheckReport(program, tuple(map(str, files)), (refused,))
    libraries = _libraries(path, elf)
    return CheckReport(
        program,
        tuple(map(str, (*files, *libraries))),
        (
            *_bypasses({path: elf, **libraries}),
            *_uncovered(elf),
            *_unexamined(elf, libraries),
            *_refusals_of_others(path),
        ),
    )


# --- The file -------------------------------------------------------------------------


def _program_files(program: str) -> list[Path]:
    """Return the file of a program; for a script, its interpreter follows."""
    files = [_find(program)]
    while interpreter := _interpreter(files[-1]):
        if len(files) > _SCRIPTS_MAX:
            raise InputError(
                "its interpreters are scripts of one another", where=program
            )
        files.append(_find(interpreter))
    return files


def _find(program: str) -> Path:
    path = shutil.which(program)
    if path is None:
        raise InputError(
            "no such program, or not executable",
            where=program,
            remedy="give its path, or a name in PATH",
        )
    return Path(path)


def _interpreter(path: Path) -> str:
    """Return the interpreter of a script; empty if the file is not a script."""
    line = _head(path).partition(b"\n")[0]
    if not line.startswith(b"#!"):
        return ""
    words = os.fsdecode(line[2:]).split()
    if words and Path(words[0]).name == "env":
        words = [w for w in words[1:] if not w.startswith("-") and "=" not in w]
    if not words:
        raise InputError(
            "the first line of the script names no interpreter",
            where=str(path),
            remedy="begin the script with #!/path/to/interpreter",
        )
    return words[0]


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(256)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}",
            where=str(path),
            remedy="ask its owner, or just try it with `penstock run`",
        ) from error


def _read(path: Path) -> Elf:
    # Mapped, because a program may be large and only a few pages of it are read.
    with path.open("rb") as stream:
        if os.fstat(stream.fileno()).st_size > 0:
            with closing(mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)) as data:
                try:
                    elf = read_elf(data)
                except InputError as error:
                    raise error.at(str(path)) from error
            if elf is not None:
                return elf
    raise InputError(
        "not a program and not a script",
        where=str(path),
        remedy="if it is a script, begin it with a line like #!/bin/sh",
    )


def _libraries(path: Path, elf: Elf) -> dict[Path, Elf]:
    """Return the libraries that the loader would map, without the C library.

    The loader lists them itself (LD_TRACE_LOADED_OBJECTS) and runs none of their code.
    """
    import subprocess  # noqa: PLC0415 - to start fast

    command = [elf.interpreter, str(path.absolute())]
    try:
        listing = subprocess.run(  # noqa: S603 - a loader of glibc
            command,
            env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"},
            capture_output=True,
            check=False,
            timeout=_LIST_LIMIT_S,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    paths = re.findall(
        r"^\s*(?:\S+ => )?(/\S+) \(0x", os.fsdecode(listing), re.MULTILINE
    )
    return {
        Path(name): _read(Path(name))
        for name in paths
        if not Path(name).name.startswith(_SYSTEM)
    }


# --- Findings -------------------------------------------------------------------------


def _refusal(path: Path, elf: Elf) -> Finding | None:
    """Return the reason why the library would not be loaded, if there is one."""
    if reason := _reason_to_refuse(elf):
        return Finding(Controllability.NOT, *reason)
    if _gains_rights(path):
        return Finding(
            Controllability.NOT,
            "it runs with more rights than its caller, so the loader preloads nothing",
            f"start it as the user whose rights it takes, or {_MOUNT}",
        )
    return None


def _refusals_of_others(path: Path) -> Iterator[Finding]:
    """Yield the reason why it is not controlled if another user starts it."""
    if _gives_rights(path):
        yield Finding(
            Controllability.PARTLY,
            "it gives its caller more rights: the loader preloads nothing for other "
            "users, so it is not controlled for them",
            f"nothing to do if only you start it; else {_MOUNT}",
        )


def _reason_to_refuse(elf: Elf) -> tuple[str, str] | None:
    if elf.platform != _read(_OWN).platform:
        machine = _MACHINES.get(elf.machine, f"processor {elf.machine}")
        return (
            f"it is a program of {elf.bits} bits for {machine}",
            "build it for this machine; the library cannot be preloaded for it",
        )
    if elf.is_go:
        return "Go programs make system calls without the C library", _MOUNT
    if not elf.interpreter:
        return "it is linked statically, so no loader can preload the library", _RELINK
    if not _LOADERS.fullmatch(Path(elf.interpreter).name):
        return f"its C library is not glibc ({elf.interpreter})", _RELINK
    if not Path(elf.interpreter).exists():
        return f"its loader does not exist ({elf.interpreter})", "install it"
    return None


def _gains_rights(path: Path) -> bool:
    """Return True if the program gets more rights if this user starts it."""
    status, user = path.stat(), os.geteuid()
    other_user = status.st_mode & stat.S_ISUID and status.st_uid != user
    groups = {os.getegid(), *os.getgroups()}
    other_group = status.st_mode & stat.S_ISGID and status.st_gid not in groups
    return bool(other_user or other_group or (user != 0 and _is_capable(path)))


def _gives_rights(path: Path) -> bool:
    """Return True if the program gets more rights if some user starts it."""
    is_set = path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)
    return bool(is_set) or _is_capable(path)


def _is_capable(path: Path) -> bool:
    try:
        return "security.capability" in os.listxattr(path)
    except OSError:  # A file system without extended attributes.
        return False


def _bypasses(files: Mapping[Path, Elf]) -> Iterator[Finding]:
    for name, calls in _BYPASSES.items():
        users = [str(path) for path, elf in files.items() if elf.imports & {*calls}]
        if users:
            yield Finding(
                Controllability.PARTLY,
                f"{users[0]} can use {name}, which is not controlled",
                f"choose another I/O engine in its settings, or {_MOUNT}",
            )


def _uncovered(elf: Elf) -> Iterator[Finding]:
    missing = elf.imports - wrapped_calls()
    for meaning, calls in UNCOVERED.items():
        used = sorted(missing & {*calls})
        if used:
            yield Finding(
                Controllability.PARTLY,
                f"it uses calls that are not controlled ({meaning}): {', '.join(used)}",
                "ignore it if little data goes through them; see `penstock ctl status`",
            )


def _unexamined(elf: Elf, libraries: Mapping[Path, Elf]) -> Iterator[Finding]:
    """Yield remarks on libraries that were not examined."""
    named = {name for file in (elf, *libraries.values()) for name in file.needed}
    missing = named - {path.name for path in libraries}
    absent = sorted(name for name in missing if not name.startswith(_SYSTEM))
    if absent:
        yield Finding(
            Controllability.CONTROLLABLE,
            f"these libraries were not found and not examined: {', '.join(absent)}",
            "set LD_LIBRARY_PATH as you do for the program",
        )
    if "dlopen" in elf.imports:
        yield Finding(
            Controllability.CONTROLLABLE,
            "libraries that it loads at run time were not examined",
            "run it, and look for uncontrolled bytes in `penstock ctl status`",
        )
