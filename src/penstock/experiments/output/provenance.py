# SPDX-License-Identifier: MIT
"""Provenance: every result file says which version and command made it.

Options that do not change the results (``-o``, ``--jobs``, ``--dask``) are left out, so
that the bytes of a result file do not depend on them.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from penstock import __version__

__all__ = ["command_line", "printable", "provenance"]

#: Options that take a value and do not change the results.
_INDIFFERENT: Final = ("-o", "--output", "--jobs", "--dask")


def command_line() -> str:
    """Return the running command as the user can type it again."""
    program = Path(sys.argv[0]).name
    name = program if program != "__main__.py" else "penstock"
    command: str = printable(shlex.join([name, *_decisive(sys.argv[1:])]))
    return command


def provenance(**facts: Any) -> dict[str, Any]:
    """Return version, command and `facts` (seed, workload, ...)."""
    texts = {key: printable(value) for key, value in facts.items()}
    return {"version": __version__, "command": command_line(), **texts}


def printable(value: Any) -> Any:
    """Return a value whose texts can be encoded as UTF-8.

    The name of a file may hold any bytes. Python represents bytes that are not UTF-8
    as surrogates, which cannot be encoded; here they become escapes.
    """
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogateescape")
        return data.decode("utf-8", "backslashreplace")
    if isinstance(value, (list, tuple)):
        return [printable(item) for item in value]
    if isinstance(value, dict):
        return {printable(key): printable(item) for key, item in value.items()}
    return value


def _decisive(arguments: Iterable[str]) -> Iterator[str]:
    """Yield the arguments that can change a result."""
    rest = iter(arguments)
    for argument in rest:
        if argument in _INDIFFERENT:
            next(rest, None)
        elif not _has_its_value(argument):
            yield argument


def _has_its_value(argument: str) -> bool:
    """Return True for an option with its value, as in ``--jobs=2`` and ``-oDIR``."""
    short = argument.startswith("-o") and not argument.startswith("--")
    return short or argument.partition("=")[0] in _INDIFFERENT
