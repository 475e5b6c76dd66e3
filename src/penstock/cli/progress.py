# SPDX-License-Identifier: MIT
"""A progress bar on standard error, if that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.policies.policy import Policy

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(*policies: Policy) -> Iterator[Callable[[float, float, str], None]]:
    """Compile the engine and `policies`, then yield a function that shows progress.

    The function takes the work done, the total work, and a message to print above the
    bar or "".
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from penstock.sim import warm_up

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
        task = bar.add_task("compiling, first time only", total=None)
        warm_up(*policies)
        bar.update(task, description="simulating")

        def show(done: float, total: float, message: str) -> None:
            if message:
                console.print(message, markup=False, highlight=False, soft_wrap=True)
            if done < bar.tasks[task].completed:
                # The next part of the work begins, at another speed.
                bar.reset(task)
            bar.update(task, completed=done, total=total)

        yield show
