# SPDX-License-Identifier: MIT
"""Watch live control: who has which share, who waits, and why."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from penstock.cli.ctl import mode_words, state_word
from penstock.cli.live_options import WHERE, add_live_options, live_settings
from penstock.errors import InputError
from penstock.units import format_bandwidth, format_time, format_volume, parse_time

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "watch live control"

_COLOURS = {"works": "dim", "waits": "red", "lends": "cyan", "moves": "green"}
_BAR = 8


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock top``."""
    parser.add_argument("--once", action="store_true", help="print one frame and end")
    parser.add_argument(
        "--every", default="1 s", metavar="TIME", help="time between two frames"
    )
    add_live_options(parser, WHERE)


def main(arguments: argparse.Namespace) -> int:
    """Show frames until Ctrl-C, or one."""
    from rich.console import Console
    from rich.live import Live

    from penstock.live.messages import Status
    from penstock.live.wire import Client

    every = parse_time(arguments.every)
    if every < 0.05:
        raise InputError(f"{arguments.every!r} is too often", where="--every")
    console = Console()
    with Client(live_settings(arguments).found_socket) as client:
        status = client.ask(Status())
        if arguments.once:
            console.print(_frame(status))
            return 0
        with Live(
            _frame(status), console=console, screen=True, auto_refresh=False
        ) as live:
            while True:
                time.sleep(every)
                live.update(_frame(client.ask(Status())), refresh=True)


def _frame(status: Any) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    drawn = sum(line.achieved for line in status.jobs)
    head = Text(mode_words(status.mode), style="bold")
    head.append(
        f"  policy {status.policy}  {format_bandwidth(drawn)} of "
        f"{format_bandwidth(status.bandwidth)} drawn  "
        f"{len(status.jobs)} jobs  {status.decisions} decisions  "
        f"agents: {', '.join(status.agents) or 'none'}",
        style="not bold",
    )
    faults = [Text(f"fault: {fault}", style="red") for fault in status.faults]
    return Group(head, *faults, _table(status), *_reasons(status))


def _table(status: Any) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("job")
    table.add_column("state")
    table.add_column("share")
    for name in ("granted", "demand", "drawn", "left", "moved", "yield", "lost"):
        table.add_column(name, justify="right", no_wrap=True)
    lines = sorted(status.jobs, key=lambda line: (not line.active, -line.granted))
    for line in lines:
        word = state_word(line)
        table.add_row(*_cells(line, word, status.bandwidth), style=_COLOURS[word])
    return table


def _cells(line: Any, word: str, bandwidth: float) -> list[str]:
    share = line.granted / bandwidth if line.active else 0.0
    return [
        line.job,
        word,
        "█" * round(_BAR * share) + "·" * (_BAR - round(_BAR * share)),
        format_bandwidth(line.granted) if line.active else "-",
        format_bandwidth(line.demanded),
        format_bandwidth(line.achieved),
        format_volume(line.remaining) if line.active else "-",
        format_volume(line.moved),
        f"{line.progress_yield:.3f}",
        format_time(line.lost),
    ]


def _reasons(status: Any) -> list[RenderableType]:
    """Say why those wait that wait."""
    from rich.text import Text

    waiting = [line for line in status.jobs if line.active and line.granted == 0.0]
    return [Text(line.why, style="dim") for line in waiting[:5]]
