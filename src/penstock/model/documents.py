# SPDX-License-Identifier: MIT
"""What the file formats of penstock share: JSON in and out, errors with places.

An error in a file names its place, for example ``site.json: applications[3].nodes``.
"""

from __future__ import annotations

import codecs
import gzip
import json
import re
import stat
import tomllib
import zlib
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeGuard

import msgspec

from penstock.errors import InputError, UnknownNameError
from penstock.files import replacing
from penstock.model.formats import NAME, PHASES
from penstock.units import parse_bandwidth

__all__ = [
    "FORMAT",
    "check_format",
    "checked_fields",
    "inside",
    "is_comparison",
    "listed",
    "parsed",
    "parsed_name",
    "parsed_phases",
    "parsed_profile",
    "read_document",
    "refuse_other_kind",
    "top_fields",
    "write_document",
]

#: Version of the file format, the value of the key "penstock".
FORMAT: Final = 1

#: Kind of file -> keys that no other kind has, and the command that reads it.
_KINDS: Final = {
    "an instance": ({"platform", "window"}, "penstock compare reads it, as JSON"),
    "a placement problem": (
        {"resources"},
        "penstock place and penstock compare --problem read it, as JSON",
    ),
    "a study": ({"sweep"}, "penstock study reads it, as TOML"),
    "a result of penstock": (
        {"penstock", "provenance"},
        "only penstock compare reads results, and only its own",
    ),
}
#: What a Darshan log has at byte 8, in one byte order or the other.
_DARSHAN: Final = (6567223).to_bytes(8, "little")
_MARKS: Final = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: A JSON string, to be skipped, or a constant that JSON forbids.
_CONSTANT: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(-?Infinity|NaN)', re.DOTALL)

_NAME: Final = re.compile(NAME)


# --- Files ------------------------------------------------------------------------


def read_document(path: str | Path) -> object:
    """Return the content of a JSON file (``.json``, or ``.json.gz``)."""
    try:
        data = _content(Path(path))
        _refuse_binary(Path(path), data)
        if str(path).endswith(".gz"):
            data = gzip.decompress(data)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"cannot read the file: {error}",
            where=str(path),
            remedy="the file is damaged or incomplete; copy or write it again",
        ) from None
    except OSError as error:
        raise InputError(
            f"cannot read the file: {error.strerror or error}",
            where=str(path),
            remedy="check its name and its permissions",
        ) from None
    try:
        return _decoded(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        with inside(f"{path}: "):
            _refuse_toml(data)
        raise InputError(
            f"not JSON: {error}", where=str(path), remedy="correct the syntax"
        ) from None


def _refuse_binary(path: Path, data: bytes) -> None:
    """Raise `InputError` if the file is a Darshan log or a Parquet table."""
    magic = {data[8:16], data[8:16][::-1]}
    if _DARSHAN in magic or path.suffix == ".darshan":
        raise InputError(
            "this is a Darshan log: what one program did, not an instance",
            where=str(path),
            remedy="penstock import makes an instance of logs; penstock replay repeats "
            "a log with DXT records",
        )
    if data.startswith(b"PAR1"):
        raise InputError(
            "this is a table in Parquet, as penstock study and reproduce write them",
            where=str(path),
            remedy="give instance files, or results of penstock compare --json",
        )


def _decoded(data: bytes) -> object:
    """Return the decoded JSON; raise `ValueError` with the place if it is invalid."""
    if data.startswith(_MARKS):
        raise ValueError("it begins with a byte-order mark: save it as UTF-8 without")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ValueError("it is not text in UTF-8") from None
    if not text.strip():
        raise ValueError("the file is empty")

    def refuse(word: str) -> None:
        first = next(match for match in _CONSTANT.finditer(text) if match[1])
        raise ValueError(f"{word} is not a number: {_place(text, first.start())}")

    try:
        # json checks what msgspec does not report: the line, and duplicate keys.
        json.loads(text, object_pairs_hook=_refuse_duplicates, parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg}: {_place(text, error.pos)}") from None
    return msgspec.json.decode(data)


def _place(text: str, position: int) -> str:
    """Return line and column of a character, both counted from 1."""
    line = text.count("\n", 0, position) + 1
    return f"line {line}, column {position - text.rfind(chr(10), 0, position)}"


def _refuse_toml(data: bytes) -> None:
    """Raise `InputError` if the data are a file in TOML: a study."""
    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError):
        return
    refuse_other_kind(document, set())


def _refuse_duplicates(fields: list[tuple[str, object]]) -> None:
    """Raise `ValueError` if a key occurs twice: decoders silently take the last one."""
    names = [name for name, _ in fields]
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {duplicate!r} occurs twice")


def _content(path: Path) -> bytes:
    """Return the bytes of a file or pipe.

    Devices are refused, because reading one may never end.
    """
    mode = path.stat().st_mode
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
        raise InputError("this is a device", where=str(path), remedy="name a file")
    return path.read_bytes()


def write_document(document: object, path: str | Path) -> None:
    """Write a JSON file; an existing file is replaced only by a complete one."""
    data = msgspec.json.encode(document)
    if str(path).endswith(".gz"):
        data = gzip.compress(data, mtime=0)
    with replacing(path) as stream:
        stream.write(data)


# --- Places -----------------------------------------------------------------------


@contextmanager
def inside(where: str) -> Iterator[None]:
    """Prefix the place `where` to every `InputError` that the block raises."""
    try:
        yield
    except InputError as error:
        raise error.at(where) from None


def is_comparison(document: object) -> TypeGuard[dict[str, Any]]:
    """Return True if a document is a result that ``penstock compare`` wrote."""
    if not isinstance(document, dict) or "provenance" not in document:
        return False
    instances = document.get("instances")
    if not isinstance(instances, list):
        return False
    # One without instances is a result, too: whoever reads it says what is wrong.
    return not instances or (
        isinstance(instances[0], dict) and "policies" in instances[0]
    )


def refuse_other_kind(document: object, known: AbstractSet[str]) -> None:
    """Raise `InputError` if the document is another kind of file.

    `known` are the keys of the kind of file that is expected.
    """
    keys = document.keys() if isinstance(document, dict) else set()
    for kind, (typical, remedy) in _KINDS.items():
        if typical <= keys and not typical <= known:
            raise InputError(f"this is {kind}", remedy=remedy)


def top_fields(document: object, required: AbstractSet[str]) -> dict[str, Any]:
    """Return a document as a dictionary; raise `InputError` for an unknown format."""
    refuse_other_kind(document, required)
    # First: another format has other keys.
    check_format(document)
    return checked_fields(document, {"penstock", *required})


def check_format(document: object) -> None:
    """Raise `InputError` if a document names a format that is not known."""
    version = document.get("penstock", FORMAT) if isinstance(document, dict) else FORMAT
    if type(version) is not int or version != FORMAT:
        raise InputError(
            f"format {version!r} is not known",
            where="penstock",
            remedy=f"this version reads format {FORMAT}",
        )


def checked_fields(
    value: object,
    required: AbstractSet[str],
    optional: AbstractSet[str] = frozenset(),
) -> dict[str, Any]:
    """Return `value` as a dictionary; raise if a key is missing or unknown."""
    if not isinstance(value, dict):
        raise InputError("not an object", remedy="write {...}")
    for key in sorted(value.keys() - required - optional):
        raise UnknownNameError("key", key, required | optional)
    for key in sorted(required - value.keys()):
        remedy = f'add "penstock": {FORMAT}' if key == "penstock" else "add it"
        raise InputError(f"key {key!r} is missing", remedy=remedy)
    return value


def listed(value: object, where: str) -> list[Any]:
    """Return `value` as a list; raise `InputError` at `where` if it is not one."""
    if not isinstance(value, list):
        raise InputError("not a list", where=where, remedy="write [...]")
    return value


def parsed(parse: Callable[[object], float], value: object, where: str) -> float:
    """Return `value` as a number in base units; an error names the place `where`."""
    with inside(where):
        return parse(value)


# --- Applications -----------------------------------------------------------------


def parsed_name(value: object) -> str:
    """Return the name of an application."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InputError(
            f"{value!r} is not a name",
            where="name",
            remedy="write a text without control characters",
        )
    return value


def parsed_phases(value: object) -> list[tuple[str, float]]:
    """Return the phases of an application, in seconds and bytes."""
    return [_phase(p, f"phases[{n}]") for n, p in enumerate(listed(value, "phases"))]


def parsed_profile(value: object) -> list[float]:
    """Return the bandwidth of an application on 1, 2, ... targets (bytes/s)."""
    entries = listed(value, "bandwidth")
    if not entries:
        raise InputError(
            "the list of bandwidths is empty",
            where="bandwidth",
            remedy="write the bandwidth on 1, 2, ... targets, or leave it out",
        )
    return [_measured(item, f"bandwidth[{n}]") for n, item in enumerate(entries)]


def _phase(item: object, where: str) -> tuple[str, float]:
    if not isinstance(item, list) or len(item) != 2:
        raise InputError(
            f"{item!r} is not a phase",
            where=where,
            remedy='write ["work", seconds] or ["io", bytes]',
        )
    kind, amount = item
    if not isinstance(kind, str) or kind not in PHASES:
        raise UnknownNameError("kind of phase", str(kind), PHASES, where=where)
    _, parse = PHASES[kind]
    return kind, parsed(parse, amount, where)


def _measured(item: object, where: str) -> float:
    """Return one entry of a profile (bytes/s).

    A missing entry is refused: the entries after it would be ambiguous.
    """
    if item is None:
        raise InputError(
            "the bandwidth is missing",
            where=where,
            remedy="interpolate between its neighbours, or end the list before it",
        )
    value = parsed(parse_bandwidth, item, where)
    if not value > 0:
        raise InputError(
            f"{item!r} is not a positive bandwidth",
            where=where,
            remedy="every entry must be positive; leave out unknown entries",
        )
    return value
