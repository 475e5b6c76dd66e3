# SPDX-License-Identifier: MIT
"""Find the compiled C parts: the preload library, the library of mounts, programs.

A wheel contains them. In a checkout, ``make native`` compiles them into the same
folder, which Git ignores.

A program of root may change its user (``setpriv``, ``su``), and the loader prints an
error for each of its processes that cannot read the preload library. If root has
installed penstock where not all users can read it, the library is therefore copied to
``/var/cache/penstock``. Programs of other users cannot change their user without a
setuid program, in which the loader removes LD_PRELOAD.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from penstock.errors import InputError

__all__ = ["BUILT", "SOURCES", "mount_library_path", "program_path", "shim_path"]

#: The folder of the C sources; a wheel has their headers only.
SOURCES: Final = Path(__file__).parent
#: The folder of what was compiled.
BUILT: Final = SOURCES / "built"

#: Folder of a copy of the preload library that all users can read.
_PUBLIC: Final = Path("/var/cache/penstock")


def shim_path() -> Path:
    """Return the path of the preload library; raise `InputError` if there is none."""
    library = _built("libpenstock.so", "preload library")
    if os.geteuid() != 0 or _is_public(library.parent):
        return library
    return _public_copy(library) or library


def mount_library_path() -> Path:
    """Return the path of the library of mounts; raise `InputError` if there is none."""
    return _built("libpenstock-mount.so", "library of mounts")


def program_path(name: str) -> Path:
    """Return the path of a C program of the benchmarks, as `shim_path` does."""
    return _built(name, f"program `{name}`")


def _built(name: str, kind: str) -> Path:
    path = BUILT / name
    if not path.is_file():
        raise InputError(
            f"the {kind} is not compiled",
            where=str(path),
            remedy="run `make native` in the checkout, or install a wheel of penstock",
        )
    return path


def _public_copy(library: Path) -> Path | None:
    """Copy a library to where all users can read it; None if that is not possible.

    The name contains a digest of the content: jobs may run with an older copy.
    """
    import hashlib  # noqa: PLC0415 - to start fast
    import tempfile  # noqa: PLC0415

    with suppress(OSError):
        content = library.read_bytes()
        _PUBLIC.mkdir(exist_ok=True)
        _PUBLIC.chmod(0o755)  # whatever the umask is
        if not _is_public(_PUBLIC):
            return None
        digest = hashlib.sha256(content).hexdigest()[:16]
        copy = _PUBLIC / f"{library.stem}-{digest}.so"
        if not copy.is_file():
            with tempfile.TemporaryDirectory(dir=_PUBLIC, prefix=".copy-") as folder:
                written = Path(folder) / copy.name
                written.write_bytes(content)
                written.chmod(0o755)
                written.replace(copy)
        return copy
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
