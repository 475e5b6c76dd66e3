# SPDX-License-Identifier: MIT
"""Start a program whose I/O is controlled: ``penstock run -- PROGRAM ARGUMENTS``.

The exit status is the program's. If control is not possible the program runs without
it, and only ``--verbose`` says why; it also says that a private daemon was started.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.live.options import WHERE, add_live_options, live_settings
from penstock.cli.options import positive
from penstock.errors import InputError
from penstock.units import parse_volume

if TYPE_CHECKING:
    from penstock.live.staging.rules import Staging

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "start a program whose I/O is controlled"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock run``."""
    parser.add_argument(
        "--job",
        metavar="NAME",
        help="the job that the program is a part of (default: the job of the batch "
        "system, else one of its own)",
    )
    parser.add_argument(
        "--nodes", type=positive, default=0, metavar="N", help="nodes of the whole job"
    )
    parser.add_argument(
        "--hint-volume",
        metavar="V",
        help='what each I/O phase of the job moves, e.g. "2 GiB"',
    )
    parser.add_argument(
        "--stage",
        metavar="FOLDER",
        help="stage its writes in journals there, whatever a controller says",
    )
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="say so if there is no control, or a private daemon is started for it",
    )
    add_live_options(parser, WHERE)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...")


def main(arguments: argparse.Namespace) -> int:
    """Become the program."""
    from penstock.live.node.run import become
    from penstock.live.node.shim import unstaged_environment

    command = _command(arguments)
    volume = _volume(arguments.hint_volume)
    environment = dict(os.environ)
    for part, add in (("control", _controlled), ("staging", _staged)):
        try:
            environment = add(environment, arguments, volume)
        except Exception as error:  # noqa: BLE001 - the program starts, come what may
            _say(arguments, f"without {part}: {error}")
            if part == "staging":
                environment = unstaged_environment(environment)
    become(command, environment)


def _command(arguments: argparse.Namespace) -> list[str]:
    command: list[str] = arguments.command[arguments.command[:1] == ["--"] :]
    if not command:
        raise InputError("no program to run", remedy="penstock run -- PROGRAM")
    return command


def _say(arguments: argparse.Namespace, what: str) -> None:
    if arguments.verbose:
        sys.stderr.write(f"penstock: {what}\n")
        sys.stderr.flush()


def _controlled(
    environment: dict[str, str], arguments: argparse.Namespace, volume: float
) -> dict[str, str]:
    """Return the environment that puts the program under control."""
    from penstock.live.node.run import controlled_environment

    settings = live_settings(arguments)
    # The number of a process comes back, and with it the past of the job.
    own = f"process-{os.getpid()}-{int(time.time())}"
    job = arguments.job or environment.get("SLURM_JOB_ID") or own
    environment = controlled_environment(
        settings,
        job,
        nodes=arguments.nodes,
        volume=volume,
        say=lambda what: _say(arguments, what),
    )
    if arguments.verbose:
        # What is no program is said when it is started.
        with suppress(Exception):
            _examine(arguments)
    return environment


def _examine(arguments: argparse.Namespace) -> None:
    """Say why control does not reach the program, if its file shows that."""
    from penstock.live.node.check import Controllability, check

    report = check(_command(arguments)[0])
    if report.verdict is Controllability.NOT:
        _say(arguments, f"without control: {report.findings[0].what}")


def _staged(
    environment: dict[str, str], arguments: argparse.Namespace, _volume: float
) -> dict[str, str]:
    """Return the environment that has writes staged, if that is wanted."""
    from penstock.live.node.shim import staged_environment

    staging = _staging(arguments.stage)
    return staged_environment(environment, staging) if staging else environment


def _staging(folder: str | None) -> Staging | None:
    """Return how writes are staged, if the user wants that or the environment."""
    from penstock.live.staging.rules import Staging

    environment = dict(os.environ)
    if folder:
        environment["PENSTOCK_STAGING"] = str(Path(folder).absolute())
        environment["PENSTOCK_STAGING_WHEN"] = "always"
    return Staging.of(environment)


def _volume(text: str | None) -> float:
    if text is None:
        return 0.0
    try:
        volume = parse_volume(text)
    except InputError as error:
        raise error.at("--hint-volume: ") from None
    if volume <= 0.0:
        raise InputError(f"{text!r} is not a positive volume", where="--hint-volume")
    return volume
