# SPDX-License-Identifier: MIT
"""Control the I/O of jobs on this node and on all nodes whose agents connect.

Root is not needed: without ``users = all`` the daemon controls the jobs of the user who
starts it.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from penstock.cli.live.logs import start_logging
from penstock.cli.live.options import add_live_options, live_settings

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "control the I/O of live jobs"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock serve``: a flag for every setting."""
    add_live_options(parser)
    only = parser.add_mutually_exclusive_group()
    only.add_argument(
        "--make-keys",
        metavar="FOLDER",
        help="create keys for controller and agents in FOLDER (with --node: for that "
        "node), and exit",
    )
    only.add_argument(
        "--make-slurm",
        metavar="FOLDER",
        help="create prolog, epilog and task prolog for Slurm in FOLDER, and exit",
    )


def main(arguments: argparse.Namespace) -> int:
    """Serve until stopped."""
    import asyncio

    from penstock.live.settings import check_together
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
    check_together(settings)
    # Before the imports, which take a second: a private daemon must not answer for
    # this one meanwhile.
    with locked_folder(settings.home, temporary=settings.linger > 0.0):
        from penstock.live.daemon.server import serve

        asyncio.run(serve(settings, ready=lambda: _log_ready(str(settings.socket))))
    return 0


def _log_ready(path: str) -> None:
    logging.getLogger("penstock.serve").info("ready at %s", path)
