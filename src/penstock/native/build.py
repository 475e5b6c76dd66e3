# SPDX-License-Identifier: MIT
"""Find the preload library and the library of mounts, or compile them.

A preload library that was packaged beside the sources is used as it is. Otherwise the
sources are compiled once into the cache folder of the user. The name of the file
contains a digest of the sources, the options and the system: a changed source gives a
new library, and a node with another processor or C library does not load it.

``penstock run`` finds the library at every start: what only compiling needs is imported
there.

A program of root may change its user (``setpriv``, ``su``), and the loader prints an
error for each of its processes that cannot read the library. The library of root is
therefore in a folder that all users can read: ``$XDG_CACHE_HOME/penstock`` if that is
one, else ``/var/cache/penstock``. Programs of other users cannot change their user
without a setuid program, in which the loader removes LD_PRELOAD.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.errors import InputError

__all__ = [
    "SOURCES",
    "STRICT",
    "build_mount_library",
    "build_shim",
    "mount_library_path",
    "shim_path",
]

#: The folder of the C sources.
SOURCES: Final = Path(__file__).parent

_PACKAGED: Final = SOURCES / "libpenstock.so"
#: Folder of the library of root, if the own cache folder of root is private.
_SYSTEM_CACHE: Final = Path("/var/cache/penstock")
_BUILD_LIMIT_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class _Library:
    """A library, and how it is compiled."""

    name: str
    """How messages call it."""
    file: str
    """First part of the name of the compiled file."""
    folders: tuple[str, ...]
    """Folders of its sources."""
    options: tuple[str, ...]
    libraries: tuple[str, ...]
    packages: str
    """Debian packages with what the compiler needs besides gcc."""

    def sources(self, pattern: str) -> list[Path]:
        """Return the source files that match a pattern."""
        paths = (path for name in self.folders for path in (SOURCES / name).glob("*"))
        return sorted(path for path in paths if path.match(pattern))


_SHIM: Final = _Library(
    name="preload library",
    file="shim",
    folders=("shim", "stage"),
    options=(
        *("-std=c11", "-D_GNU_SOURCE", "-U_FORTIFY_SOURCE", "-O2", "-fPIC", "-shared"),
        # Export only wrapped calls; access thread-local words without a function call.
        *("-fvisibility=hidden", "-ftls-model=initial-exec"),
        # Headers declare paths as nonnull, but programs do pass NULL.
        "-fno-delete-null-pointer-checks",
        # Resolve at load time and never unload: wrappers run in signal handlers.
        *("-Wl,-z,now", "-Wl,-z,relro", "-Wl,-z,nodelete", "-Wl,-z,defs"),
        # Fewer segments to map at the start of every process.
        *("-Wl,--as-needed", "-Wl,-z,noseparate-code"),
    ),
    libraries=("-ldl", "-lpthread"),
    packages="libc6-dev",
)
_MOUNT: Final = _Library(
    name="library of mounts",
    file="mount",
    folders=("mount",),
    options=(
        *("-std=c11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared"),
        *("-fvisibility=hidden", "-Wl,-z,defs"),
    ),
    libraries=("-lfuse3", "-lpthread", "-lm"),
    packages="libfuse3-dev and libc6-dev",
)
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
    if is_packaged:
        return _cached(_SHIM, lambda built: shutil.copyfile(_PACKAGED, built))
    return _compiled(_SHIM, notice)


def mount_library_path(notice: Callable[[str], None] = lambda _: None) -> Path:
    """Return the path of the library of mounts, as `shim_path` does."""
    return _compiled(_MOUNT, notice)


def build_shim(target: Path, options: Sequence[str] = ()) -> None:
    """Compile the preload library into `target`, with further compiler `options`.

    `target` is replaced atomically, so several processes may build it at the same time.
    """
    with _replaced(target) as built:
        _build(_SHIM, built, options)


def build_mount_library(target: Path, options: Sequence[str] = ()) -> None:
    """Compile the library of mounts, as `build_shim` does."""
    with _replaced(target) as built:
        _build(_MOUNT, built, options)


def _compiled(library: _Library, notice: Callable[[str], None]) -> Path:
    """Return the path of a library; compile it if necessary."""

    def build(target: Path) -> None:
        notice(f"compiling the {library.name}; this is necessary only once")
        _build(library, target)

    return _cached(library, build)


def _cached(library: _Library, build: Callable[[Path], object]) -> Path:
    """Return the path of a library in the cache; make it with `build` if necessary."""
    target = _cache_folder(library) / f"{library.file}-{_digest(library)}.so"
    if not target.is_file():
        with _replaced(target) as built:
            build(built)
    return target


@contextmanager
def _replaced(target: Path) -> Iterator[Path]:
    """Replace `target` atomically by the file that the block makes."""
    import tempfile  # noqa: PLC0415 - to start fast

    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".build-") as folder:
        built = Path(folder) / target.name
        yield built
        # Other users load it, too: drainers, and programs that change their user.
        built.chmod(0o755)
        built.replace(target)


def _build(library: _Library, target: Path, options: Sequence[str] = ()) -> None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise InputError(
            f"there is no C compiler for the {library.name}",
            remedy="install gcc; the library is built once for each user",
        )
    includes = [f"-I{SOURCES / folder}" for folder in library.folders]
    command = [
        *(compiler, *library.options, *includes, *options, "-o", str(target)),
        *map(str, library.sources("*.c")),
        *library.libraries,
    ]
    _compile(library, command)


def _compile(library: _Library, command: Sequence[str]) -> None:
    import subprocess  # noqa: PLC0415 - to start fast

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
            f"the {library.name} cannot be compiled: {error}",
            remedy="check that gcc works",
        ) from error
    if done.returncode != 0:
        lines = done.stderr.splitlines() or ["no message"]
        first = next((line for line in lines if "error" in line), lines[0])
        raise InputError(
            f"the {library.name} cannot be compiled: {first.strip()}",
            remedy=f"install gcc and the Debian packages {library.packages}",
        )


def _digest(library: _Library) -> str:
    # Nodes with different systems may share a home folder.
    libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    system = (os.uname().machine, libc, *library.options, *library.libraries)
    digest = hashlib.sha256("\0".join(system).encode())
    for path in library.sources("*.[ch]"):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _cache_folder(library: _Library) -> Path:
    """Return the folder of a library; see the module."""
    system = _system_cache() if os.geteuid() == 0 else None
    if system is None:
        return _own_cache(library)
    if os.environ.get("XDG_CACHE_HOME") and _is_public(own := _own_cache(library)):
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


def _own_cache(library: _Library) -> Path:
    """Return the folder of penstock in the cache folder of the user."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        folder = Path(base) / "penstock"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError) as error:
        raise InputError(
            f"there is no cache folder for the {library.name}: {error}",
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
