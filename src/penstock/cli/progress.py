# SPDX-License-Identifier: MIT
"""A progress bar on standard error, for whoever watches it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["progress_bar"]


@contextmanager
def progress_bar() -> Iterator[Callable[[float, float, str], None]]:
    """Compile the engine, then show how much of the work is done and what is left.

    The function that is yielded takes what is done, what there is in all, and a
    message to print above the bar, or "".
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TimeRemainingColumn

    from penstock.sim import warm_up

    columns: Any = (
        "{task.description}",
        BarColumn(),
        "{task.percentage:>3.0f} %",
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("compiling, first time only", total=None)
        warm_up()
        bar.update(task, description="simulating")

        def show(done: float, total: float, message: str) -> None:
            if message:
                console.print(message, markup=False, highlight=False)
            bar.update(task, completed=done, total=total)

        yield show
