# SPDX-License-Identifier: MIT
"""Find the preload library, or compile it.

A library that was packaged beside the sources is used as it is. Otherwise the sources
are compiled once into the cache folder of the user. The name of the file contains a
digest of the sources, the options and the system: a changed source gives a new library,
and a node with another processor or C library does not load it.

A program of root may change its user (``setpriv``, ``su``), and the loader prints an
error for each of its processes that cannot read the library. The library of root is
therefore in a folder that all users can read: ``$XDG_CACHE_HOME/penstock`` if that is
one, else ``/var/cache/penstock``. Programs of other users cannot change their user
without a setuid program, in which the loader removes LD_PRELOAD.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from penstock.errors import InputError

__all__ = ["SOURCES", "STRICT", "build_shim", "shim_path"]

#: The folder of the C sources.
SOURCES: Final = Path(__file__).parent

_PACKAGED: Final = SOURCES / "libpenstock.so"
#: Folder of the library of root, if the own cache folder of root is private.
_SYSTEM_CACHE: Final = Path("/var/cache/penstock")
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


def shim_path(notice: Callable[[str], None] = lambda _: None) -> Path:
    """Return the path of the preload library; compile it if necessary.

    `notice` is called with a message before the library is compiled, which takes
    seconds. Raises `InputError` if there is no compiler or no usable cache folder.
    """
    is_packaged = _PACKAGED.is_file()
    if is_packaged and (os.geteuid() != 0 or _is_public(SOURCES)):
        return _PACKAGED
    target = _cache_folder() / f"shim-{_digest()}.so"
    if not target.is_file():
        if not is_packaged:
            notice("compiling the preload library; this is necessary only once")
        with _replaced(target) as built:
            if is_packaged:
                shutil.copyfile(_PACKAGED, built)
            else:
                _build(built)
    return target


def build_shim(target: Path, options: Sequence[str] = ()) -> None:
    """Compile the library into `target`, with further compiler `options`.

    `target` is replaced atomically, so several processes may build it at the same time.
    """
    with _replaced(target) as built:
        _build(built, options)


@contextmanager
def _replaced(target: Path) -> Iterator[Path]:
    """Replace `target` atomically by the file that the block makes."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as folder:
        built = Path(folder) / target.name
        yield built
        # Other users load it, too: drainers, and programs that change their user.
        built.chmod(0o755)
        built.replace(target)


def _build(target: Path, options: Sequence[str] = ()) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise InputError(
            "there is no C compiler for the preload library",
            remedy="install gcc; the library is built once for each user",
        )
    sources = [str(path) for path in sorted(SOURCES.glob("*/*.c"))]
    includes = [f"-I{SOURCES / folder}" for folder in ("shim", "stage")]
    command = [compiler, *_OPTIONS, *includes, *options, "-o", str(target), *sources]
    _compile([*command, *_LIBRARIES])


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
    """Return the folder of the library; see the module."""
    system = _system_cache() if os.geteuid() == 0 else None
    if system is None:
        return _own_cache()
    if os.environ.get("XDG_CACHE_HOME") and _is_public(own := _own_cache()):
        return own
    return system


def _system_cache() -> Path | None:
    """Return the folder for the library of root; None if it is not usable."""
    with suppress(OSError):
        _SYSTEM_CACHE.mkdir(exist_ok=True)
        _SYSTEM_CACHE.chmod(0o755)  # whatever the umask is
        if _is_public(_SYSTEM_CACHE):
            return _SYSTEM_CACHE
    return None


def _is_public(folder: Path) -> bool:
    """Return True if all users can load files in a folder and none can replace them."""
    folder = folder.resolve()
    for part in (folder, *folder.parents):
        status = part.stat()
        mode = status.st_mode
        others_write = mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX
        is_trusted = status.st_uid in (0, os.geteuid()) and not others_write
        if not mode & stat.S_IXOTH or not is_trusted:
            return False
    return not os.statvfs(folder).f_flag & os.ST_NOEXEC


def _own_cache() -> Path:
    """Return the folder of penstock in the cache folder of the user."""
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
