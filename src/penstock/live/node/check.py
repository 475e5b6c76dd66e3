# SPDX-License-Identifier: MIT
"""Can a program be controlled? What its file says, before it is ever started.

A program is controlled if the loader puts the preload library in front of the C
library, and if its I/O goes through functions that the library wraps. A script is as
controllable as its interpreter. The libraries that a program names are looked at too;
what it loads while it runs cannot be known here, and `penstock ctl status` shows what
it then does.
"""

from __future__ import annotations

import mmap
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Final

from penstock.errors import InputError
from penstock.live.node.elf import Elf, read_elf
from penstock.native.build import SOURCES

__all__ = [
    "UNCOVERED",
    "CheckReport",
    "Controllability",
    "Finding",
    "check",
    "wrapped_calls",
]


class Controllability(IntEnum):
    """How much of a program's I/O control reaches."""

    CONTROLLABLE = 0
    PARTLY = 1
    NOT = 2


@dataclass(frozen=True)
class Finding:
    """One thing that speaks against control, or that is worth knowing."""

    verdict: Controllability
    what: str
    remedy: str


@dataclass(frozen=True)
class CheckReport:
    """What is known of a program."""

    program: str
    """As it was named."""
    examined: tuple[str, ...]
    """The file, after a script its interpreter, then the libraries."""
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> Controllability:
        """The worst of the findings."""
        return max(
            (f.verdict for f in self.findings), default=Controllability.CONTROLLABLE
        )


#: Calls that move data of files, and that the preload library may not wrap.
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
#: The C library and what belongs to it: it is what control stands in front of.
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


def check(program: str) -> CheckReport:
    """Examine a program, given by its path or by a name that the shell would find."""
    files = _followed(program)
    path = files[-1]
    elf = _read(path)
    if refusals := tuple(_refusals(path, elf)):
        return CheckReport(program, tuple(map(str, files)), refusals)
    libraries = _libraries(path, elf)
    return CheckReport(
        program,
        tuple(map(str, (*files, *libraries))),
        (
            *_bypasses({path: elf, **libraries}),
            *_uncovered(elf),
            *_unknown(elf, libraries),
            *_refusals_of_others(path),
        ),
    )


# --- The file -------------------------------------------------------------------------


def _followed(program: str) -> list[Path]:
    """Return the file of a program; if it is a script, its interpreter comes next."""
    files = [_found(program)]
    while interpreter := _interpreter(files[-1]):
        if len(files) > _SCRIPTS_MAX:
            raise InputError("scripts that call one another", where=program)
        files.append(_found(interpreter))
    return files


def _found(program: str) -> Path:
    found = shutil.which(program)
    if found is None:
        raise InputError(
            "no such program, or not executable",
            where=program,
            remedy="give its path, or a name in PATH",
        )
    return Path(found)


def _interpreter(path: Path) -> str:
    """Return the interpreter of a script; empty if the file is none."""
    line = _head(path).partition(b"\n")[0]
    if not line.startswith(b"#!"):
        return ""
    words = os.fsdecode(line[2:]).split()
    if words and Path(words[0]).name == "env":
        words = [w for w in words[1:] if not w.startswith("-") and "=" not in w]
    if not words:
        raise InputError("a script without interpreter", where=str(path))
    return words[0]


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(256)
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}",
            where=str(path),
            remedy="ask its owner, or try it: `penstock run` never does harm",
        ) from error


def _read(path: Path) -> Elf:
    # A program may be large, and only some pages of it are looked at.
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
        "neither a program nor a script",
        where=str(path),
        remedy="a script names its interpreter in its first line, e.g. #!/bin/sh",
    )


def _libraries(path: Path, elf: Elf) -> dict[Path, Elf]:
    """Return the libraries that the loader would map, without those of the system.

    The loader is asked itself: it maps and names them, and runs nothing of them.
    """
    command = [elf.interpreter, str(path.absolute())]
    try:
        said = subprocess.run(  # noqa: S603 - a loader of glibc
            command,
            env={**os.environ, "LD_TRACE_LOADED_OBJECTS": "1"},
            capture_output=True,
            check=False,
            timeout=_LIST_LIMIT_S,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    paths = re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", os.fsdecode(said), re.MULTILINE)
    return {
        Path(name): _read(Path(name))
        for name in paths
        if not Path(name).name.startswith(_SYSTEM)
    }


# --- What speaks against control ------------------------------------------------------


def _refusals(path: Path, elf: Elf) -> Iterator[Finding]:
    """Find why the preload library would not be loaded, or would see nothing."""
    if reason := _reason_to_refuse(elf):
        yield Finding(Controllability.NOT, *reason)
    elif _gains_rights(path):
        yield Finding(
            Controllability.NOT,
            "it runs with more rights than its caller, so the loader preloads nothing",
            "start it as the user whose rights it takes, or use a mount",
        )


def _refusals_of_others(path: Path) -> Iterator[Finding]:
    """Find why it could not be controlled if another user started it."""
    if _gives_rights(path):
        yield Finding(
            Controllability.PARTLY,
            "it gives its caller more rights: for other users it is not controlled, "
            "since the loader preloads nothing",
            f"nothing, if only you start it; else {_MOUNT}",
        )


def _reason_to_refuse(elf: Elf) -> tuple[str, str] | None:
    if elf.kind != _read(_OWN).kind:
        machine = _MACHINES.get(elf.machine, f"processor {elf.machine}")
        return (
            f"it is a program of {elf.bits} bits for {machine}",
            "build it for this machine; do not preload the library for it",
        )
    if elf.is_go:
        return "Go programs call the kernel themselves", _MOUNT
    if not elf.interpreter:
        return "it is static: there is no loader that could preload", _RELINK
    if not _LOADERS.fullmatch(Path(elf.interpreter).name):
        return f"its C library is not glibc ({elf.interpreter})", _RELINK
    if not Path(elf.interpreter).exists():
        return f"its loader is not here ({elf.interpreter})", "install it"
    return None


def _gains_rights(path: Path) -> bool:
    """Tell whether the kernel would give the program other rights than its caller's."""
    status, user = path.stat(), os.geteuid()
    other_user = status.st_mode & stat.S_ISUID and status.st_uid != user
    groups = {os.getegid(), *os.getgroups()}
    other_group = status.st_mode & stat.S_ISGID and status.st_gid not in groups
    return bool(other_user or other_group or (user != 0 and _is_capable(path)))


def _gives_rights(path: Path) -> bool:
    """Tell whether the kernel would give the program other rights than somebody's."""
    is_set = path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)
    return bool(is_set) or _is_capable(path)


def _is_capable(path: Path) -> bool:
    try:
        return "security.capability" in os.listxattr(path)
    except OSError:  # A file system without attributes.
        return False


def _bypasses(files: Mapping[Path, Elf]) -> Iterator[Finding]:
    for name, calls in _BYPASSES.items():
        users = [str(path) for path, elf in files.items() if elf.imports & {*calls}]
        if users:
            yield Finding(
                Controllability.PARTLY,
                f"{users[0]} can do I/O with {name}, which control does not see",
                f"choose another I/O engine in its settings, or {_MOUNT}",
            )


def _uncovered(elf: Elf) -> Iterator[Finding]:
    missing = elf.imports - wrapped_calls()
    for meaning, calls in UNCOVERED.items():
        used = sorted(missing & {*calls})
        if used:
            yield Finding(
                Controllability.PARTLY,
                f"calls that control does not see, {meaning}: {', '.join(used)}",
                "nothing, if little goes through them; `penstock ctl status` shows it",
            )


def _unknown(elf: Elf, libraries: Mapping[Path, Elf]) -> Iterator[Finding]:
    """Find what was not examined; it need not speak against control."""
    named = {name for file in (elf, *libraries.values()) for name in file.needed}
    missing = named - {path.name for path in libraries}
    absent = sorted(name for name in missing if not name.startswith(_SYSTEM))
    if absent:
        yield Finding(
            Controllability.CONTROLLABLE,
            f"libraries that are not found were not examined: {', '.join(absent)}",
            "set LD_LIBRARY_PATH as for the program",
        )
    if "dlopen" in elf.imports:
        yield Finding(
            Controllability.CONTROLLABLE,
            "libraries that it loads while it runs were not examined",
            "try it: `penstock ctl status` shows uncontrolled bytes",
        )
