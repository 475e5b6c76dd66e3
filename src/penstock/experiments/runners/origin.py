# SPDX-License-Identifier: MIT
"""The origin of a folder of results: the study, the version, and the code.

Finished pieces are valid for one origin only. The version number does not change with
every edit, but an edit of a policy, the engine, a workload or a metric may change rows.
So a digest of all this source code is part of the origin. Code that only shows results
(drawings, claims, pages) counts for those studies alone that are declared there: a
corrected sentence of a claim must not cost an hour of computing.
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
from penstock.files import replacing

__all__ = ["Origin", "origin_of", "showing_digest", "source_digest"]

#: Folders of penstock that no row depends on; `tests/unit/test_layers.py` checks this.
_UNRELATED: Final = frozenset(
    {
        *("cli", "live", "mount", "bench", "native", "program", "advice", "api"),
        *("web", "__pycache__"),
    }
)
#: Folders and files that show results. Only a study whose class is declared in one of
#: them can depend on them.
_SHOWING: Final = (
    "papers/",
    "experiments/output/",
    "experiments/check_digest.py",
    "experiments/claims.py",
    "experiments/reproduction.py",
    "experiments/resampling.py",
)
_RECORD: Final = "study.json"
_PAPERS: Final = "penstock.papers."


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the rows of a study come from."""

    version: str
    digest: str
    """Of the study's declaration."""
    code: str
    """Digest of the source code that computes the rows."""
    study: dict[str, Any]

    @property
    def key(self) -> str:
        """A text that differs between origins."""
        return f"{self.version} {self.digest} {self.code}"

    def accepts(self, folder: Path) -> bool:
        """Return True if `folder` has no results, or results of this origin.

        Return False if they are of the same study and version, but of other code.
        Raise `InputError` if they are of another study or version.
        """
        record = folder / _RECORD
        if not record.exists():
            return True
        recorded = _read(record)
        if recorded.get("version") != self.version:
            known = recorded.get("version", "(unknown)")
            what = f"penstock {known}; this is {self.version}"
        elif recorded.get("digest") != self.digest:
            what = "another study, or of another scale"
        else:
            return bool(recorded.get("code") == self.code)
        raise InputError(
            f"holds results of {what}",
            where=str(folder),
            remedy="name another folder, or remove this one",
        )

    def sign(self, folder: Path) -> None:
        """Write this origin into `folder`."""
        with replacing(folder / _RECORD) as stream:
            stream.write(msgspec.json.encode(self))


def origin_of(study: Declaration) -> Origin:
    """Return the origin of results that are computed now."""
    return Origin(__version__, study.digest(), _code_digest(study), asdict(study))


@cache
def source_digest(root: Path = Path(penstock.__file__).parent) -> str:
    """Return a digest of penstock's files, code and data, that can change a row.

    It is computed once per process: the loaded code does not change.
    """
    files = _files(root)
    return _digest((n, files[n]) for n in files if not n.startswith(_SHOWING))


@cache
def showing_digest(root: Path = Path(penstock.__file__).parent) -> str:
    """Return a digest of the code that declares figures and shows results."""
    files = _files(root)
    return _digest((n, files[n]) for n in files if n.startswith(_SHOWING))


def _files(root: Path) -> dict[str, Path]:
    """Return penstock's files of code and data by name, sorted."""
    files = (path for path in root.rglob("*") if path.suffix in {".py", ".csv"})
    parts = {path.relative_to(root).as_posix(): path for path in files}
    return {name: parts[name] for name in sorted(parts) if not _is_unrelated(name)}


def _is_unrelated(name: str) -> bool:
    return not _UNRELATED.isdisjoint(name.split("/"))


def _code_digest(study: Declaration) -> str:
    """Return a digest of penstock's code and of the study's plug-ins from elsewhere.

    Files that such a plug-in imports are not part of the digest.
    """
    files = set()
    for function in study.foreign_code():
        with suppress(TypeError):
            files.add(inspect.getsourcefile(getattr(function, "py_func", function)))
    code = source_digest()
    if any(kind.__module__.startswith(_PAPERS) for kind in type(study).__mro__):
        code += showing_digest()
    foreign = _digest(("", Path(file)) for file in sorted(filter(None, files)))
    return hashlib.sha256((code + foreign).encode()).hexdigest()


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
    """Return the origin that a folder records; nothing if it cannot be decoded."""
    try:
        return msgspec.json.decode(record.read_bytes(), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
