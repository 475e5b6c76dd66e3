# SPDX-License-Identifier: MIT
"""Measure the bandwidth on 1, 2, ... storage targets: ``penstock profile TARGETS``.

The result is kept beside the histories of jobs, where ``penstock serve`` with the same
targets reads it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from penstock.cli.files import Word
from penstock.cli.live.options import add_live_options, live_settings
from penstock.cli.options import add_json_option, positive, write_json
from penstock.errors import InputError
from penstock.units import format_bandwidth, parse_volume

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "measure the bandwidth on 1, 2, ... storage targets"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock profile``."""
    parser.add_argument(
        "targets",
        type=Word,
        metavar="TARGETS",
        help="DRIVER:ROOT:TARGET,... as in the setting `targets` of penstock serve",
    )
    parser.add_argument(
        "--volume",
        default="256 MiB",
        metavar="V",
        help="what is written for one measurement (default 256 MiB); more than the "
        "memory of the servers absorbs",
    )
    parser.add_argument(
        "--streams",
        type=positive,
        default=8,
        metavar="N",
        help="number of files that are written at the same time (default 8)",
    )
    parser.add_argument(
        "--repeats",
        type=positive,
        default=3,
        metavar="N",
        help="number of measurements, of which the median counts (default 3)",
    )
    add_live_options(parser, ("folder", "state"))
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure, keep the result, and print a table."""
    from penstock.live.staging.drivers import parsed_targets
    from penstock.live.staging.kept_profiles import keep_profile, kept_profile
    from penstock.live.staging.profile import ProfileTask, measure_profile
    from penstock.live.wire.folder import own_folder

    try:
        volume_bytes = parse_volume(arguments.volume)
    except InputError as error:
        raise error.at("--volume: ") from None
    if volume_bytes < 1.0:
        raise InputError(
            f"--volume: {arguments.volume!r} is nothing to write",
            remedy="give for example 256 MiB",
        )
    settings = live_settings(arguments)
    driver, root, names = parsed_targets(arguments.targets)
    if not settings.state:
        own_folder(settings.home)
    kept_profile(settings.profiles_file, arguments.targets)  # refuse a damaged file now
    task = ProfileTask(round(volume_bytes), arguments.streams, arguments.repeats)
    rates = measure_profile(driver, root, names, task)
    keep_profile(settings.profiles_file, arguments.targets, rates)
    if arguments.json:
        document = {"penstock": 1, "targets": list(names), "bandwidth": rates}
        write_json(document, arguments.json)
    if arguments.json != "-":
        sys.stdout.write(_text(rates, settings.profiles_file))
    return 0


def _text(rates: list[float], path: Path) -> str:
    """Return the table, and where it is kept."""
    rows = [
        f"{number:7d}  {format_bandwidth(rate)}" for number, rate in enumerate(rates, 1)
    ]
    return "\n".join(["targets  bandwidth", *rows, "", f"kept in {path}", ""])
