# SPDX-License-Identifier: MIT
"""Make an instance of Darshan logs, job records and other traces.

SOURCE is a file or a folder. A folder stands for all files below it.
"""

from __future__ import annotations

import argparse
import sys
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.files import InputFile, Word, check_file, make_folder
from penstock.cli.options import (
    add_jobs_option,
    add_json_option,
    natural,
    positive,
    positive_rate,
    write_json,
)
from penstock.cli.progress import work_bar
from penstock.cli.tables import format_table
from penstock.errors import InputError
from penstock.units import (
    counted,
    format_bandwidth,
    format_time,
    format_volume,
    parse_time,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.advice.importing.importer import Imported, ImportOptions
    from penstock.advice.importing.instances import ImportedJob
    from penstock.advice.logs.record import Skipped
    from penstock.model import Instance

__all__ = [
    "SUMMARY",
    "add_import_options",
    "import_options",
    "main",
    "report_skipped",
    "setup_parser",
]

SUMMARY = "make an instance of Darshan logs, job records and other traces"

#: `penstock.advice.importing.sources.FORMATS`, which would be slow to import.
_FORMATS = ("auto", "darshan", "slurm", "swf", "recorder", "tmio", "history", "csv")
#: Number of jobs that the table shows, and of files named for one reason.
_SHOWN_JOBS = 40
_SHOWN_FILES = 5
#: Number of reasons that are named.
_SHOWN_REASONS = 10
_FILES = (".json", ".json.gz")
_MOST_MEMBERS = 10_000


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock import``."""
    parser.add_argument(
        "inputs",
        nargs="+",
        type=InputFile,
        metavar="SOURCE",
        help="logs, and folders of them",
    )
    add_import_options(parser)
    parser.add_argument(
        *("-o", "--output"),
        type=Word,
        metavar="FILE",
        help="write the instance to this file; with --ensemble, a folder",
    )
    parser.add_argument(
        "--ensemble",
        type=_members,
        metavar="N",
        help="also draw instances that agree with the logs as well, N in all",
    )
    parser.add_argument(
        "--seed",
        type=natural,
        default=1,
        metavar="S",
        help="random seed of the ensemble (default: 1)",
    )
    add_json_option(parser)


def add_import_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how logs are read."""
    parser.add_argument(
        "--format",
        choices=_FORMATS,
        help="format of the logs (default: auto, decided for each file)",
    )
    for name, what in (
        ("bandwidth", "the storage (default: the highest rate in the logs)"),
        ("node-bandwidth", "a compute node (default: each job's own rate is its cap)"),
    ):
        parser.add_argument(
            f"--{name}", type=positive_rate, metavar="RATE", help=f"bandwidth of {what}"
        )
    parser.add_argument(
        "--gap",
        type=_gap,
        metavar="TIME",
        help="time without I/O that ends an operation (default: 50 ms)",
    )
    parser.add_argument(
        "--io-fraction",
        type=_fraction,
        metavar="F",
        help="part of its time that a job spends in I/O if the log does not say "
        "(default: 0.1)",
    )
    parser.add_argument(
        "--periods",
        action="store_true",
        help="find the period of each job with FTIO (package ftio-hpc)",
    )
    parser.add_argument(
        "--align",
        action="store_true",
        help="let all jobs begin together, whatever their logs say",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse everything if a log, or a line of it, cannot be imported",
    )
    add_jobs_option(parser)


def import_options(
    arguments: argparse.Namespace, journal: Path | None = None
) -> ImportOptions:
    """Return the options of an import from the command line."""
    from penstock.advice.importing.importer import ImportOptions
    from penstock.advice.importing.instances import Assumptions

    return ImportOptions(
        assumptions=Assumptions(
            bandwidth=arguments.bandwidth,
            node_bandwidth=arguments.node_bandwidth,
            align=arguments.align,
            **_given(io_fraction=arguments.io_fraction),
        ),
        strict=arguments.strict,
        periods=arguments.periods,
        workers=arguments.jobs,
        journal=journal,
        **_given(format=arguments.format, gap_s=arguments.gap),
    )


def _given(**values: Any) -> dict[str, Any]:
    """Return the options that the command line names; the others keep defaults."""
    return {name: value for name, value in values.items() if value is not None}


def main(arguments: argparse.Namespace) -> int:
    """Import the logs; write the instances; print a row for every job."""
    from penstock.advice.importing.importer import import_logs

    _check_output(arguments)
    journal = Path(f"{arguments.output}.partial") if arguments.output else None
    with work_bar("reading logs") as (show, _):
        imported = import_logs(
            arguments.inputs,
            import_options(arguments, journal),
            lambda done, total: show(done, total, ""),
        )
    members = []
    if arguments.ensemble:
        members = imported.ensemble(arguments.ensemble, arguments.seed)
    if arguments.output:
        _write_instances(imported.instance, members, arguments)
    if arguments.json:
        write_json(_document(imported, members, arguments), arguments.json)
    report_skipped(imported.skipped)
    if arguments.json != "-":
        sys.stdout.write(_text(imported))
        if not (arguments.output or arguments.json):
            sys.stdout.write("The instance was not kept; -o FILE writes it.\n")
    return 0


def _check_output(arguments: argparse.Namespace) -> None:
    """Refuse an output that cannot be written, before any log is read."""
    if not arguments.output:
        return
    if arguments.ensemble:
        if arguments.output.endswith(_FILES):
            raise InputError(
                "an ensemble does not fit into one file",
                where="--output",
                remedy="name a folder",
            )
        make_folder(arguments.output)
    else:
        check_file(arguments.output)


def _write_instances(
    instance: Instance, members: Sequence[Instance], arguments: argparse.Namespace
) -> None:
    from penstock.model import write_instance

    if not members:
        write_instance(instance, arguments.output)
    for number, member in enumerate(members):
        name = f"import-s{arguments.seed}-{number:04d}.json"
        write_instance(member, Path(arguments.output) / name)


def _document(
    imported: Imported, members: Sequence[Instance], arguments: argparse.Namespace
) -> dict[str, Any]:
    from penstock.experiments.output.provenance import provenance
    from penstock.model import instance_to_document

    gap_s = import_options(arguments).gap_s
    facts: dict[str, Any] = {"sources": arguments.inputs, "gap_s": gap_s}
    document = imported.document() | {"provenance": provenance(**facts)}
    if members:
        document["ensemble"] = {
            "seed": arguments.seed,
            "instances": [instance_to_document(member) for member in members],
        }
    return document


# --- Text -----------------------------------------------------------------------------


def _text(imported: Imported) -> str:
    header = [
        "job",
        "detail",
        "nodes",
        "operations",
        "bytes",
        "I/O in log",
        "in instance",
    ]
    shown = imported.jobs[:_SHOWN_JOBS]
    lines = format_table([header, *(_row(job) for job in shown)], left=2)
    if len(imported.jobs) > len(shown):
        lines += f"... and {len(imported.jobs) - len(shown)} more jobs\n"
    platform = imported.instance.platform
    lines += (
        f"{counted(len(imported.jobs), 'job')} in "
        f"{format_time(imported.span_s)}, bandwidth "
        f"{format_bandwidth(platform.bandwidth)}, I/O pressure "
        f"{imported.pressure:.3f}\n"
    )
    lines += "".join(f"assumed: {note}\n" for note in imported.notes)
    return lines + "".join(_job_notes(shown))


def _row(job: ImportedJob) -> list[str]:
    in_log = "" if job.io_seconds_log is None else format_time(job.io_seconds_log)
    return [
        job.name,
        job.detail,
        str(job.nodes),
        str(job.operations),
        format_volume(job.bytes_instance),
        in_log,
        format_time(job.io_seconds_instance),
    ]


def _job_notes(jobs: Sequence[ImportedJob]) -> list[str]:
    """Return each note once, with the jobs that have it."""
    places: dict[str, list[str]] = {}
    for job in jobs:
        for note in job.notes:
            places.setdefault(note, []).append(job.name)
    return [f"{_listed(names)}: {note}\n" for note, names in places.items()]


def _listed(names: Sequence[str]) -> str:
    """Return the first names and the number of the others."""
    more = len(names) - _SHOWN_FILES
    listed = ", ".join(names[:_SHOWN_FILES])
    return f"{listed} and {more} more" if more > 0 else listed


def report_skipped(skipped: Sequence[Skipped]) -> None:
    """Name on standard error what was not imported, once for each reason."""
    places: dict[str, list[str]] = {}
    for item in skipped:
        places.setdefault(item.reason, []).append(item.source)
    reasons = list(places)
    for reason in reasons[:_SHOWN_REASONS]:
        names = places[reason]
        sys.stderr.write(f"skipped {len(names)}: {_listed(names)}: {reason}\n")
    if more := [places[reason] for reason in reasons[_SHOWN_REASONS:]]:
        sys.stderr.write(
            f"skipped {sum(map(len, more))} for {len(more)} other reasons "
            "(penstock import --json FILE has all)\n"
        )


# --- Values of options ----------------------------------------------------------------


def _gap(text: str) -> float:
    """Parse a time, not negative."""
    try:
        gap_s = parse_time(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if gap_s < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is negative")
    return gap_s


def _fraction(text: str) -> float:
    """Parse a number above 0 and below 1."""
    try:
        number = float(text)
    except ValueError:
        number = inf
    if not 0.0 < number < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return number


def _members(text: str) -> int:
    """Parse the size of an ensemble."""
    number = positive(text)
    if number > _MOST_MEMBERS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is more than the limit of {_MOST_MEMBERS}"
        )
    return number
