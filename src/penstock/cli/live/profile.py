# SPDX-License-Identifier: MIT
"""Measure the bandwidth on 1, 2, ... storage targets: ``penstock profile TARGETS``.

The last line of the output is a setting of ``penstock serve``, which then knows b(n)
when it gives jobs their targets.
"""

from __future__ import annotations

import argparse
import sys

from penstock.cli.files import Word
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
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Measure, and print a table and the setting."""
    from penstock.live.staging.partitioner import parsed_targets
    from penstock.live.staging.profile import ProfileTask, measure_profile

    try:
        volume_bytes = parse_volume(arguments.volume)
    except InputError as error:
        raise error.at("--volume: ") from None
    driver, root, names = parsed_targets(arguments.targets)
    task = ProfileTask(round(volume_bytes), arguments.streams, arguments.repeats)
    rates = measure_profile(driver, root, names, task)
    if arguments.json:
        document = {"penstock": 1, "targets": list(names), "bandwidth": rates}
        write_json(document, arguments.json)
    if arguments.json != "-":
        sys.stdout.write(_text(rates))
    return 0


def _text(rates: list[float]) -> str:
    """Return the table, and the line for the file of settings."""
    shown = [format_bandwidth(rate) for rate in rates]
    rows = [f"{number:7d}  {rate}" for number, rate in enumerate(shown, 1)]
    setting = f'target_bandwidths = "{", ".join(shown)}"'
    return "\n".join(["targets  bandwidth", *rows, "", setting, ""])
