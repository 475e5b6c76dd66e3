# SPDX-License-Identifier: MIT
"""Control the I/O of jobs on this node and on all nodes whose agents connect.

Root is not needed: without ``users = all`` the daemon controls the jobs of the user who
starts it.
"""

from __future__ import annotations

import argparse
import logging
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.files import Word
from penstock.cli.live.daemons.logs import start_logging
from penstock.cli.live.options import add_live_options, live_settings
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.live.settings import Settings

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "control the I/O of live jobs"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock serve``: a flag for every setting."""
    add_live_options(parser)
    only = parser.add_mutually_exclusive_group()
    only.add_argument(
        "--make-keys",
        type=Word,
        metavar="FOLDER",
        help="create keys for controller and agents in FOLDER (with --node: for that "
        "node), and exit",
    )
    only.add_argument(
        "--make-slurm",
        type=Word,
        metavar="FOLDER",
        help="create prolog, epilog and task prolog for Slurm in FOLDER, and exit",
    )
    only.add_argument(
        "--make-grafana",
        type=Word,
        metavar="FOLDER",
        help="create a dashboard for Grafana and alerts for Prometheus in FOLDER, and "
        "exit",
    )
    only.add_argument(
        "--make-web-token",
        type=Word,
        metavar="USER",
        help="write a token of USER, or of `operator`, to the file of --web-token, "
        "print it, and exit",
    )


def main(arguments: argparse.Namespace) -> int:
    """Serve until stopped."""
    import asyncio

    from penstock.cli.live.daemons.web_process import web_process
    from penstock.live.setting_checks import check_together
    from penstock.live.wire.folder import locked_folder

    settings = live_settings(arguments)
    start_logging(settings, sys.stderr)
    if arguments.make_keys:
        from penstock.live.wire.curve import make_keys

        make_keys(arguments.make_keys, settings.node)
        return 0
    if arguments.make_slurm:
        from penstock.live.node.slurm import make_scripts

        make_scripts(Path(arguments.make_slurm), settings.home)
        return 0
    if arguments.make_grafana:
        from penstock.web.grafana import make_grafana

        for path in make_grafana(Path(arguments.make_grafana)):
            sys.stdout.write(f"{path}\n")
        return 0
    if arguments.make_web_token:
        return _make_web_token(settings.web_token, arguments.make_web_token)
    check_together(settings)
    # Before the imports, which take a second: a private daemon must not answer for
    # this one meanwhile.
    with locked_folder(settings.home, temporary=settings.linger > 0.0):
        from penstock.live.daemon.server import serve

        beside = web_process(settings)
        ready = partial(_log_ready, settings)
        asyncio.run(serve(settings, ready=ready, beside=beside))
    return 0


def _log_ready(settings: Settings) -> None:
    log = logging.getLogger("penstock.serve")
    log.info("ready at %s", settings.socket)
    if settings.web:
        from penstock.cli.live.daemons.web_process import page_address

        log.info("web page at %s", page_address(settings.web))


def _make_web_token(file: str, user: str) -> int:
    """Write a token of a user to a file, and print it."""
    from penstock.web.identity.tokens import make_token

    if not file:
        raise InputError(
            "there is no file for the token",
            where="--make-web-token",
            remedy="name one with --web-token FILE",
        )
    sys.stdout.write(f"{make_token(Path(file), user)}\n")
    return 0
