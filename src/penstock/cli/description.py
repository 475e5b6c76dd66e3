# SPDX-License-Identifier: MIT
"""The commands as data, read from the parsers: for completion and manual pages.

The parsers are those of `argparse`, which has no public way to list what they accept.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Argument", "Command", "describe"]


@dataclass(frozen=True, slots=True)
class Argument:
    """An option, or a positional argument."""

    flags: tuple[str, ...]
    """The flags of an option, e.g. ``-o`` and ``--output``; empty: positional."""
    value: str
    """Placeholder of its value; empty if it takes none."""
    meaning: str
    words: tuple[str, ...]
    """Values to offer; empty if they are not known, e.g. names of files."""

    @property
    def title(self) -> str:
        """The argument as manuals show it: ``-o, --output DIR``."""
        return " ".join(filter(None, (", ".join(self.flags), self.value)))


@dataclass(frozen=True, slots=True)
class Command:
    """A command with its arguments and its sub-commands."""

    path: tuple[str, ...]
    """``("penstock", "ctl", "status")``."""
    summary: str
    text: str
    """Description in paragraphs."""
    usage: str
    options: tuple[Argument, ...]
    positionals: tuple[Argument, ...]
    children: tuple[Command, ...]

    def tree(self) -> Iterator[Command]:
        """Return this command and all commands below it."""
        yield self
        for child in self.children:
            yield from child.tree()

    def words(self) -> tuple[str, ...]:
        """Return what may stand in place of its first positional argument."""
        if self.children:
            return tuple(child.path[-1] for child in self.children)
        return self.positionals[0].words if self.positionals else ()


def describe() -> Command:
    """Return the command ``penstock`` with all its sub-commands."""
    from penstock.cli import build_parser

    parser = build_parser([])
    return _command(parser, (parser.prog,), "share the bandwidth of storage")


def _command(
    parser: argparse.ArgumentParser, path: tuple[str, ...], summary: str
) -> Command:
    # Python 3.14 puts colours into the usage if a terminal is there.
    parser.__dict__["color"] = False
    children: list[Command] = []
    arguments = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            children += _children(action, path)
        elif action.help != argparse.SUPPRESS:
            arguments.append(_argument(parser, action, path))
    return Command(
        path,
        summary,
        _text(path) or parser.description or summary,
        parser.format_usage().removeprefix("usage: "),
        tuple(item for item in arguments if item.flags),
        tuple(item for item in arguments if not item.flags),
        tuple(children),
    )


def _text(path: tuple[str, ...]) -> str:
    """Return the docstring of the module of a sub-command."""
    from penstock.cli import COMMANDS

    if len(path) != 2:
        return ""
    return sys.modules[f"penstock.cli.{COMMANDS[path[1]]}"].__doc__ or ""


def _children(action: Any, path: tuple[str, ...]) -> Iterator[Command]:
    summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
    for name, child in action.choices.items():
        yield _command(child, (*path, name), summaries.get(name, ""))


def _argument(
    parser: argparse.ArgumentParser, action: argparse.Action, path: tuple[str, ...]
) -> Argument:
    formatter: Any = parser._get_formatter()
    meaning = formatter._expand_help(action) if action.help else ""
    value = action.metavar or action.dest.upper()
    shown = " ".join(value) if isinstance(value, tuple) else value
    takes_value = action.nargs != 0
    return Argument(
        tuple(action.option_strings),
        shown if takes_value else "",
        " ".join(meaning.split()),
        _words(action, shown, path) if takes_value else (),
    )


def _words(
    action: argparse.Action, value: str, path: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the values of an argument: its choices, known names, or its placeholder's.

    The placeholder ``{free,charged}`` has two values, ``RATE|learn|measure`` as well.
    """
    if action.choices is not None:
        return tuple(map(str, action.choices))
    flag = action.option_strings[-1] if action.option_strings else value
    for key in (f"{path[-1]} {flag}", flag):
        if key in _NAMES:
            # Without the extra `sim`, some names are not known.
            with suppress(ModuleNotFoundError):
                return tuple(_NAMES[key]())
    if not re.search(r"[{|]", value):
        return ()
    return tuple(w for w in re.split(r"[{}|,]", value) if re.fullmatch("[a-z-]+", w))


# --- Names that plug-ins, workloads and formats have ----------------------------------


def _policies() -> list[str]:
    from penstock.policies import POLICIES

    return list(POLICIES)


def _workloads() -> list[str]:
    from penstock.workloads import WORKLOADS

    return list(WORKLOADS)


def _allocations() -> list[str]:
    from penstock.placement import ALLOCATIONS

    return list(ALLOCATIONS)


def _placements() -> list[str]:
    from penstock.placement import PLACEMENTS

    return list(PLACEMENTS)


def _strategies() -> list[str]:
    from penstock.staging import STRATEGIES

    return ["none", *STRATEGIES]


def _formats() -> list[str]:
    from penstock.cli.simulation.schema import FORMATS

    return list(FORMATS)


def _figures() -> list[str]:
    from penstock.papers import FIGURES

    return ["all", *FIGURES]


#: Flag or placeholder, or command and placeholder -> the names to offer.
_NAMES: Final[dict[str, Callable[[], list[str]]]] = {
    "--policy": _policies,
    "POLICY": _policies,
    "--workload": _workloads,
    "WORKLOAD": _workloads,
    "--allocation": _allocations,
    "--placement": _placements,
    "--strategy": _strategies,
    "schema NAME": _formats,
    "FIGURE": _figures,
}
