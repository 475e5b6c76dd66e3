# SPDX-License-Identifier: MIT
"""Common options of the sub-commands of live control."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.live.settings import load_settings, misspelt_variables, settings_table

if TYPE_CHECKING:
    from penstock.live.settings import Settings

__all__ = ["LOG", "WHERE", "add_live_options", "live_settings", "say_waiting"]

#: Settings that locate the agent.
WHERE = ("folder",)
#: Settings of the log of a daemon.
LOG = ("log_format", "log_level")


def add_live_options(
    parser: argparse.ArgumentParser, only: Collection[str] | None = None
) -> None:
    """Add ``--settings FILE`` and a flag for every setting, or only for `only`."""
    parser.add_argument("--settings", metavar="FILE", help="file with settings (TOML)")
    for name, default, meaning, word in settings_table():
        if only is None or name in only:
            shown = f" (default: {default})" if default else ""
            parser.add_argument(
                f"--{name.replace('_', '-')}",
                dest=f"setting_{name}",
                metavar=word or name.rpartition("_")[2].upper(),
                help=f"{meaning}{shown}".replace("%", "%%"),
            )


def live_settings(arguments: argparse.Namespace) -> Settings:
    """Return the settings from command line, environment and file, in this order.

    Misspelt variables are reported on standard error, unless ``--quiet`` is given.
    """
    if not getattr(arguments, "quiet", False):
        for name, near in misspelt_variables(os.environ).items():
            sys.stderr.write(f"penstock: {name} is ignored; did you mean {near}?\n")
    flags = {
        name.removeprefix("setting_"): value
        for name, value in vars(arguments).items()
        if name.startswith("setting_")
    }
    return load_settings(flags, file=arguments.settings)


def say_waiting() -> None:
    """Tell a user at a terminal that the daemon is starting."""
    if sys.stderr.isatty():
        sys.stderr.write("penstock: waiting for a daemon that is starting\n")
