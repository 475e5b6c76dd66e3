# SPDX-License-Identifier: MIT
"""Find the preload library, or compile it.

A library that was packaged beside the sources is used as it is. Otherwise the sources
are compiled once into the cache folder of the user. The name of the file contains a
digest of the sources, the options and the system: a changed source gives a new library,
and a node with another processor or C library does not load it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from penstock.errors import InputError

__all__ = ["SOURCES", "STRICT", "build_shim", "shim_path"]

#: The folder of the C sources.
SOURCES: Final = Path(__file__).parent

_PACKAGED: Final = SOURCES / "libpenstock.so"
_BUILD_LIMIT_S: Final = 300.0
_OPTIONS: Final = (
    *("-std=c11", "-D_GNU_SOURCE", "-U_FORTIFY_SOURCE", "-O2", "-fPIC", "-shared"),
    # Export only wrapped calls; access thread-local words without a function call.
    *("-fvisibility=hidden", "-ftls-model=initial-exec"),
    # Headers declare paths as nonnull, but programs do pass NULL.
    "-fno-delete-null-pointer-checks",
    # Resolve at load time and never unload: wrappers run in signal handlers.
    *("-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,nodelete", "-Wl,-z,defs"),
    "-Wl,--as-needed",
)
_LIBRARIES: Final = ("-ldl", "-lpthread")
#: Warnings for the tests only: a newer compiler of a user may warn of more.
STRICT: Final = ("-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Werror")


def shim_path() -> Path:
    """Return the path of the preload library; compile it if necessary.

    Raises `InputError` if there is no compiler or no usable cache folder.
    """
    if _PACKAGED.is_file():
        return _PACKAGED
    target = _cache_folder() / f"shim-{_digest()}.so"
    if not target.is_file():
        build_shim(target)
    return target


def build_shim(target: Path, options: Sequence[str] = ()) -> None:
    """Compile the library into `target`, with further compiler `options`.

    `target` is replaced atomically, so several processes may build it at the same time.
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise InputError(
            "there is no C compiler for the preload library",
            remedy="install gcc; the library is built once for each user",
        )
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as folder:
        built = Path(folder) / target.name
        sources = [str(path) for path in sorted(SOURCES.glob("*/*.c"))]
        includes = [f"-I{SOURCES / folder}" for folder in ("shim", "stage")]
        command = [compiler, *_OPTIONS, *includes, *options]
        command += ["-o", str(built), *sources]
        _compile([*command, *_LIBRARIES])
        # Drainers that run as other users load it, too.
        built.chmod(0o755)
        built.replace(target)


def _compile(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=_BUILD_LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(
            f"the preload library cannot be compiled: {error}",
            remedy="check that gcc works",
        ) from error
    if done.returncode != 0:
        lines = done.stderr.splitlines() or ["no message"]
        first = next((line for line in lines if "error" in line), lines[0])
        raise InputError(
            f"the preload library cannot be compiled: {first.strip()}",
            remedy="install gcc and the headers of the C library (libc6-dev)",
        )


def _digest() -> str:
    # Nodes with different systems may share a home folder.
    system = (platform.machine(), *platform.libc_ver(), *_OPTIONS, *_LIBRARIES)
    digest = hashlib.sha256("\0".join(system).encode())
    for path in sorted([*SOURCES.glob("*/*.c"), *SOURCES.glob("*/*.h")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder() -> Path:
    try:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        folder = Path(base) / "penstock"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError) as error:
        raise InputError(
            f"there is no cache folder for the preload library: {error}",
            remedy="set XDG_CACHE_HOME to a folder that you own",
        ) from error
    shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if status.st_uid != os.geteuid() or shared:
        raise InputError(
            "other users can write to this folder, and programs would load their files",
            where=str(folder),
            remedy="chmod 700 it, or set XDG_CACHE_HOME to another folder that you own",
        )
    return folder
