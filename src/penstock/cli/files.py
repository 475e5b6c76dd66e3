# SPDX-License-Identifier: MIT
"""Check the files and folders that a command line names, before any work.

The ``type=`` of an option says whether it names an input file, an output file or a
folder. `check_names` then checks all names at once: a file that cannot be written is
reported at the start and not after hours of work, no input file is overwritten, and no
two results go into one file. The folder of an `OutputFile` must exist: it may be
misspelt. What ``-o`` names is made with its folders: an `OutputFolder`, a `MadeFile`,
and the folder of an instance that ``penstock generate`` or ``import`` writes
(`penstock.files.replacing`).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from penstock.errors import InputError

__all__ = [
    "InputFile",
    "MadeFile",
    "OutputFile",
    "OutputFolder",
    "Word",
    "check_file",
    "check_names",
    "expanded",
    "filled_folder",
    "is_instance_name",
    "make_folder",
    "option_name",
]

#: How the user writes an argument, if it is not ``--`` and its name.
_FLAGS = {
    "allocations": "--allocation",
    "file": "FILE",
    "inputs": "an instance file",
    "placements": "--placement",
    "problem": "PROBLEM",
    "program": "PROGRAM",
    "trace": "TRACE",
    "workload_settings": "--set",
}


#: Ends of the names of instance files.
_INSTANCES = (".json", ".json.gz")


class Word(str):
    """A text that must not be empty."""

    __slots__ = ()


class InputFile(Word):
    """The name of a file to read."""

    __slots__ = ()


class OutputFile(Word):
    """The name of a file to write; "-" is standard output."""

    __slots__ = ()


class MadeFile(OutputFile):
    """The name of a file to write; folders that are missing are made."""

    __slots__ = ()


class OutputFolder(Word):
    """The name of a folder to write to; it is made if it does not exist."""

    __slots__ = ()


def option_name(dest: str) -> str:
    """Return the argument that argparse calls `dest` as the user writes it."""
    return _FLAGS.get(dest, f"--{dest.replace('_', '-')}")


def check_names(arguments: argparse.Namespace) -> None:
    """Raise `InputError` if a file or folder of the command line cannot be used."""
    words = [
        (dest, word)
        for dest, value in vars(arguments).items()
        for word in (value if isinstance(value, list) else [value])
        if isinstance(word, Word)
    ]
    for dest, word in words:
        if not word:
            raise InputError(
                "the value is empty", where=option_name(dest), remedy="give a name"
            )
        if isinstance(word, OutputFile) and word != "-":
            check_file(word)
            if not isinstance(word, MadeFile):
                _check_folder(word)
        elif isinstance(word, OutputFolder) and word != "-":
            _check_text(word)
    _check_distinct([word for _, word in words])
    # Some encoders accept only `str` itself.
    for dest, value in list(vars(arguments).items()):
        if isinstance(value, Word):
            setattr(arguments, dest, str(value))
        elif isinstance(value, list):
            plain = [str(item) if isinstance(item, Word) else item for item in value]
            setattr(arguments, dest, plain)


def is_instance_name(name: str) -> bool:
    """Return True if a file of this name may hold an instance."""
    return name.endswith(_INSTANCES) and not name.startswith(".")


def expanded(names: Iterable[str]) -> list[str]:
    """Return the files, with every folder replaced by its JSON files in their order.

    Raises `InputError` for a folder without such files, and for several files of which
    one is a pipe: it could be read only once.
    """
    files: list[str] = []
    for name in names:
        folder = Path(name)
        if not folder.is_dir():
            files.append(name)
            continue
        found = sorted(
            str(path) for path in folder.iterdir() if is_instance_name(path.name)
        )
        if not found:
            raise InputError(
                "this folder has no files *.json or *.json.gz",
                where=name,
                remedy="name the folder that holds the instance files",
            )
        files += found
    for name in files:
        if len(files) > 1 and _is_special(Path(name)):
            raise InputError(
                "a pipe cannot be read beside other files",
                where=name,
                remedy="write it to a file first",
            )
    return files


def make_folder(name: str | Path) -> Path:
    """Make the folder for results, before they are computed."""
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder: {error.strerror}",
            where=str(path),
            remedy="name another folder",
        ) from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise InputError(
            "cannot write to this folder",
            where=str(path),
            remedy="name another folder",
        )
    return path


@contextmanager
def filled_folder(name: str | Path) -> Iterator[Path]:
    """Make the folder for results; if nothing could be written there, remove it."""
    is_new = not Path(name).exists()
    folder = make_folder(name)
    try:
        yield folder
    finally:
        if is_new:
            # Fails if the folder holds results.
            with suppress(OSError):
                folder.rmdir()


def check_file(name: str) -> None:
    """Raise `InputError` if a file cannot be written."""
    path = Path(name)
    if path.is_dir():
        raise InputError("this is a folder", where=name, remedy="name a file")
    # A pipe or a device is opened; any other file is replaced in its folder.
    place = path if _is_special(path) else _existing_folder(path.resolve().parent)
    if not os.access(place, os.W_OK) or place.is_file():
        raise InputError(
            f"cannot write to {place}", where=name, remedy="name another file"
        )


def _check_folder(name: str) -> None:
    """Raise `InputError` if the folder of a file does not exist."""
    folder = Path(name).parent
    if not folder.exists():
        raise InputError(
            f"there is no folder {folder}",
            where=name,
            remedy="make it, or correct the name",
        )


def _existing_folder(path: Path) -> Path:
    """Return `path`, or the lowest folder above it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _check_text(name: str) -> None:
    """Refuse the name of a folder that some libraries cannot open."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(
            "the name is not valid UTF-8", where=name, remedy="name another folder"
        ) from None


def _check_distinct(words: Iterable[Word]) -> None:
    """Raise `InputError` if a file is written twice, or both read and written."""
    read = [Path(word) for word in words if isinstance(word, InputFile)]
    read += [path for folder in read if folder.is_dir() for path in folder.iterdir()]
    seen = {path.resolve(): "reads" for path in read}
    for word in words:
        path = Path(word)
        if not isinstance(word, OutputFile) or word == "-" or _is_special(path):
            continue
        if path.resolve() in seen:
            raise InputError(
                f"this command already {seen[path.resolve()]} this file",
                where=word,
                remedy="name another file",
            )
        seen[path.resolve()] = "writes"


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()
