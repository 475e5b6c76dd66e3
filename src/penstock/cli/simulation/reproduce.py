# SPDX-License-Identifier: MIT
"""Reproduce the figures of the papers, and check the claims of the papers.

FIGURE is a name that ``--list`` shows, or ``all``. The folder receives the figure
(SVG, PNG), its table (Parquet, CSV), the claims (JSON) and an HTML page.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from penstock.cli.files import make_folder
from penstock.cli.options import add_executor_options, add_folder_option, executor_from
from penstock.cli.progress import progress_bar
from penstock.cli.tables import format_table
from penstock.errors import InputError

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "reproduce the figures of the papers, and check their claims"

#: Figure -> the strategy whose delta-graph can be measured on a limited mount.
_LIVE: Final = {
    "p4-fig4": "none",
    "p4-fig5": "1a",
    "p4-fig6": "1b",
    "p4-fig7": "2a",
    "p4-fig8": "2b",
    "p4-fig9": "3a",
    "p4-fig10": "3b",
}

_INDICATIVE: Final = (
    "\nat this scale (smoke) verdicts are only indicative: --scale paper computes as "
    "many instances as the paper\n"
)


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock reproduce``."""
    parser.add_argument(
        "figures",
        nargs="*",
        metavar="FIGURE",
        help="a figure that --list shows, or `all`; may be repeated",
    )
    parser.add_argument("--list", action="store_true", help="list the figures")
    parser.add_argument(
        "--scale",
        choices=("smoke", "paper"),
        default="smoke",
        help="smoke: at most a minute per figure; paper: as many instances as in the "
        "paper (default: smoke)",
    )
    add_folder_option(parser)
    parser.add_argument(
        "--live",
        action="store_true",
        help="also measure these figures on limited mounts of this machine: "
        f"{', '.join(_LIVE)}",
    )
    parser.add_argument(
        "--cluster",
        action="store_true",
        help="with --live: on a real MooseFS of this machine (needs root)",
    )
    add_executor_options(parser)


def main(arguments: argparse.Namespace) -> int:
    """Reproduce the figures and print the verdicts."""
    from penstock.papers import FIGURES, get_figure

    if arguments.list:
        if arguments.figures:
            raise InputError("--list takes no figure", remedy="leave the figure out")
        rows = [(name, f"{e.title} ({e.source})") for name, e in FIGURES.items()]
        sys.stdout.write(format_table(rows))
        return 0
    if not arguments.figures:
        raise InputError("no figure is named", remedy="see penstock reproduce --list")
    names = _names(arguments.figures, FIGURES)
    for name in names:
        get_figure(name)  # reports an unknown name before anything is made
    live = [name for name in names if name in _LIVE] if arguments.live else []
    if arguments.cluster and not arguments.live:
        raise InputError("--cluster has no effect", remedy="use it with --live")
    if arguments.live and not live:
        raise InputError(
            "none of these figures can be measured",
            where="--live",
            remedy=f"choose from {', '.join(_LIVE)}",
        )

    from penstock.experiments.reproduction import Scale, reproduce_all

    folder = Path(arguments.output)
    executor = executor_from(arguments)
    if live:
        make_folder(folder / "live")
    with progress_bar() as show:
        scale = Scale(arguments.scale)
        records = reproduce_all(names, get_figure, scale, folder, executor, show)
    for record in records:
        _print_claims(record)
    _print_counts(records)
    if arguments.scale == "smoke" and not all(map(_holds, records)):
        sys.stdout.write(_INDICATIVE)
    pages = ", ".join(str(folder / name) for name in ("index.html", "what-holds.html"))
    sys.stdout.write(f"\npages: {pages}\n")
    if live:
        _measure(live, folder / "live", cluster=arguments.cluster)
    return 0


def _names(named: Sequence[str], known: Iterable[str]) -> list[str]:
    """Return the names of the figures, each once; ``all`` means all known figures."""
    names = dict.fromkeys(named)
    if "all" in names:
        names |= dict.fromkeys(known)
    return [name for name in names if name != "all"]


def _measure(names: Sequence[str], folder: Path, *, cluster: bool) -> None:
    """Measure the delta-graphs of these figures, as ``penstock bench delta`` does."""
    from penstock.bench import BenchSettings
    from penstock.bench.accuracy.delta import measure
    from penstock.cli.live.bench import FOLDER, print_measurement
    from penstock.experiments.output.provenance import provenance

    strategies = tuple(_LIVE[name] for name in names)
    facts = provenance()
    setting = BenchSettings(
        1, FOLDER, strategies, folder, cluster=cluster, provenance=facts
    )
    place = "a MooseFS" if cluster else "limited mounts"
    sys.stdout.write(f"\non {place} of this machine:\n")
    sys.stdout.flush()
    for figure in measure(setting):
        print_measurement(figure)
    sys.stdout.write(f"drawing: {folder / 'delta.svg'}\n")


def _holds(record: dict[str, Any]) -> bool:
    return all(claim["holds"] for claim in record["claims"])


def _print_claims(record: dict[str, Any]) -> None:
    sys.stdout.write(f"\n{record['name']}: {record['title']}\n")
    rows = [(_word(claim), claim["says"]) for claim in record["claims"]]
    sys.stdout.write(format_table(rows, gaps=(2, 2)))


def _word(claim: dict[str, Any]) -> str:
    """Return the outcome of a claim; one that does not hold stands out."""
    from penstock.experiments.claims import Outcome
    from penstock.experiments.output.verdicts import outcome_of

    return {
        Outcome.HOLDS: "holds",
        Outcome.FAILS: "DOES NOT HOLD",
        Outcome.DEPENDS: f"DEPENDS on {claim.get('depends_on')}",
        Outcome.CONTRADICTED: "CONTRADICTED by the paper",
    }[outcome_of(claim)]


def _print_counts(records: Sequence[dict[str, Any]]) -> None:
    """Print how many claims have which outcome, by paper."""
    from penstock.experiments.output.verdicts import (
        COUNT_TITLES,
        by_paper,
        count_rows,
    )

    rows = [(name, *map(str, counts)) for name, counts in count_rows(by_paper(records))]
    titles = [title.removesuffix(" itself") for title in COUNT_TITLES]
    sys.stdout.write("\n" + format_table([titles, *rows], left=1))
