# SPDX-License-Identifier: MIT
"""A progress bar on standard error if that is a terminal, else a line at most."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.policies.policy import Policy

__all__ = ["progress_bar", "said_if_slow", "work_bar"]

#: Work that takes longer is announced where no bar is shown (s).
_SILENT_S = 1.0


@contextmanager
def progress_bar(*policies: Policy) -> Iterator[Callable[[float, float, str], None]]:
    """Compile the engine and `policies`, then yield a function that shows progress.

    The function takes the work done, the total work, and a message to print above the
    bar or "".
    """
    from penstock.sim import warm_up

    with work_bar("compiling, first time only") as (show, rename):
        warm_up(*policies)
        rename("simulating")
        yield show


@contextmanager
def work_bar(
    description: str,
) -> Iterator[tuple[Callable[[float, float, str], None], Callable[[str], None]]]:
    """Yield a function that shows progress and one that changes the description."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: Any = (
        "{task.description}",
        BarColumn(),
        "{task.percentage:>3.0f} % after",
        TimeElapsedColumn(),
        "remaining",
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    bar = Progress(
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
        # A piece may take minutes: in the default window of 30 s, none may end.
        speed_estimate_period=3600.0,
    )
    with bar:
        task = bar.add_task(description, total=None)

        def show(done: float, total: float, message: str) -> None:
            if message:
                console.print(message, markup=False, highlight=False, soft_wrap=True)
            if done < bar.tasks[task].completed:
                # The next part of the work begins, at another speed.
                bar.reset(task)
            bar.update(task, completed=done, total=total)

        yield show, lambda text: bar.update(task, description=text)


@contextmanager
def said_if_slow(doing: str) -> Iterator[None]:
    """Say what is being done if it takes longer than `_SILENT_S`.

    A terminal shows a `work_bar` instead.
    """
    if sys.stderr.isatty():
        yield
        return
    said = threading.Timer(_SILENT_S, sys.stderr.write, [f"penstock: {doing}\n"])
    said.start()
    try:
        yield
    finally:
        said.cancel()
        # A process that forks later must not have this thread.
        said.join()
