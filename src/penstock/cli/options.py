# SPDX-License-Identifier: MIT
"""Options that several sub-commands share, and the writing of ``--json``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from penstock.cli.files import (
    InputFile,
    OutputFile,
    OutputFolder,
    Word,
    expanded,
    option_name,
)
from penstock.errors import InputError
from penstock.units import parse_bandwidth, parse_whole

if TYPE_CHECKING:
    from penstock.experiments.runners.executors import Executor
    from penstock.experiments.source import Source

__all__ = [
    "add_draw_options",
    "add_executor_options",
    "add_folder_option",
    "add_jobs_option",
    "add_json_option",
    "add_settings_option",
    "add_source_options",
    "check_drawable",
    "distinct",
    "exclude",
    "exclude_workload",
    "executor_from",
    "natural",
    "positive",
    "positive_rate",
    "seed_of",
    "source_facts",
    "source_from",
    "write_json",
]

_DEFAULT_WORKLOAD = "synthetic"
_FIGURES = (".svg", ".png", ".pdf")


class _Labelled(Protocol):
    @property
    def label(self) -> str: ...


_Item = TypeVar("_Item", bound=_Labelled)


def add_source_options(parser: argparse.ArgumentParser, *, instances: int) -> None:
    """Add the choice of instances: files, or a workload, its keys and a seed."""
    parser.add_argument(
        "inputs",
        nargs="*",
        type=InputFile,
        default=[],
        metavar="INSTANCE",
        help="instance files (JSON), and folders of them",
    )
    parser.add_argument(
        "--workload",
        type=Word,
        metavar="NAME",
        help=f"draw instances of this workload (default: {_DEFAULT_WORKLOAD})",
    )
    add_settings_option(parser)
    add_draw_options(parser, instances)
    parser.set_defaults(default_instances=instances)


def add_draw_options(parser: argparse.ArgumentParser, instances: int) -> None:
    """Add ``--instances K`` and ``--seed S``, which are None by default."""
    parser.add_argument(
        "--instances",
        type=_instances,
        metavar="K",
        help=f"how many instances to draw (default: {instances})",
    )
    parser.add_argument(
        "--seed", type=natural, metavar="S", help="random seed (default: 1)"
    )


def add_settings_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--set KEY=VALUE``."""
    parser.add_argument(
        "--set",
        dest="workload_settings",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set a parameter of the workload; may be repeated; `penstock generate "
        "help` lists the parameters",
    )


def source_from(arguments: argparse.Namespace) -> Source:
    """Return the source of the instances that the command line names."""
    from penstock.experiments.source import Source
    from penstock.experiments.study import Point
    from penstock.workloads import get_workload

    if arguments.inputs:
        exclude_workload(arguments)
        source = Source.of_files(*expanded(arguments.inputs))
        for index in range(source.count):
            source.instance(index)
        return source
    workload = arguments.workload or _DEFAULT_WORKLOAD
    # Raises `InputError` for a wrong setting, e.g. one that is not KEY=VALUE.
    get_workload(workload, arguments.workload_settings)
    pairs = (setting.partition("=") for setting in arguments.workload_settings)
    point = Point(workload, tuple((key, value) for key, _, value in pairs))
    count = arguments.instances or arguments.default_instances
    return Source(point, count, seed_of(arguments))


def exclude_workload(arguments: argparse.Namespace) -> None:
    """Raise `InputError` if options of workloads are given beside files."""
    of_workloads = ("workload", "workload_settings", "instances", "seed")
    exclude(arguments, of_workloads, "an instance file")


def exclude(
    arguments: argparse.Namespace,
    options: Iterable[str],
    other: str,
    remedy: str = "give one or the other",
) -> None:
    """Raise `InputError` if one of `options` is given: `other` excludes them."""
    for option in options:
        value = getattr(arguments, option)
        if not (value is None or value is False or value == []):
            flag = option_name(option)
            raise InputError(f"{flag} cannot be used with {other}", remedy=remedy)


def distinct(
    kind: str, find: Callable[[str], _Item], names: Iterable[str]
) -> list[_Item]:
    """Return the item of every name; raise `InputError` if two items are the same."""
    items: dict[str, _Item] = {}
    for name in names:
        item = find(name)
        if item.label in items:
            raise InputError(f"{kind} {name!r} is given twice", remedy="leave one out")
        items[item.label] = item
    return list(items.values())


def source_facts(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the source of the instances as facts for the provenance."""
    if len(arguments.inputs) == 1:
        return {"instance": arguments.inputs[0]}
    if arguments.inputs:
        return {"instances": list(arguments.inputs)}
    return {
        "workload": arguments.workload or _DEFAULT_WORKLOAD,
        "settings": arguments.workload_settings,
        "seed": seed_of(arguments),
    }


def add_folder_option(parser: argparse.ArgumentParser) -> None:
    """Add ``-o DIR``."""
    parser.add_argument(
        *("-o", "--output"),
        type=OutputFolder,
        metavar="DIR",
        default="out",
        help="folder for the results (default: out)",
    )


def add_executor_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--jobs N`` and ``--dask ADDRESS``."""
    add_jobs_option(parser)
    parser.add_argument(
        "--dask",
        type=Word,
        metavar="ADDRESS",
        help="compute on Dask: address of a scheduler, `local`, or `slurm`",
    )


def add_jobs_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--jobs N``."""
    parser.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        default=len(os.sched_getaffinity(0)),
        help="number of worker processes (default: one per core)",
    )


def executor_from(arguments: argparse.Namespace) -> Executor:
    """Return the executor that the options choose.

    Raises `InputError` if Dask does not answer.
    """
    from penstock.experiments.runners.executors import DaskExecutor, local_executor

    if arguments.dask:
        cluster = DaskExecutor(arguments.dask, arguments.jobs)
        cluster.check()
        return cluster
    return local_executor(arguments.jobs)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--json FILE|-``."""
    parser.add_argument(
        "--json",
        type=OutputFile,
        metavar="FILE",
        help="write the result as JSON to this file; - is standard output",
    )


def write_json(document: Mapping[str, Any], path: str) -> None:
    """Write a document to standard output, or completely or not at all to a file."""
    import msgspec

    from penstock.experiments.output.provenance import printable
    from penstock.files import replacing

    data = msgspec.json.encode(printable(document))
    data = msgspec.json.format(data, indent=1) + b"\n"
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    with replacing(path) as stream:
        stream.write(data)


def check_drawable(*paths: str | None) -> None:
    """Raise `InputError` if the name of a figure does not end in a known format."""
    for path in paths:
        if path is not None and Path(path).suffix.lower() not in _FIGURES:
            raise InputError(
                f"cannot draw a {Path(path).suffix.lstrip('.')!r} file",
                where=path,
                remedy="use .svg, .png or .pdf",
            )


def positive(text: str) -> int:
    """Parse a whole number, at least 1."""
    return _whole(text, least=1)


def natural(text: str) -> int:
    """Parse a whole number, at least 0."""
    return _whole(text, least=0)


def _whole(text: str, *, least: int, most: int | None = None) -> int:
    try:
        return parse_whole(text, least=least, most=most)
    except InputError as error:
        raise argparse.ArgumentTypeError(error.what) from None


def _instances(text: str) -> int:
    """Parse a number of instances."""
    from penstock.experiments.study import MOST_INSTANCES

    return _whole(text, least=1, most=MOST_INSTANCES)


def seed_of(arguments: argparse.Namespace) -> int:
    """Return the given seed, or the default."""
    return 1 if arguments.seed is None else int(arguments.seed)


def positive_rate(text: str) -> float:
    """Parse a positive bandwidth (bytes/s) of the command line."""
    try:
        rate = parse_bandwidth(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not rate > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not positive")
    return rate
