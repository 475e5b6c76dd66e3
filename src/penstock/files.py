# SPDX-License-Identifier: MIT
"""Writing files: completely or not at all."""

from __future__ import annotations

import errno
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from penstock.errors import InputError

__all__ = ["replacing"]

#: What to do if a file cannot be written, by the reason.
_WRITE_REMEDIES: Final = {
    errno.ENOTDIR: "name a file in a folder that exists",
    errno.EISDIR: "name a file, not a folder",
    errno.EACCES: "name a file that you may write",
    errno.EPERM: "name a file that you may write",
    errno.EROFS: "name a file on another file system",
    errno.ENOSPC: "free space there, or name another file",
    errno.EDQUOT: "free space there, or name another file",
}


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends without error.

    A pipe or a device such as ``/dev/stdout`` is written to directly. A symbolic link
    is kept: the file that it points to is replaced. A missing folder is made.
    """
    target = Path(path)
    try:
        if target.is_file():
            target = target.resolve()
        if target.exists() and not (target.is_file() or target.is_dir()):
            with target.open("wb") as stream:
                yield stream
            return
        if not target.parent.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        # The mode is that of a new file, 0666 without the umask.
        with temporary.open("xb") as stream:
            try:
                yield stream
                stream.close()
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write the file: {error.strerror}",
            where=str(path),
            remedy=_WRITE_REMEDIES.get(error.errno or 0, "name another file"),
        ) from None
