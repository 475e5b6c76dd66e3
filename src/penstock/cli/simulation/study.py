# SPDX-License-Identifier: MIT
"""Run a study of your own: a sweep over workloads, parameters and policies.

FILE is a TOML file; ``docs/how-to/run-a-study.md`` describes it. The folder receives
the figure (SVG, PNG), all rows (Parquet, CSV) and an HTML page. If the command is
stopped, run it again to resume.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from penstock.cli.files import InputFile
from penstock.cli.options import add_executor_options, add_folder_option, executor_from
from penstock.cli.progress import progress_bar

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "run a study of your own that a file declares"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock study``."""
    parser.add_argument(
        "file", type=InputFile, metavar="FILE", help="declaration of the study (TOML)"
    )
    add_folder_option(parser)
    add_executor_options(parser)


def main(arguments: argparse.Namespace) -> int:
    """Run the study and print the path of its page."""
    from penstock.experiments.reproduction import reproduce
    from penstock.experiments.study_file import read_study

    study = read_study(arguments.file)
    folder = Path(arguments.output)
    executor = executor_from(arguments)
    with progress_bar() as show:
        reproduce(study, None, folder, executor, show)
    sys.stdout.write(f"page: {folder / study.name / 'index.html'}\n")
    return 0
