# SPDX-License-Identifier: MIT
"""Start a program whose I/O is controlled: ``penstock run -- PROGRAM ARGUMENTS``.

The exit status is that of the program. If control is not possible, the program runs
without control, and one line on standard error says why.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from penstock.cli.live.options import WHERE, add_live_options, live_settings
from penstock.cli.options import positive
from penstock.errors import InputError, UnavailableError
from penstock.units import parse_time, parse_volume

if TYPE_CHECKING:
    from penstock.live.staging.rules import Staging

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "start a program whose I/O is controlled"

#: Part of a program's name that names a job (characters).
_LONGEST_NAME = 40
#: Largest priority that a message can carry.
_LARGEST_PRIORITY = 1e9


class _Hints(NamedTuple):
    """What the user says about the operations of a job; 0: nothing."""

    volume_bytes: float
    """Volume of each operation."""
    work_s: float
    """Time between two operations."""


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock run``."""
    _add_job_options(parser)
    _add_control_options(parser)
    add_live_options(parser, WHERE)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...")


def _add_job_options(parser: argparse.ArgumentParser) -> None:
    """Add what is known of the job."""
    parser.add_argument(
        "--job",
        metavar="NAME",
        help="the job that the program belongs to (default: the job of the batch "
        "system, else a job of its own)",
    )
    parser.add_argument(
        "--nodes",
        type=positive,
        default=0,
        metavar="N",
        help="number of nodes of the job",
    )
    parser.add_argument(
        "--hint-volume",
        metavar="V",
        help='volume of each I/O phase of the job, e.g. "2 GiB"',
    )
    parser.add_argument(
        "--hint-work",
        metavar="T",
        help='time for which the job computes between two I/O phases, e.g. "10 min"; '
        "with the volume it decides about its storage targets (setting `placement`)",
    )
    parser.add_argument(
        "--priority",
        type=_priority,
        default=0.0,
        metavar="N",
        help="priority of the job among those that drain, with a strategy that has "
        "flush=priority; the highest goes first (default 0; above 0 only for root and "
        "the user who runs the daemon)",
    )


def _add_control_options(parser: argparse.ArgumentParser) -> None:
    """Add how to start the program, and what to report."""
    parser.add_argument(
        "--stage",
        metavar="FOLDER",
        help="stage all writes in journals in this folder, even without a controller",
    )
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="do not report that control or staging is not possible",
    )
    parser.add_argument(
        "--require-control",
        action="store_true",
        help="do not start the program if its I/O cannot be controlled",
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="also report that a private daemon was started",
    )


def _priority(text: str) -> float:
    """Parse a priority of the command line."""
    try:
        priority = float(text)
    except ValueError:
        priority = nan
    if not abs(priority) <= _LARGEST_PRIORITY:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number such as 10 or -5")
    return priority


def main(arguments: argparse.Namespace) -> int:
    """Execute the program in place of this process."""
    from penstock.live.node.launch.execute import execute_program, inherited_environment
    from penstock.live.node.launch.shim import unstaged_environment

    command = _command(arguments)
    hints = _hints(arguments)
    environment = inherited_environment()
    for part, add in (("control", _controlled), ("staging", _staged)):
        try:
            environment = add(environment, arguments, hints)
        # A user's job must not fail because of us: whatever goes wrong here, even a
        # bug or a damaged installation, the program starts without control.
        except Exception as error:
            if part == "control" and arguments.require_control:
                raise _refused(str(error)) from error
            _report_absence(arguments, part, str(error))
            if part == "staging":
                environment = unstaged_environment(environment)
    execute_program(command, environment)


def _report_absence(arguments: argparse.Namespace, part: str, reason: str) -> None:
    """Print one line that says why the program runs without control or staging."""
    if not arguments.quiet:
        _print(f"without {part}: {reason} (--quiet hides this line)")


def _refused(reason: str) -> InputError:
    return InputError(
        f"the program cannot be controlled: {reason}",
        where="--require-control",
        remedy="leave the option out to start the program without control",
    )


def _command(arguments: argparse.Namespace) -> list[str]:
    command: list[str] = arguments.command[arguments.command[:1] == ["--"] :]
    if not command:
        raise InputError(
            "no program to run", remedy="give one: penstock run -- PROGRAM"
        )
    return command


def _print(text: str) -> None:
    sys.stderr.write(f"penstock: {text}\n")
    sys.stderr.flush()


def _say(arguments: argparse.Namespace, text: str, *, is_wait: bool) -> None:
    """Print a message if the user wants it, or waits for it at a terminal."""
    waits = is_wait and not arguments.quiet and sys.stderr.isatty()
    if arguments.verbose or waits:
        _print(text)


def _controlled(
    environment: dict[str, str], arguments: argparse.Namespace, hints: _Hints
) -> dict[str, str]:
    """Return the environment in which the program is controlled."""
    from penstock.live.node.launch.check import refusal
    from penstock.live.node.launch.run import JobClaims, controlled_environment

    settings = live_settings(arguments)
    claims = JobClaims(
        arguments.nodes, hints.volume_bytes, arguments.priority, hints.work_s
    )
    job_name = (
        arguments.job
        or environment.get("SLURM_JOB_ID")
        or _own_name(_command(arguments)[0])
    )
    controlled = controlled_environment(
        settings,
        job_name,
        claims,
        inherited=environment,
        say=partial(_say, arguments),
    )
    refused = None
    # If the program does not exist, `execute_program` prints that.
    with suppress(InputError, OSError):
        refused = refusal(_command(arguments)[0])
    if refused is not None:
        reason = f"{refused.what} ({refused.remedy})"
        if arguments.require_control:
            raise UnavailableError(reason)
        # Programs that it starts may be controlled, so the environment stays.
        _report_absence(arguments, "control", reason)
    return controlled


def _own_name(program: str) -> str:
    """Return a name for a job that nobody has named: its program and its process.

    With the time, because process ids are reused: a new job must not inherit the
    history of an old one.
    """
    base = os.fsencode(Path(program).name).decode(errors="replace")
    shown = "".join(sign if sign.isprintable() else "?" for sign in base)
    return f"{shown[:_LONGEST_NAME] or 'program'}-{os.getpid()}-{int(time.time())}"


def _staged(
    environment: dict[str, str], arguments: argparse.Namespace, _hints: _Hints
) -> dict[str, str]:
    """Return the environment in which writes are staged, if requested."""
    from penstock.live.node.launch.shim import staged_environment

    staging = _staging_options(arguments.stage)
    if staging is None:
        return environment
    is_new = arguments.stage is not None and not staging.folder.exists()
    staged = staged_environment(environment, staging)
    if is_new and not arguments.quiet:
        _print(f"made the folder {arguments.stage} for journals")
    return staged


def _staging_options(folder: str | None) -> Staging | None:
    """Return how to stage writes; None if no option or variable requests it."""
    from penstock.live.staging.rules import Staging

    environment = dict(os.environ)
    if folder:
        environment["PENSTOCK_STAGING"] = str(Path(folder).absolute())
        environment["PENSTOCK_STAGING_WHEN"] = "always"
    return Staging.of(environment)


def _hints(arguments: argparse.Namespace) -> _Hints:
    return _Hints(
        _positive(arguments.hint_volume, "--hint-volume", parse_volume, "10 GB"),
        _positive(arguments.hint_work, "--hint-work", parse_time, "10 min"),
    )


def _positive(
    text: str | None, option: str, parse: Callable[[str], float], example: str
) -> float:
    """Return the value of an option; 0 if it is not given."""
    if text is None:
        return 0.0
    try:
        value = parse(text)
    except InputError as error:
        raise error.at(f"{option}: ") from None
    if value <= 0.0:
        raise InputError(
            f"{text!r} is not positive",
            where=option,
            remedy=f'give a value such as "{example}"',
        )
    return value
