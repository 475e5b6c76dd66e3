# SPDX-License-Identifier: MIT
"""What a folder of results comes from: a study, a version, and the code that decides.

Finished pieces are good for one origin alone. The version does not tell two states of
the code apart, and a changed policy, engine, workload or metric changes rows without
a word; so the text of all of them is part of the origin.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

import penstock
from penstock import __version__
from penstock.errors import InputError
from penstock.experiments.study import Declaration
from penstock.model import replacing

__all__ = ["Origin", "origin_of", "source_digest"]

#: Parts of penstock that no row depends on: `tests/unit/test_layers.py`.
_ASIDE: Final = frozenset(
    {"cli", "live", "mount", "bench", "native", "program", "__pycache__"}
)
_RECORD: Final = "study.json"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the rows of a study come from."""

    version: str
    digest: str
    """Of the study's declaration."""
    code: str
    """Digest of the text that decides what the rows are."""
    study: dict[str, Any]

    @property
    def key(self) -> str:
        """Name it in a few characters; another origin has another."""
        return f"{self.version} {self.digest} {self.code}"

    def accepts(self, folder: Path) -> bool:
        """Tell whether results in `folder`, if any, are of this origin.

        False: they are of the same study and version, but of other code. Refuse a
        folder that is for something else.
        """
        record = folder / _RECORD
        if not record.exists():
            return True
        theirs = _read(record)
        if theirs.get("version") != self.version:
            known = theirs.get("version", "(unknown)")
            what = f"penstock {known}; this is {self.version}"
        elif theirs.get("digest") != self.digest:
            what = "another study, or of another scale"
        else:
            return bool(theirs.get("code") == self.code)
        raise InputError(
            f"holds results of {what}",
            where=str(folder),
            remedy="name another folder, or remove this one",
        )

    def sign(self, folder: Path) -> None:
        """Write down what `folder` is for."""
        with replacing(folder / _RECORD) as stream:
            stream.write(msgspec.json.encode(self))


def origin_of(study: Declaration) -> Origin:
    """Return the origin of what would be computed now."""
    return Origin(__version__, study.digest(), _code_digest(study), asdict(study))


@cache
def source_digest(root: Path = Path(penstock.__file__).parent) -> str:
    """Return a digest of penstock's own files that can change a row, data too.

    Looked at once per process, whose code stays what it is.
    """
    files = (path for path in root.rglob("*") if path.suffix in {".py", ".csv"})
    parts = {path.relative_to(root).as_posix(): path for path in files}
    kept = {name: path for name, path in parts.items() if not _is_aside(name)}
    return _digest((name, kept[name]) for name in sorted(kept))


def _is_aside(name: str) -> bool:
    return not _ASIDE.isdisjoint(name.split("/"))


def _code_digest(study: Declaration) -> str:
    """Return a digest of penstock's own code and of the study's foreign algorithms.

    What a foreign file imports is not looked at.
    """
    files = set()
    for function in study.foreign_code():
        with suppress(TypeError):
            files.add(inspect.getsourcefile(getattr(function, "py_func", function)))
    foreign = _digest(("", Path(file)) for file in sorted(filter(None, files)))
    return hashlib.sha256((source_digest() + foreign).encode()).hexdigest()


def _digest(files: Iterable[tuple[str, Path]]) -> str:
    """Return a SHA-256 of the names and texts of files."""
    digest = hashlib.sha256()
    for name, path in files:
        text = b""
        with suppress(OSError):
            text = path.read_bytes()
        digest.update(f"{name} {len(text)}\n".encode() + text)
    return digest.hexdigest()


def _read(record: Path) -> dict[str, Any]:
    """Return what a folder says of itself, nothing if that cannot be read."""
    try:
        return msgspec.json.decode(record.read_bytes(), type=dict[str, Any])
    except msgspec.MsgspecError:
        return {}
