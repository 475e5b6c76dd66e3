# SPDX-License-Identifier: MIT
"""Write a package with a policy of your own: policy, test and entry point.

The policy is a copy of the template; change its rule. The tests of the package pass
from the start. Existing files are never overwritten.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

import penstock
from penstock.cli.files import OutputFolder, make_folder
from penstock.cli.simulation.policy_skeleton import skeleton
from penstock.errors import InputError

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "write a package with a policy of your own: policy, test, entry point"

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST: Final = 40


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock new-policy``."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help="name of the policy: lower-case words with hyphens, e.g. most-nodes",
    )
    parser.add_argument(
        *("-o", "--output"),
        type=OutputFolder,
        metavar="DIR",
        help="folder to make (default: penstock-NAME)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Write the package and say what to do next."""
    name = arguments.name
    _check_name(name)
    folder = Path(arguments.output or f"penstock-{name}")
    template = Path(penstock.__file__).parent / "policies" / "_template.py"
    files = skeleton(name, template.read_text(encoding="utf-8"))
    _write(folder, files)
    sys.stdout.write(
        f"wrote {folder}: {', '.join(files)}\n"
        f"next: cd {folder}\n"
        f"      pip install -e '.[test]'\n"
        f"      python -m pytest\n"
        f"      penstock compare --policy {name}\n"
    )
    return 0


def _check_name(name: str) -> None:
    """Raise `InputError` if no new policy can have this name."""
    from penstock.policies import POLICIES

    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise InputError(
            f"{name!r} is not a name for a policy",
            where="NAME",
            remedy="write lower-case words of letters and digits with hyphens, at most "
            f"{_LONGEST} characters, e.g. most-nodes",
        )
    if name in POLICIES or name == "help":
        raise InputError(
            f"{name!r} is taken by penstock itself",
            where="NAME",
            remedy="choose another name",
        )


def _write(folder: Path, files: dict[str, str]) -> None:
    """Write `files` into a new folder; the folder appears only when complete."""
    _check_free(folder)
    parent = make_folder(folder.absolute().parent)
    private = Path(tempfile.mkdtemp(dir=parent, prefix=f".{folder.name}."))
    # A folder inside: it gets the permissions of a new folder.
    draft = private / folder.name
    try:
        draft.mkdir()
        for name, text in files.items():
            (draft / name).write_text(text, encoding="utf-8")
        try:
            # Replaces an empty folder, and fails for any other.
            draft.rename(folder)
        except OSError:
            _check_free(folder)
            raise
    except OSError as error:
        raise InputError(
            f"cannot write the package: {error.strerror}",
            where=str(folder),
            remedy="free space there, or name another folder with -o DIR",
        ) from None
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _check_free(folder: Path) -> None:
    """Raise `InputError` if the name is taken by a file or a folder with content."""
    if folder.resolve() == Path.cwd():
        raise InputError(
            "this is the current folder",
            where=str(folder),
            remedy="name a folder to make with -o DIR",
        )
    taken = folder.exists() or folder.is_symlink()
    if taken and (not folder.is_dir() or folder.is_symlink() or any(folder.iterdir())):
        raise InputError(
            "this exists already; nothing was written",
            where=str(folder),
            remedy="name another folder with -o DIR",
        )
