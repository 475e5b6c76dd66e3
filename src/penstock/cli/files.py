# SPDX-License-Identifier: MIT
"""Files and folders that a command line names, checked before any work.

An option says with ``type=`` what it names. `check_names` then looks at all of them at
once: nothing is lost after hours of work for a folder that is missing, nothing is
written over what is read, and no two results into one file.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from penstock.errors import InputError

__all__ = [
    "InputFile",
    "OutputFile",
    "OutputFolder",
    "Word",
    "check_file",
    "check_names",
    "make_folder",
    "option_name",
]

#: How the user writes an argument, where it is not -- and its name.
_FLAGS = {
    "allocations": "--allocation",
    "file": "FILE",
    "instance": "an instance file",
    "placements": "--placement",
    "problem": "PROBLEM",
    "program": "PROGRAM",
    "settings": "--set",
    "trace": "TRACE",
}


class Word(str):
    """A text that must not be empty."""

    __slots__ = ()


class InputFile(Word):
    """The name of a file that is read."""

    __slots__ = ()


class OutputFile(Word):
    """The name of a file that is written; "-" is standard output."""

    __slots__ = ()


class OutputFolder(Word):
    """The name of a folder that is made if it is not there."""

    __slots__ = ()


def option_name(dest: str) -> str:
    """Return how the user writes the argument that argparse calls `dest`."""
    return _FLAGS.get(dest, f"--{dest.replace('_', '-')}")


def check_names(arguments: argparse.Namespace) -> None:
    """Raise `InputError` now rather than after the work if a name cannot be used."""
    words = {k: v for k, v in vars(arguments).items() if isinstance(v, Word)}
    for dest, word in words.items():
        if not word:
            raise InputError("is empty", where=option_name(dest), remedy="name one")
        if isinstance(word, OutputFile) and word != "-":
            check_file(word)
        elif isinstance(word, OutputFolder) and word != "-":
            _check_text(word)
    _check_distinct(words.values())
    for dest, word in words.items():
        # Encoders take plain texts only.
        setattr(arguments, dest, str(word))


def make_folder(name: str | Path) -> Path:
    """Make a folder for results before they are computed, if it is not there."""
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot be made: {error.strerror}",
            where=str(path),
            remedy="name another folder",
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise InputError(
            "cannot be written", where=str(path), remedy="name another folder"
        )
    return path


def check_file(name: str) -> None:
    """Raise `InputError` if a file cannot be made."""
    path = Path(name)
    if path.is_dir():
        raise InputError("is a folder", where=name, remedy="name a file")
    if not path.parent.is_dir():
        raise InputError(
            f"there is no folder {path.parent}", where=name, remedy="make it first"
        )
    # A pipe or a device is written to; any other file is replaced in its folder.
    place = path if _is_special(path) else path.resolve().parent
    if not os.access(place, os.W_OK):
        raise InputError(
            f"{place} cannot be written", where=name, remedy="name another file"
        )


def _check_text(name: str) -> None:
    """Refuse a folder that not all libraries could open."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(
            "is no text in UTF-8", where=name, remedy="name another folder"
        ) from None


def _check_distinct(words: Iterable[Word]) -> None:
    """Refuse a file that is written twice, or read and written."""
    seen = {Path(w).resolve(): "read" for w in words if isinstance(w, InputFile)}
    for word in words:
        path = Path(word)
        if not isinstance(word, OutputFile) or word == "-" or _is_special(path):
            continue
        if path.resolve() in seen:
            raise InputError(
                f"is {seen[path.resolve()]} by this command already",
                where=word,
                remedy="name another file",
            )
        seen[path.resolve()] = "written"


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()
