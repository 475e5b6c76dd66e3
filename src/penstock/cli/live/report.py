# SPDX-License-Identifier: MIT
"""Report on a past job: what it did, who held it up, what others would have given.

The last run of the job is reported. Other policies are simulated on the job and on all
jobs that shared its storage; only operators see these jobs.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from penstock.cli.files import OutputFile
from penstock.cli.live.history import ask_archive
from penstock.cli.live.options import add_live_options, live_settings
from penstock.cli.live.users import job_argument, job_labels, job_words
from penstock.cli.options import add_json_option, exclude, positive_rate, write_json
from penstock.units import (
    counted,
    format_bandwidth,
    format_time,
    format_volume,
)

if TYPE_CHECKING:
    from penstock.live.wire.messages import Delay, JobReport, PastJob

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "report on a past job"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock report``."""
    parser.add_argument("job", metavar="JOB", help="name of the job, or USER:NAME")
    parser.add_argument(
        "--bandwidth",
        type=positive_rate,
        metavar="RATE",
        help="bandwidth for the simulation (default: what the jobs shared)",
    )
    parser.add_argument(
        "--line",
        action="store_true",
        help="print one line only, without a simulation",
    )
    parser.add_argument(
        "--html", type=OutputFile, metavar="FILE", help="write a page with a drawing"
    )
    add_live_options(parser, ("folder", "archive"))
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Ask for the report; print it in words, and write the requested files."""
    import msgspec

    from penstock.live.wire.messages import GetJobReport

    bandwidth = arguments.bandwidth
    if arguments.line:
        exclude(arguments, ("bandwidth", "html", "json"), "--line", "leave it out")
    report = ask_archive(
        live_settings(arguments), GetJobReport(job_argument(arguments.job))
    )
    if arguments.line:
        sys.stdout.write(f"{_line(report)}\n")
        return 0

    from penstock.advice.job_report.documents import report_document, report_sentences
    from penstock.advice.job_report.text import text_drawing
    from penstock.experiments.output.provenance import provenance
    from penstock.files import replacing

    document = report_document(report, provenance(job=arguments.job), bandwidth)
    shown = _labelled(report, job_argument(arguments.job))
    words = document | {
        "job": msgspec.to_builtins(shown.job),
        "delays": msgspec.to_builtins(shown.delays),
    }
    if arguments.html:
        from penstock.advice.job_report.page import report_page

        page = report_page(words, shown, bandwidth)
        with replacing(arguments.html) as stream:
            stream.write(page.encode())
    if arguments.json:
        write_json(document, arguments.json)
    if arguments.json != "-":
        lines = [*report_sentences(words), "", *text_drawing(shown)]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _labelled(report: JobReport, asked: str) -> JobReport:
    """Return a report whose jobs have the names that are shown.

    These are NAME, or USER:NAME if jobs of several users have this name. The job itself
    is shown as it was asked for: `asked` is its name or its key.
    """
    from msgspec.structs import replace

    def key_of(job: PastJob | Delay) -> str:
        return f"{job.user}:{job.job_name}"

    named = [delay for delay in report.delays if delay.user is not None]
    jobs: list[PastJob | Delay] = [report.job, *named]
    jobs += [other.job for other in report.others]
    label = job_labels(map(key_of, jobs))
    own = job_words(asked) if asked == key_of(report.job) else label(key_of(report.job))
    return replace(
        report,
        job=replace(report.job, job_name=own),
        delays=[
            replace(each, job_name=label(key_of(each))) if each in named else each
            for each in report.delays
        ],
        others=[
            replace(other, job=replace(other.job, job_name=label(key_of(other.job))))
            for other in report.others
        ],
    )


def _line(report: JobReport) -> str:
    """Return what the job did in one line, for example for Slurm's AdminComment."""
    job, operations = report.job, counted(report.operation_count, "operation")
    return (
        f"I/O: moved {format_volume(job.moved_bytes)} in {operations}, "
        f"lost {format_time(job.lost_s)}, "
        f"yield {job.progress_yield:.3f}, policy {', '.join(job.policy_names)}"
        + ("" if job.limit is None else f", limit {format_bandwidth(job.limit)}")
    )
