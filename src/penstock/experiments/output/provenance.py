# SPDX-License-Identifier: MIT
"""What made a result: every result file says it.

Where the results went and who computed them (`-o`, ``--jobs``, ``--dask``) is left out:
it makes no difference to them, so that their bytes do not depend on it either.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from penstock import __version__

__all__ = ["command_line", "printable", "provenance"]

#: Options with a value that a result does not depend on.
_INDIFFERENT: Final = ("-o", "--output", "--jobs", "--dask")


def command_line() -> str:
    """Return the command that runs, as one could type it again."""
    program = Path(sys.argv[0]).name
    name = program if program != "__main__.py" else "penstock"
    command: str = printable(shlex.join([name, *_decisive(sys.argv[1:])]))
    return command


def provenance(**facts: Any) -> dict[str, Any]:
    """Return version, command and `facts` (seed, workload, ...)."""
    said = {key: printable(value) for key, value in facts.items()}
    return {"version": __version__, "command": command_line(), **said}


def printable(value: Any) -> Any:
    """Return a value whose texts any file can hold.

    The name of a file may be any bytes; Python keeps those that are not UTF-8 as
    surrogates, which no encoder takes.
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
    """Yield the arguments that a result depends on."""
    rest = iter(arguments)
    for argument in rest:
        if argument in _INDIFFERENT:
            next(rest, None)
        elif not _has_its_value(argument):
            yield argument


def _has_its_value(argument: str) -> bool:
    """Tell ``--jobs=2`` and ``-oDIR``."""
    short = argument.startswith("-o") and not argument.startswith("--")
    return short or argument.partition("=")[0] in _INDIFFERENT
