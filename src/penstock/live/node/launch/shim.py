# SPDX-License-Identifier: MIT
"""The environment variables that make a program load the preload library."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from penstock.errors import InputError
from penstock.live.staging.rules import Staging
from penstock.native.files import shim_path

__all__ = ["shim_environment", "staged_environment", "unstaged_environment"]

#: Most prefixes, and room for their list, in the library (native/shim/identity.c).
_MAX_PREFIXES: Final = 16
_LIST_BYTES: Final = 1024


def shim_environment(
    page: Path | None,
    prefixes: Iterable[Path],
    inherited: Mapping[str, str] | None = None,
    *,
    staging: Staging | None = None,
    library: Path | None = None,
) -> dict[str, str]:
    """Return the environment in which a program is controlled.

    Parameters
    ----------
    page
        The page of the job; None: nothing is paced.
    prefixes
        Files and folders to control; symbolic links are resolved here.
    inherited
        The environment to extend; by default the one of this process.
    staging
        How to stage writes; None: writes are not staged.
    library
        The preload library; None: the one of this installation.

    Raises
    ------
    InputError
        If there is no library, or a path contains a separator.
    """
    environment = dict(os.environ if inherited is None else inherited)
    word = _checked_path(library or shim_path(), " :\t\n", "the path of the library")
    preloaded = environment.get("LD_PRELOAD", "").replace(":", " ").split()
    others = [other for other in preloaded if other != word]
    environment["LD_PRELOAD"] = ":".join([word, *others])
    environment.pop("PENSTOCK_PAGE", None)
    if page is not None:
        environment["PENSTOCK_PAGE"] = str(page.absolute())
    environment["PENSTOCK_CONTROLLED"] = _prefix_list(prefixes)
    if staging is not None:
        staging.prepare()
        environment |= staging.environment()
    return environment


def staged_environment(
    environment: Mapping[str, str], staging: Staging
) -> dict[str, str]:
    """Return `environment` with staging added.

    If nothing is controlled yet, the files in the working directory are staged.
    """
    staged = dict(environment)
    if "PENSTOCK_CONTROLLED" not in staged:
        staged = shim_environment(None, [Path.cwd()], staged)
    staging.prepare()
    return staged | staging.environment()


def unstaged_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` without the variables of staging."""
    variables = Staging(Path("/")).environment()
    return {key: environment[key] for key in environment if key not in variables}


def _prefix_list(prefixes: Iterable[Path]) -> str:
    words = [
        _checked_path(path.resolve(), ":", "a controlled prefix") for path in prefixes
    ]
    text = ":".join(words)
    if len(words) > _MAX_PREFIXES or len(os.fsencode(text)) >= _LIST_BYTES:
        raise InputError(
            f"{len(words)} controlled prefixes of {len(os.fsencode(text))} bytes",
            remedy=f"give at most {_MAX_PREFIXES}, of {_LIST_BYTES - 1} bytes together",
        )
    return text


def _checked_path(path: Path, forbidden: str, kind: str) -> str:
    text = str(path)
    if any(sign in text for sign in forbidden):
        raise InputError(
            f"{kind} may not contain {forbidden.strip() or forbidden!r} or blanks",
            where=text,
            remedy="use another path",
        )
    return text
