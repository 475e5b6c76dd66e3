# SPDX-License-Identifier: MIT
"""List past jobs: when they ran, what they moved, and their yields.

Users see their own jobs; root and the user who runs the daemon see all jobs. Without a
daemon, the archive is read directly.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from penstock.cli.live.options import add_live_options, live_settings
from penstock.cli.live.users import job_labels, job_words, with_users
from penstock.cli.options import add_json_option, positive, write_json
from penstock.cli.tables import format_table
from penstock.errors import InputError, UnavailableError
from penstock.units import format_instant, format_time, format_volume

if TYPE_CHECKING:
    from penstock.live.settings import Settings
    from penstock.live.wire.messages import PastJob

__all__ = ["SUMMARY", "ask_archive", "main", "setup_parser"]

SUMMARY = "list past jobs"

_LIMIT = 100
#: How long the daemon may take to read its archive (s).
_PATIENCE_S = 60.0


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock history``."""
    parser.add_argument(
        "--limit",
        type=positive,
        default=_LIMIT,
        metavar="K",
        help=f"how many jobs to list, the latest ones (default: {_LIMIT})",
    )
    add_live_options(parser, ("folder", "archive"))
    add_json_option(parser)


def main(arguments: argparse.Namespace) -> int:
    """Ask for the past jobs; print them."""
    import msgspec

    from penstock.live.wire.messages import ListPastJobs

    request = ListPastJobs(min(arguments.limit, 10_000))
    answer = ask_archive(live_settings(arguments), request)
    jobs = answer.jobs
    if arguments.json:
        write_json({"penstock": 1, "jobs": msgspec.to_builtins(jobs)}, arguments.json)
    if arguments.json != "-":
        sys.stdout.write(_table(jobs, answer.shared or 0.0))
    return 0


def ask_archive(settings: Settings, request: Any) -> Any:
    """Return the answer of the daemon, or else that of the archive itself."""
    from penstock.live.wire.frames import Client

    try:
        with Client(settings.client_socket, _PATIENCE_S) as client:
            return client.ask(request, job_words)
    except UnavailableError:
        # There is no daemon, or it was killed.
        return _read_archive(settings, request)


def _read_archive(settings: Settings, request: Any) -> Any:
    import os

    from penstock.live.archive.answers import ArchiveAnswers
    from penstock.live.archive.reader import ArchiveReader
    from penstock.live.wire.messages import Refused, UserRequest

    folder = settings.archive_folder
    if folder is None or not ArchiveReader(folder).exists():
        raise InputError(
            "no daemon runs, and there is no archive",
            where=str(folder or "archive"),
            remedy="start penstock serve, or name the archive with --archive FOLDER",
        )
    # The mode of the files decides who may read them.
    message = UserRequest(0, os.geteuid(), trusted=True, request=request)
    reply = ArchiveAnswers(folder).answer(message)
    if isinstance(reply, Refused):
        raise InputError(reply.words(job_words))
    return reply


def _table(jobs: list[PastJob], shared: float) -> str:
    """Return the jobs as a table, in the units of the shared bandwidth."""
    from penstock.live.control.past import missing_words

    if not jobs:
        return "no past jobs\n"
    rows = [("job", "policy", "from", "took", "moved", "lost", "yield")]
    now_s = time.time()
    for job in jobs:
        end_s = now_s if job.left_s is None else job.left_s
        rows.append(
            (
                job.job_name,
                ", ".join(job.policy_names),
                format_instant(job.joined_s),
                format_time(end_s - job.joined_s),
                format_volume(job.moved_bytes, shared),
                format_time(job.lost_s),
                f"{job.progress_yield:.3f}",
            )
        )
    table = with_users(rows, [job.user for job in jobs])
    keys = [f"{job.user}:{job.job_name}" for job in jobs]
    label = job_labels(keys)
    notes = [
        f"{label(key)} from {format_instant(job.joined_s)}: {sentence}\n"
        for key, job in zip(keys, jobs, strict=True)
        for sentence in missing_words(job.missing)
    ]
    return format_table(table, left=len(table[0]) - 4) + "".join(notes)
