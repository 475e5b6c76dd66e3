# SPDX-License-Identifier: MIT
"""The command ``penstock``: one file per sub-command.

A sub-command is a module with ``SUMMARY``, ``setup_parser(parser)`` and
``main(arguments) -> int``. What is slow to import is imported inside ``main``, so
that ``penstock --help`` and ``penstock policies`` answer at once.

Exit status: 0 done; 2 the user can mend it; 70 a bug of penstock; 130 stopped
with Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final, NoReturn

from penstock.errors import InternalError, PenstockError

__all__ = ["COMMANDS", "main"]

#: Sub-command -> module in this package, in the order in which help lists them.
COMMANDS: Final = {
    "compare": "compare",
    "generate": "generate",
    "policies": "policies",
    "bound": "bound",
    "place": "place",
    "reproduce": "reproduce",
    "study": "study",
    "serve": "serve",
    "run": "run",
    "ctl": "ctl",
    "top": "top",
    "mount": "mount",
    "check": "check",
    "bench": "bench",
    "drain": "drain",
    "replay": "replay",
}


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as all of penstock does."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    # A terminal that cannot show a sign shows another one; nothing fails for it.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    arguments = _build_parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except InternalError as error:
        return _complain(f"internal error: {error}", 70)
    except PenstockError as error:
        return _complain(str(error), 2)
    except KeyboardInterrupt:
        return _complain("stopped", 130)
    except OSError as error:
        # Nothing more can be written, nor flushed when Python exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 0  # The reader has gone (`| head`).
        return _complain(f"cannot write the output: {error.strerror or error}", 2)
    return status


def _build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="penstock",
        description="Simulate policies that share storage, exactly.",
    )
    parser.add_argument(
        "--version", action="version", version=f"penstock {version('penstock')}"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command: Any = importlib.import_module(f"{__name__}.{module}")
        child = commands.add_parser(
            name, help=command.SUMMARY, description=command.__doc__.split("\n\n")[0]
        )
        command.setup_parser(child)
        child.set_defaults(run=command.main)
    return parser


def _complain(message: str, status: int) -> int:
    sys.stderr.write(f"penstock: {message}\n")
    return status
