# SPDX-License-Identifier: MIT
"""Draw instances of a workload and write them as files.

OUTPUT is a file if its name ends in .json or .json.gz, standard output if it is -, and
else a folder. Several instances need a folder. Folders that do not exist are made.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.files import Word, check_file, filled_folder
from penstock.cli.options import (
    add_draw_options,
    add_settings_option,
    exclude,
    seed_of,
)
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.model import Instance

__all__ = ["SUMMARY", "main", "setup_parser"]

#: Ends of the names of files, not of folders.
_ENDINGS = (".json", ".json.gz")
SUMMARY = "draw instances of a workload and write them as files"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock generate``."""
    parser.add_argument(
        "workload",
        metavar="WORKLOAD",
        help="name of the workload; `help` lists all workloads and their parameters",
    )
    parser.add_argument(
        *("-o", "--output"),
        type=Word,
        metavar="OUTPUT",
        default="-",
        help="file to write (*.json or *.json.gz), or folder (default: -, standard "
        "output)",
    )
    add_settings_option(parser)
    add_draw_options(parser, instances=1)


def main(arguments: argparse.Namespace) -> int:
    """Write the instances."""
    from penstock.workloads import get_workload

    if arguments.workload == "help":
        exclude(arguments, ("workload_settings",), "help", "leave it out")
        _print_workloads()
        return 0
    workload = get_workload(arguments.workload, arguments.workload_settings)
    count, seed = arguments.instances or 1, seed_of(arguments)
    if _is_file(arguments.output):
        if count > 1:
            raise InputError(
                f"{count} instances do not fit into one file",
                where="--output",
                remedy="name a folder",
            )
        if arguments.output != "-":
            check_file(arguments.output)
        _write(workload.instance(seed, 0), arguments.output)
        return 0
    with filled_folder(arguments.output) as folder:
        for index in range(count):
            path = folder / f"{arguments.workload}-s{seed}-{index:04d}.json"
            _write(workload.instance(seed, index), str(path))
    return 0


def _is_file(output: str) -> bool:
    """Return True if one file is named: by its ending, a device, or - ."""
    path = Path(output)
    is_device = path.exists() and not path.is_file() and not path.is_dir()
    return output == "-" or output.endswith(_ENDINGS) or is_device


def _write(instance: Instance, path: str) -> None:
    if path == "-":
        import msgspec

        from penstock.model import instance_to_document

        document = instance_to_document(instance)
        sys.stdout.buffer.write(msgspec.json.encode(document) + b"\n")
        return
    from penstock.model import write_instance

    write_instance(instance, path)


def _print_workloads() -> None:
    """Print every workload with its parameters."""
    from penstock.workloads import WORKLOADS
    from penstock.workloads.parameters import describe

    sys.stdout.write("[...]: symbol of the parameter in the paper\n")
    for name, workload in WORKLOADS.items():
        summary = (sys.modules[workload.__module__].__doc__ or "").split("\n")[0]
        sys.stdout.write(f"{name}: {summary}\n")
        for line in describe(workload):
            sys.stdout.write(f"  {line}\n")
