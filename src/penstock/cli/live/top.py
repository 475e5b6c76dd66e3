# SPDX-License-Identifier: MIT
"""Watch live control: share and state of every job, and the status of mounts.

A terminal shows the busiest jobs that fit into it. A pipe and ``--once`` get all jobs,
unless LINES is set.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any

from penstock.cli.live.ctl import (
    faults_in_words,
    grant_words,
    in_words,
    mode_words,
    rough_bandwidth,
    state_word,
    throttled_line,
)
from penstock.cli.live.daemons.mount import waiting_words
from penstock.cli.live.options import (
    WHERE,
    add_live_options,
    live_settings,
    say_waiting,
)
from penstock.cli.live.users import user_words
from penstock.errors import InputError, UnavailableError
from penstock.units import (
    counted,
    format_bandwidth,
    format_time,
    format_volume,
    parse_time,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from penstock.live.settings import Settings
    from penstock.mount.control import MountStatus, SchedulerStatus

__all__ = ["SUMMARY", "main", "setup_parser"]

SUMMARY = "watch live control"

_COLOURS = {
    "works": "dim",
    "off": "dim",
    "waits": "red",
    "lends": "cyan",
    "moves": "green",
}
_BAR = 8
#: Default, least and most time between two frames.
_EVERY = "1 s"
_MIN_PERIOD_S, _MAX_PERIOD_S = 0.05, 86400.0
_COLUMNS = (
    *("job", "user", "state", "share", "granted", "demand", "drawn", "left", "moved"),
    *("staged", "yield", "lost"),
)
#: Terminals with fewer columns than `_WIDE` do not show these columns.
_WIDE = 100
_FOR_WIDE = ("demand", "left", "staged")
_BETWEEN = 2
#: More agents than these are counted, not named.
_NAMED_AGENTS = 3
#: Jobs whose waiting is explained, at most.
_REASONS = 5
#: Users who take too much, of whom it is said why they are throttled, at most.
_NAMED_USERS = 3
#: Lines for jobs, at least, even if mounts and faults fill the terminal.
_LEAST_ROWS = 3
#: Columns for the name of an application of a mount, at least.
_LEAST_NAME = 8


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock top``."""
    parser.add_argument("--once", action="store_true", help="print one frame and exit")
    parser.add_argument(
        "--every",
        default=_EVERY,
        metavar="TIME",
        help=f"time between two frames (default: {_EVERY})",
    )
    add_live_options(parser, WHERE)


def main(arguments: argparse.Namespace) -> int:
    """Show frames until Ctrl-C, or one frame with ``--once``."""
    from rich.console import Console
    from rich.live import Live

    every = _period(arguments.every)
    console = Console()
    # A pipe, a file and `--once` get all jobs, unless LINES limits them.
    is_limited = console.is_terminal and not arguments.once
    is_limited = is_limited or os.environ.get("LINES", "").isdigit()
    with _frame_maker(
        live_settings(arguments), console, is_limited=is_limited
    ) as make_frame:
        frame = make_frame()
        if arguments.once:
            _print(console, frame)
            return 0
        if not console.is_terminal:
            # A file or a pipe: print frames until the reader closes the pipe.
            while True:
                _print(console, frame)
                time.sleep(every)
                frame = make_frame()
        with Live(frame, console=console, screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(every)
                live.update(make_frame(), refresh=True)


def _print(console: Console, frame: RenderableType) -> None:
    """Print a frame without rich, which ends the process on a closed pipe."""
    with console.capture() as captured:
        console.print(frame)
    sys.stdout.write(captured.get())
    sys.stdout.flush()


def _period(text: str) -> float:
    """Return the time between two frames (s)."""
    try:
        every = parse_time(text)
    except InputError as error:
        raise error.at("--every: ") from None
    if not _MIN_PERIOD_S <= every <= _MAX_PERIOD_S:
        raise InputError(
            f"{text!r} is out of range",
            where="--every",
            remedy=f"give {_MIN_PERIOD_S:g} to {_MAX_PERIOD_S:g} seconds",
        )
    return every


@contextmanager
def _frame_maker(
    settings: Settings, console: Console, *, is_limited: bool
) -> Iterator[Callable[[], RenderableType]]:
    """Yield a function that returns a frame of the daemon and the mounts.

    Without a daemon the frame shows only the mounts. If `is_limited`, the frame has no
    more lines than the terminal.
    """
    from rich.console import Group

    from penstock.live.wire.frames import connect
    from penstock.live.wire.messages import GetStatus
    from penstock.mount.control import all_statuses

    mounts = settings.home / "mounts"
    try:
        client = connect(settings, say_waiting=say_waiting)
    except UnavailableError:
        if not all_statuses(mounts):
            raise
        yield lambda: Group(
            *(_mount(each, console.width) for each in all_statuses(mounts))
        )
        return

    def make_frame() -> RenderableType:
        below = [_mount(each, console.width) for each in all_statuses(mounts)]
        status = client.ask(GetStatus())
        if not is_limited:
            return Group(_frame(status, console.width), *below)
        left = console.height - _lines(console, *below)
        above = (
            _lines(console, *_head(status, console.width)) + 1
        )  # and the header of the table
        rows = max(left - above, _LEAST_ROWS)
        return Group(_frame(status, console.width, rows), *below)

    with client:
        yield make_frame


def _lines(console: Console, *parts: RenderableType) -> int:
    """Return how many lines of the terminal these parts take."""
    return sum(len(console.render_lines(part, pad=False)) for part in parts)


def _frame(status: Any, width: int, rows: int | None = None) -> RenderableType:
    """Return head, jobs and reasons; jobs and reasons take up to `rows` lines."""
    from rich.console import Group
    from rich.text import Text

    jobs = sorted(status.jobs, key=_busiest_first)
    most = _REASONS if rows is None else min(_REASONS, rows // 4)
    reasons = _reasons(jobs, status, most)
    shown = len(jobs) if rows is None else rows - len(reasons)
    if len(jobs) <= shown:
        note = []
    else:
        shown = max(shown - 1, 0)
        active = sum(line.active for line in jobs[shown:])
        note = [
            Text(
                f"{counted(len(jobs) - shown, 'more job')}, {active} of them in I/O: "
                "penstock ctl status shows all",
                style="dim",
                no_wrap=True,
                overflow="ellipsis",
            )
        ]
    table = _table(jobs[:shown], status, width)
    return Group(*_head(status, width), table, *note, *reasons)


def _busiest_first(line: Any) -> tuple[bool, float, float, float]:
    """Return the key that sorts jobs in I/O first, those with high grants first."""
    grant = _grant(line) if line.active else 0.0
    return not line.active, -grant, -line.drawn_bytes_per_s, -line.moved_bytes


def _head(status: Any, width: int) -> list[RenderableType]:
    """Return facts of the controller, as many in a line as fit, and what is wrong."""
    from rich.text import Text

    drawn = sum(line.drawn_bytes_per_s for line in status.jobs)
    agents = ", ".join(status.agents) or "none"
    if len(status.agents) > _NAMED_AGENTS:
        agents = str(len(status.agents))
    mode = mode_words(status.mode)
    lines = [mode]
    for fact in (
        f"policy {status.policy}",
        f"{format_bandwidth(drawn, status.bandwidth or 0.0)} of "
        f"{_total_words(status)} drawn",
        counted(len(status.jobs), "job"),
        counted(status.decisions, "decision"),
        f"agents: {agents}",
    ):
        if len(lines[-1]) + _BETWEEN + len(fact) <= width:
            lines[-1] += " " * _BETWEEN + fact
        else:
            lines.append(fact)
    head = Text("\n".join(lines))
    head.stylize("bold", 0, len(mode))
    said = faults_in_words(status)
    faults = [Text(f"fault: {fault}", style="red") for fault in said]
    return [head, *faults, *_throttled(status.throttled)]


def _throttled(throttled: list[Any]) -> list[RenderableType]:
    """Return who takes too much of a daemon, the latest first."""
    from rich.text import Text

    latest = sorted(throttled, key=lambda each: each.age_s)
    lines = [throttled_line(each) for each in latest[:_NAMED_USERS]]
    if len(latest) > _NAMED_USERS:
        more = len(latest) - _NAMED_USERS
        lines.append(f"throttled: {more} more: penstock ctl status shows all")
    return [
        Text(line, style="yellow", no_wrap=True, overflow="ellipsis") for line in lines
    ]


def _table(lines: list[Any], status: Any, width: int) -> RenderableType:
    """Return one row per job; only columns that fit into the width."""
    from rich.table import Table

    words = [state_word(line, status.mode) for line in lines]
    rows = [
        _cells(line, word, status.bandwidth)
        for line, word in zip(lines, words, strict=True)
    ]
    widths = _widths(rows, width)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, most in widths.items():
        left = name in ("job", "user", "state", "share")
        table.add_column(
            name, justify="left" if left else "right", no_wrap=True, max_width=most
        )
    for cells, word in zip(rows, words, strict=True):
        table.add_row(*(cells[name] for name in widths), style=_COLOURS[word])
    return table


def _widths(rows: list[dict[str, str]], width: int) -> dict[str, int]:
    """Return the columns that fit into a terminal, with their widths.

    Users are shown if there are several. Columns on the right are left out first. The
    column of job names gets the rest of the width, and at least half of the terminal if
    the names need it.
    """
    from rich.cells import cell_len

    hidden = () if width >= _WIDE else _FOR_WIDE
    if len({row["user"] for row in rows}) < 2:
        hidden = (*hidden, "user")
    shown = [name for name in _COLUMNS if name not in hidden]
    widths = {
        name: max(map(cell_len, (name, *(row[name] for row in rows)))) for name in shown
    }
    named = min(widths.pop("job"), width // 2)
    while widths and width - _total(widths) < named:
        widths.popitem()
    return {"job": width - _total(widths), **widths}


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + _BETWEEN * len(widths)


def _total_words(status: Any) -> str:
    """Return the bandwidth that is shared; one that is learnt has two digits."""
    if status.bandwidth is None:
        return "an unknown total"
    if any(storage.learns for storage in status.storages):
        return f"about {rough_bandwidth(status.bandwidth)}"
    return format_bandwidth(status.bandwidth)


def _grant(line: Any) -> float:
    return inf if line.grant is None else float(line.grant)


def _cells(line: Any, word: str, bandwidth: float | None) -> dict[str, str]:
    """Return the text of each column for a job."""
    part = _grant(line) / bandwidth if bandwidth else 1.0
    share = min(part, 1.0) if line.active else 0.0
    shared = bandwidth or 0.0  # What is not known yet was not given: decimal.
    cells = [
        line.job_name,
        user_words(line.user),
        word,
        "█" * round(_BAR * share) + "·" * (_BAR - round(_BAR * share)),
        grant_words(line, shared),
        format_bandwidth(line.demanded, shared),
        format_bandwidth(line.drawn_bytes_per_s, shared),
        format_volume(line.remaining_bytes, shared) if line.active else "-",
        format_volume(line.moved_bytes, shared),
        format_volume(line.staged_bytes, shared) if line.staged_bytes else "-",
        f"{line.progress_yield:.3f}",
        format_time(line.lost_s),
    ]
    return dict(zip(_COLUMNS, cells, strict=True))


def _reasons(lines: list[Any], status: Any, most: int) -> list[RenderableType]:
    """Return why waiting jobs wait, each in one line; `most` jobs at most."""
    from rich.text import Text

    waiting = [line for line in lines if line.active and line.grant == 0.0]
    reasons = [line.why.partition(". ")[0] for line in waiting[:most]]
    return [
        Text(in_words(why, status), "dim", no_wrap=True, overflow="ellipsis")
        for why in reasons
    ]


# --- Mounts ---------------------------------------------------------------------------


def _mount(status: MountStatus, width: int) -> RenderableType:
    """Return the status of a mount and the service of its applications."""
    from rich.console import Group
    from rich.text import Text

    total = status.limits["total"]
    moved = status.read.moved_bytes + status.write.moved_bytes
    head = Text(status.point, style="bold")
    head.append(
        f"  {'no limit' if total is None else format_bandwidth(total)}  "
        f"{format_volume(moved, total or 0.0)} moved  {waiting_words(status.waiting)}",
        style="not bold",
    )
    scheduling = status.scheduling
    if scheduling is None:
        return head
    depth = scheduling.depth
    head.append(
        f"  {scheduling.scheduler}, depth {'∞' if depth is None else f'{depth:g}'}",
        style="not bold",
    )
    faults = [Text(scheduling.unmet, style="red")] if scheduling.unmet else []
    return Group(head, *faults, _applications(scheduling, width))


def _applications(scheduling: SchedulerStatus, width: int) -> RenderableType:
    """Return one row per application; long names are shortened to fit the width."""
    from rich.cells import cell_len
    from rich.table import Table

    from penstock.cli.live.daemons.mount import APPLICATION_COLUMNS, application_cells

    rows = [application_cells(line) for line in scheduling.applications]
    others = [
        max(map(cell_len, cells)) + _BETWEEN
        for cells in zip(APPLICATION_COLUMNS, *rows, strict=True)
    ][1:]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, name in enumerate(APPLICATION_COLUMNS):
        table.add_column(
            name,
            justify="right" if number else "left",
            no_wrap=True,
            max_width=None if number else max(width - sum(others), _LEAST_NAME),
        )
    for line, cells in zip(scheduling.applications, rows, strict=True):
        late = line.p95_s is not None and line.p95_s > line.latency_s
        style = "red" if late else "green" if line.p95_s is not None else "dim"
        table.add_row(*cells, style=style)
    return table
