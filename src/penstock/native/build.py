# SPDX-License-Identifier: MIT
"""The preload library: where it is, and how it is compiled.

A packaged library beside the sources is taken as it is. Otherwise the sources are
compiled once, into a folder of the user's cache; the file's name holds a digest of the
sources, of the options and of the system, so that a library is never stale, never built
twice and never loaded on a node with another processor or C library.
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
    # Only wrapped calls are visible; thread-local words need no call to find.
    *("-fvisibility=hidden", "-ftls-model=initial-exec"),
    # Headers promise that names are not null; programs do not keep the promise.
    "-fno-delete-null-pointer-checks",
    # Resolved at load time, never unloaded: wrappers run in signal handlers.
    *("-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,nodelete", "-Wl,-z,defs"),
    "-Wl,--as-needed",
)
_LIBRARIES: Final = ("-ldl", "-lpthread")
#: What the sources must pass in the tests; a user's compiler may warn of new things.
STRICT: Final = ("-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Werror")


def shim_path() -> Path:
    """Return the preload library, compiled now if there is none yet."""
    if _PACKAGED.is_file():
        return _PACKAGED
    target = _cache_folder() / f"shim-{_digest()}.so"
    if not target.is_file():
        build_shim(target)
    return target


def build_shim(target: Path, options: Sequence[str] = ()) -> None:
    """Compile the library into `target`, with further compiler `options`.

    The file appears complete or not at all, whoever else builds it.
    """
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise InputError(
            "no C compiler for the preload library",
            remedy="install gcc; the library is built once for each user",
        )
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as folder:
        made = Path(folder) / target.name
        sources = [str(path) for path in sorted(SOURCES.glob("*/*.c"))]
        includes = [f"-I{SOURCES / folder}" for folder in ("shim", "stage")]
        command = [compiler, *_OPTIONS, *includes, *options]
        command += ["-o", str(made), *sources]
        _compile([*command, *_LIBRARIES])
        # Drainers of other users load it.
        made.chmod(0o755)
        made.replace(target)


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
            remedy="check the C compiler",
        ) from error
    if done.returncode != 0:
        lines = done.stderr.splitlines() or ["no message"]
        first = next((line for line in lines if "error" in line), lines[0])
        raise InputError(
            f"the preload library cannot be compiled: {first.strip()}",
            remedy="gcc with the headers of the C library is needed (libc6-dev)",
        )


def _digest() -> str:
    # A home folder is shared by nodes that differ.
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
            f"no cache folder for the preload library: {error}",
            remedy="set XDG_CACHE_HOME to a folder of yours",
        ) from error
    shared = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if status.st_uid != os.geteuid() or shared:
        raise InputError(
            "others can write this folder, and programs would load what they put there",
            where=str(folder),
            remedy="set XDG_CACHE_HOME to a folder of yours, or chmod 700 it",
        )
    return folder
