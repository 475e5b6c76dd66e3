# SPDX-License-Identifier: MIT
"""The command ``penstock``: one file per sub-command.

A sub-command is a module with ``SUMMARY``, ``setup_parser(parser)`` and
``main(arguments) -> int``. Modules that are slow to import are imported inside
``main``, so that ``penstock --help`` and ``penstock policies`` answer at once.

Exit status: 0 success; 2 an error that the user can correct; 70 a bug of penstock, or
not enough memory; 130 stopped with Ctrl-C. For every status except 0, one line on
standard error gives the reason; ``PENSTOCK_TRACEBACK=1`` adds the traceback of a bug.
A simulation that is started with SIGINT ignored, as in a background
job of a script, keeps ignoring it: stop it with SIGTERM.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import select
import signal
import sys
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NoReturn

import penstock
from penstock.cli.files import InputFile, check_names
from penstock.errors import InternalError, MissingExtraError, PenstockError

__all__ = ["COMMANDS", "build_parser", "main"]

#: Sub-command -> module in this package, in the order in which help lists them.
COMMANDS: Final = {
    "compare": "simulation.compare",
    "generate": "simulation.generate",
    "policies": "simulation.policies",
    "new-policy": "simulation.new_policy",
    "bound": "simulation.bound",
    "place": "simulation.place",
    "import": "simulation.import_",
    "advise": "simulation.advise",
    "view": "simulation.view",
    "schema": "simulation.schema",
    "reproduce": "simulation.reproduce",
    "study": "simulation.study",
    "serve": "live.daemons.serve",
    "run": "live.run",
    "ctl": "live.ctl",
    "top": "live.top",
    "mount": "live.daemons.mount",
    "history": "live.history",
    "report": "live.report",
    "check": "live.check",
    "bench": "live.bench",
    "drain": "live.drain",
    "profile": "live.profile",
    "replay": "live.replay",
    "completion": "completion",
    "manual": "manual",
}

_STDOUT: Final = 1
_STDERR: Final = 2
#: Longest error message (characters).
_LONGEST: Final = 2000
#: Actions of ``penstock ctl`` that newcomers take for commands.
_ACTIONS: Final = ("status", "explain", "limit", "policy", "bandwidth", "on", "off")
#: Command or option -> the extra that has all that it needs, if that is not ``sim``.
_EXTRAS: Final = {
    "reproduce": "plots",
    "import": "import",
    "--plot": "plots",
    "--timeline": "plots",
    "--dask": "dask",
}
_GO_ELSEWHERE: Final = "change to another one with cd"


class _Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, as all of penstock does."""

    def unknown_arguments(self, words: Sequence[str]) -> NoReturn:
        """Report arguments that are not known; suggest the nearest option."""
        options = [word.split("=")[0] for word in words if word.startswith("-")]
        hints = [_hint(option, self._option_string_actions) for option in options]
        self.error(f"unrecognized arguments: {' '.join(words)}{''.join(hints[:1])}")

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            hint = _hint(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{error.message}{hint}") from None

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is not sys.stdout:
            super()._print_message(message, file)
            return
        # The method of argparse ignores errors, e.g. a full disk.
        file.write(message)
        file.flush()


def _hint(word: str, known: Iterable[str]) -> str:
    """Return a question that names the nearest known word; empty if none is near."""
    known = list(known)
    if word in _ACTIONS and "ctl" in known:
        return f"; did you mean ctl {word}?"
    close = get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    _open_streams()
    try:
        arguments = _arguments(argv)
        check_names(arguments)
        if arguments.run.__module__.startswith(f"{__name__}.simulation."):
            _keep_ctrl_c_ignored()
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _report("stopped", 130)
    except InternalError as error:
        return _report(f"internal error: {error}", 70)
    except PenstockError as error:
        return _report(str(error), 2)
    except OSError as error:
        return _report_system_error(error)
    except MemoryError as error:
        return _report_unexpected("not enough memory", error, "give smaller numbers")
    except Exception as error:  # noqa: BLE001 - the edge of the program
        if missing := _missing_extra(error, argv):
            return _report(str(missing), 2)
        kind = f"internal error: {type(error).__name__}"
        return _report_unexpected(kind, error, "please report it")
    return status


def _keep_ctrl_c_ignored() -> None:
    """Ignore SIGINT for good if this process was started so, as a background job.

    RATIONALE: when Polars is imported it installs a handler for SIGINT, also if SIGINT
    is ignored, and a signal during one of its calls then raises `KeyboardInterrupt`.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        return
    with suppress(ImportError):
        importlib.import_module("polars")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _missing_extra(
    error: Exception, argv: Sequence[str] | None
) -> MissingExtraError | None:
    """Return the error that names the extra, if one has the module that is missing."""
    words = sys.argv[1:] if argv is None else argv
    if not isinstance(error, ModuleNotFoundError):
        return None
    flags = [word.partition("=")[0] for word in words]
    needed = (_EXTRAS[flag] for flag in (*flags[1:], *flags[:1]) if flag in _EXTRAS)
    return MissingExtraError.of(
        error, where=words[0] if words else "", whole=next(needed, "sim")
    )


def _open_streams() -> None:
    """Replace closed standard streams (``>&-``) by streams that discard their text.

    RATIONALE: the next opened file would get the number of the closed stream, and
    would receive everything that is printed. Programs that penstock starts still find
    the stream closed.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(_STDOUT, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(_STDERR, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal cannot show is printed as "?".
            stream.reconfigure(errors="replace")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    words = sys.argv[1:] if argv is None else argv
    arguments, rest = build_parser(words[:1]).parse_known_args(words)
    if hasattr(arguments, "inputs") and not any(word[:1] == "-" for word in rest):
        # argparse ends a list of files at the first option between them.
        arguments.inputs, rest = [*arguments.inputs, *map(InputFile, rest)], []
    if rest:
        # `parse_args` would not name the sub-command in its message.
        arguments.parser.unknown_arguments(rest)
    return arguments


def _report_system_error(error: OSError) -> int:
    if isinstance(error, BrokenPipeError) and _is_unread():
        _silence_output()
        return 0  # The reader has gone (`| head`).
    if _is_working_directory_gone():
        return _report(f"the working directory is gone ({_GO_ELSEWHERE})", 2)
    if error.filename is not None:
        return _report(f"{os.fsdecode(error.filename)}: {error.strerror}", 2)
    _silence_output()
    return _report(f"cannot write the output: {error.strerror or error}", 2)


def _is_working_directory_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _is_unread() -> bool:
    """Return True if the other end of standard output is closed."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    return bool(poll.poll(0))


def _silence_output() -> None:
    """Discard all further output, also that which Python flushes at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_unexpected(what: str, error: Exception, remedy: str) -> int:
    if os.environ.get("PENSTOCK_TRACEBACK"):
        import traceback

        traceback.print_exception(error)
    reason = " ".join(str(error).split())
    advice = f"{remedy}; PENSTOCK_TRACEBACK=1 shows where"
    return _report(f"{what}{': ' if reason else ''}{reason} ({advice})", 70)


class _Version(argparse.Action):
    """Prints the version, which takes 30 ms to look up."""

    def __call__(
        self, parser: argparse.ArgumentParser, *_: object, **__: object
    ) -> NoReturn:
        sys.stdout.write(f"penstock {penstock.__version__}\n")
        sys.stdout.flush()
        parser.exit()


def build_parser(first: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of all sub-commands, or only of the one that `first` names.

    The modules of the others need not be imported, which makes every start faster.
    """
    parser = _Parser(
        prog="penstock",
        description="Simulate how applications share storage, and control live jobs "
        "with the same policies.",
    )
    parser.add_argument(
        "--version", action=_Version, nargs=0, help="show the version and exit"
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in [name for name in COMMANDS if name in first] or COMMANDS:
        module = COMMANDS[name]
        command: Any = importlib.import_module(f"{__name__}.{module}")
        child = commands.add_parser(
            name, help=command.SUMMARY, description=command.__doc__.split("\n\n")[0]
        )
        command.setup_parser(child)
        child.set_defaults(run=command.main, parser=child)
    return parser


def _report(message: str, status: int) -> int:
    """Print an error in one line, shortened if it quotes a whole file."""
    line = message.replace("\n", "\\n")
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
    sys.stderr.write(f"penstock: {line}\n")
    return status
