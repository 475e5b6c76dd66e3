# SPDX-License-Identifier: MIT
"""The environment in which a program loads the preload library."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from penstock.errors import InputError
from penstock.live.staging.rules import Staging
from penstock.native.build import shim_path

__all__ = ["shim_environment", "staged_environment", "unstaged_environment"]

#: What the library has room for (native/shim/identity.c).
_PREFIXES: Final = 16
_PREFIX_BYTES: Final = 1024


def shim_environment(
    page: Path | None,
    prefixes: Iterable[Path],
    inherited: Mapping[str, str] | None = None,
    *,
    staging: Staging | None = None,
) -> dict[str, str]:
    """Return the environment in which a program is controlled.

    Parameters
    ----------
    page
        The job's page; None: nothing is paced.
    prefixes
        Files and folders that are controlled; symbolic links are resolved here.
    inherited
        The environment to extend; by default this process's own.
    staging
        How writes are staged; by default they are not.
    """
    environment = dict(os.environ if inherited is None else inherited)
    library = _word(shim_path(), " :\t\n", "a library")
    preloaded = environment.get("LD_PRELOAD", "").replace(":", " ").split()
    others = [word for word in preloaded if word != library]
    environment["LD_PRELOAD"] = ":".join([library, *others])
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
    """Return an environment in which writes are staged, whether controlled or not.

    Without control, the files in the working directory are staged.
    """
    made = dict(environment)
    if "PENSTOCK_CONTROLLED" not in made:
        made = shim_environment(None, [Path.cwd()], made)
    staging.prepare()
    return made | staging.environment()


def unstaged_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which nothing is staged."""
    variables = Staging(Path("/")).environment()
    return {key: environment[key] for key in environment if key not in variables}


def _prefix_list(prefixes: Iterable[Path]) -> str:
    words = [_word(path.resolve(), ":", "a controlled prefix") for path in prefixes]
    text = ":".join(words)
    if len(words) > _PREFIXES or len(os.fsencode(text)) >= _PREFIX_BYTES:
        raise InputError(
            f"{len(words)} controlled prefixes of {len(os.fsencode(text))} bytes",
            remedy=f"give at most {_PREFIXES}, of {_PREFIX_BYTES - 1} bytes together",
        )
    return text


def _word(path: Path, forbidden: str, kind: str) -> str:
    text = str(path)
    if any(sign in text for sign in forbidden):
        raise InputError(
            f"{kind} may not contain {forbidden.strip() or forbidden!r} or blanks",
            where=text,
            remedy="use another path",
        )
    return text
