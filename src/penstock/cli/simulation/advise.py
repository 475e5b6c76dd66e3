# SPDX-License-Identifier: MIT
"""Advise a site: which policy helps its jobs, by how much, and how sure that is.

SOURCE is an instance, a log or a folder of either. Logs are imported first, as
``penstock import`` does. The instances are simulated under all policies, in scenarios
that differ in the starts and lengths of all phases. The answer is "change", "keep" or
"thin-evidence".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.cli.files import InputFile, OutputFile, expanded, is_instance_name
from penstock.cli.options import (
    add_json_option,
    exclude,
    natural,
    positive,
    write_json,
)
from penstock.cli.progress import progress_bar, work_bar
from penstock.cli.simulation.import_ import (
    add_import_options,
    import_options,
    report_skipped,
)
from penstock.cli.tables import format_table
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.advice.evidence import Evidence
    from penstock.model import Instance

__all__ = ["SUMMARY", "advice_text", "main", "setup_parser"]

SUMMARY = "advise which policy helps the jobs of a site, by how much, and how surely"

_SCENARIOS: Final = 20
#: Options that only the import of logs uses.
_FOR_LOGS: Final = (
    *("format", "node_bandwidth", "gap", "io_fraction"),
    *("periods", "align", "strict"),
)


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock advise``."""
    parser.add_argument(
        "inputs",
        nargs="*",
        type=InputFile,
        metavar="SOURCE",
        help="instance files (JSON) or logs, and folders of them (default: the past "
        "jobs of this machine, as in penstock history)",
    )
    add_import_options(parser)
    parser.add_argument(
        "--now",
        metavar="POLICY",
        help="policy in use (default: that of the last past job of penstock, else "
        "fair-share, which is what storage does without control)",
    )
    parser.add_argument(
        "--targets",
        type=positive,
        metavar="N",
        help="also advise how many and which of N storage targets every job gets",
    )
    parser.add_argument(
        "--scenarios",
        type=positive,
        default=_SCENARIOS,
        metavar="K",
        help=f"how many scenarios to simulate (default: {_SCENARIOS})",
    )
    parser.add_argument(
        "--uncertainty",
        type=float,
        metavar="PART",
        help="by which part the lengths of phases are uncertain (default: 0.1; for "
        "logs by their detail)",
    )
    parser.add_argument(
        "--seed", type=natural, default=1, metavar="S", help="random seed (default: 1)"
    )
    parser.add_argument(
        "--settings",
        type=OutputFile,
        metavar="FILE",
        help="write settings for `penstock serve --settings FILE` (TOML)",
    )
    parser.add_argument(
        "--report", type=OutputFile, metavar="FILE.html", help="write a page"
    )
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Simulate, print the answer in words, and write the requested files."""
    arguments.inputs = arguments.inputs or [_archive_here()]
    evidence = _evidence(arguments)

    from penstock.advice.study import advise_on
    from penstock.experiments.output.provenance import provenance
    from penstock.policies import POLICIES, get_policy

    instance = evidence.instances[0]
    with progress_bar(*map(get_policy, POLICIES)) as show:
        advice = advise_on(
            evidence,
            now=arguments.now,
            scenarios=arguments.scenarios,
            uncertainty=arguments.uncertainty,
            targets=arguments.targets,
            seed=arguments.seed,
            facts=provenance(seed=arguments.seed, inputs=arguments.inputs),
            progress=lambda done, total: show(done, total, ""),
        )
    if arguments.report:
        _write_report(advice, instance, arguments.report)
    if arguments.settings:
        _write_settings(advice, instance, arguments.settings)
    if arguments.json:
        write_json(advice, arguments.json)
    if arguments.json != "-":
        sys.stdout.write(advice_text(advice))
    return 0


def _archive_here() -> str:
    """Return the archive of this machine, the one that ``penstock history`` reads."""
    from penstock.advice.logs.history import is_archive_folder
    from penstock.live.settings import load_settings

    folder = load_settings({}).archive_folder
    if folder is None or not is_archive_folder(folder):
        raise InputError(
            "no SOURCE is given, and there are no past jobs of penstock serve",
            where=str(folder or "archive"),
            remedy="name logs or instances",
        )
    return str(folder)


def _evidence(arguments: argparse.Namespace) -> Evidence:
    """Read the instances, or import the logs."""
    from penstock.advice.evidence import of_instances, of_logs
    from penstock.advice.importing.importer import import_logs

    if files := _instance_files(arguments.inputs):
        exclude(
            arguments,
            _FOR_LOGS,
            "instances",
            "leave it out; it is for logs",
        )
        instances = [_read_instance(path) for path in files]
        return of_instances(instances, arguments.bandwidth)
    with work_bar("reading logs") as (show, _):
        imported = import_logs(
            arguments.inputs,
            import_options(arguments),
            lambda done, total: show(done, total, ""),
        )
    report_skipped(imported.skipped)
    return of_logs(imported, arguments.scenarios, arguments.seed)


def _instance_files(names: Sequence[str]) -> list[str]:
    """Return the instance files; none if logs are named.

    Raises `InputError` if instances and logs are named together.
    """
    are_instances = [_holds_instances(name) for name in names]
    if not any(are_instances):
        return []
    if not all(are_instances):
        raise InputError(
            "this is a log, but other inputs are instances",
            where=names[are_instances.index(False)],
            remedy="import the logs first with penstock import -o FILE",
        )
    return list(dict.fromkeys(expanded(names)))


def _holds_instances(name: str) -> bool:
    """Return True for a JSON file of penstock, and for a folder of them."""
    path = Path(name)
    if path.is_dir():
        found = (entry for entry in path.iterdir() if is_instance_name(entry.name))
        return any(_holds_instances(str(entry)) for entry in found)
    if not is_instance_name(path.name):
        # A pipe holds an instance, too.
        return path.exists() and not path.is_file()
    from penstock.model.documents import read_document

    document = read_document(name)
    return isinstance(document, dict) and "penstock" in document


def _read_instance(path: str) -> Instance:
    from penstock.experiments.source import read_input

    document = read_input(path)
    if isinstance(document, dict):
        raise InputError(
            "this is a result, not an instance",
            where=path,
            remedy="name the instance that was simulated",
        )
    return document


def _write_report(advice: dict[str, Any], instance: Instance, path: str) -> None:
    from penstock.advice.report import report_page
    from penstock.files import replacing

    page = report_page(advice, instance)
    with replacing(path) as stream:
        stream.write(page.encode())


def _write_settings(advice: dict[str, Any], instance: Instance, path: str) -> None:
    from penstock.advice.settings import settings_text
    from penstock.files import replacing

    with replacing(path) as stream:
        stream.write(settings_text(advice, instance).encode())


def advice_text(advice: dict[str, Any]) -> str:
    """Return the advice as it is printed: words first, then tables."""
    parts = [
        "\n".join([advice["summary"], *advice["reasons"]]) + "\n",
        _policy_table(advice),
        _job_table(advice["applications"]),
    ]
    if owners := _owner_lines(advice["applications"]):
        parts.append(owners)
    if "placement" in advice:
        parts.append(_placement_text(advice["placement"]))
    assumed = "".join(f"  {sentence}\n" for sentence in advice["assumptions"])
    return "\n".join([*parts, f"Assumed:\n{assumed}"])


def _policy_table(advice: dict[str, Any]) -> str:
    from penstock.advice.documents import roles_of_policies

    roles = roles_of_policies(advice)
    rows = [("policy", "", "MinYield", "Efficiency")]
    rows += [
        (
            outcome["policy"],
            roles.get(outcome["policy"], ""),
            f"{outcome['min_yield']:.3f}",
            f"{outcome['efficiency']:.3f}",
        )
        for outcome in advice["policies"]
    ]
    rows.append(("bound", "", f"{advice['bound']['min_yield']:.3f}", ""))
    return format_table(rows, left=2) + (
        "MinYield: yield of the worst job. Efficiency: progress of all jobs together, "
        "by their nodes.\nBoth are 1 if no job waits for another one.\n"
    )


def _job_table(jobs: Sequence[dict[str, Any]]) -> str:
    rows = [("job", "yield now", "advised")]
    rows += [
        (job["name"], f"{job['yield_now']:.3f}", f"{job['yield_advised']:.3f}")
        for job in jobs
    ]
    return format_table(rows, left=1)


def _owner_lines(jobs: Sequence[dict[str, Any]]) -> str:
    return "".join(
        f"{job['name']}: {sentence}\n" for job in jobs for sentence in job["advice"]
    )


def _placement_text(placement: dict[str, Any]) -> str:
    text = f"{placement['sentence']}\n"
    if not placement["worthwhile"]:
        return text
    rows = [
        (name, ",".join(map(str, targets)))
        for name, targets in placement["targets"].items()
    ]
    return f"{text}\n{format_table([('job', 'targets'), *rows])}"
