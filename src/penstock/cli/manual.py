# SPDX-License-Identifier: MIT
"""Write the manual pages of all commands, for ``man``.

The pages are made from the same definitions as ``--help``. The folder gets one file for
each command: penstock.1, penstock-compare.1 and so on.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import Final

import penstock
from penstock.cli.description import Argument, Command, describe
from penstock.cli.files import OutputFolder, filled_folder

__all__ = ["SUMMARY", "main", "manual_page", "setup_parser"]

SUMMARY = "write the manual pages of all commands"
_STATUS: Final = (
    ("0", "success"),
    ("2", "a mistake that you can correct; one line says what, where and what to do"),
    ("70", "a bug of penstock, or too little memory"),
    ("130", "stopped by Ctrl-C"),
)
#: Command -> what else a status means for it.
_OWN_STATUS: Final = {
    "bench": {"1": "a goal was missed"},
    "check": {
        "1": "the program has I/O that cannot be controlled",
        "2": "the program cannot be controlled, or a mistake that you can correct",
    },
    "drain": {"1": "a journal could not be drained"},
}


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock manual``."""
    parser.add_argument(
        *("-o", "--output"),
        type=OutputFolder,
        metavar="DIR",
        default="man1",
        help="folder for the pages (default: man1)",
    )


def main(arguments: argparse.Namespace) -> int:
    """Write the pages."""
    from penstock.files import replacing

    root = describe()
    with filled_folder(arguments.output) as folder:
        for command in (root, *root.children):
            path = folder / f"{'-'.join(command.path)}.1"
            with replacing(path) as stream:
                stream.write(manual_page(command).encode())
    return 0


def manual_page(command: Command) -> str:
    """Return the manual page of a command, with its sub-commands, in groff."""
    name = "-".join(command.path)
    parts = [
        f'.TH {name.upper()} 1 "" "penstock {penstock.__version__}" "penstock"\n',
        f".SH NAME\n{_text(name)} \\- {_text(command.summary)}\n",
        f".SH SYNOPSIS\n.B {_text(' '.join(command.path))}\n{_synopsis(command)}\n",
        f".SH DESCRIPTION\n{_paragraphs(command.text)}",
        _listed("ARGUMENTS", command.positionals),
        _listed("OPTIONS", command.options),
        _commands(command),
        f".SH EXIT STATUS\n{_exit_status(command)}",
        _see_also(command),
    ]
    return "".join(parts)


def _synopsis(command: Command) -> str:
    """Return the usage after the name of the command."""
    words = " ".join(command.usage.split())
    return _text(words.removeprefix(" ".join(command.path)).strip())


def _listed(title: str, arguments: Iterable[Argument]) -> str:
    items = [
        f".TP\n.B {_text(item.title)}\n{_text(item.meaning)}\n" for item in arguments
    ]
    return f".SH {title}\n{''.join(items)}" if items else ""


def _commands(command: Command) -> str:
    """Return the sub-commands; those that have no page are described here."""
    if not command.children:
        return ""
    lines = [".SH COMMANDS\n"]
    for child in command.children:
        values = " ".join(item.value for item in child.positionals)
        title = f"{child.path[-1]} {values}".strip() if len(child.path) > 2 else ""
        lines.append(
            f".TP\n.B {_text(title or '-'.join(child.path) + '(1)')}\n"
            f"{_text(child.summary)}\n"
        )
    return "".join(lines)


def _exit_status(command: Command) -> str:
    if command.path[-1] == "run":
        return "The exit status of the program.\n"
    meanings = dict(_STATUS) | _OWN_STATUS.get(command.path[-1], {})
    rows = sorted(meanings.items(), key=lambda row: int(row[0]))
    return "".join(f".TP\n.B {status}\n{_text(text)}\n" for status, text in rows)


def _see_also(command: Command) -> str:
    if len(command.path) == 1:
        return ""
    return ".SH SEE ALSO\n.BR penstock (1)\n"


def _paragraphs(text: str) -> str:
    """Return the paragraphs of a docstring; indented ones keep their lines."""
    result = []
    for paragraph in filter(None, re.split(r"\n\s*\n", text.strip("\n"))):
        lines = paragraph.splitlines()
        if all(line.startswith(" ") for line in lines):
            shown = "\n".join(map(_text, lines))
            result.append(f".PP\n.nf\n{shown}\n.fi\n")
        else:
            result.append(f".PP\n{_text(' '.join(paragraph.split()))}\n")
    return "".join(result)


def _text(text: str) -> str:
    """Return a text for groff: escaped, and with code in bold."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    escaped = re.sub(r"``(.+?)``|`(.+?)`", _bold, escaped)
    return re.sub(r"^([.'])", r"\\&\1", escaped)


def _bold(match: re.Match[str]) -> str:
    return rf"\fB{match[1] or match[2]}\fR"
