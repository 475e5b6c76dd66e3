# SPDX-License-Identifier: MIT
"""Print the script that completes commands, options and names in a shell.

For bash, put ``source <(penstock completion bash)`` into ``~/.bashrc``. For zsh, write
the script to ``_penstock`` in a folder of ``$fpath``. For fish, write it to
``~/.config/fish/completions/penstock.fish``.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from penstock.cli.description import Argument, Command, describe

__all__ = ["SHELLS", "SUMMARY", "main", "setup_parser"]

SUMMARY = "print the completion script of a shell"


def setup_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``penstock completion``."""
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="|".join(SHELLS))


def main(arguments: argparse.Namespace) -> int:
    """Print the script."""
    sys.stdout.write(SHELLS[arguments.shell](describe()))
    return 0


# --- bash -----------------------------------------------------------------------------

# Readline completes names of files where the function offers nothing.
_BASH: Final = """\
# Completion of penstock for bash: source <(penstock completion bash)
_penstock() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
    local path=penstock options="" words="" i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$path ${{COMP_WORDS[i]}}" in
        {paths}) path+=" ${{COMP_WORDS[i]}}" ;;
        esac
    done
    case $path in
{commands}
    esac
    case "$path $before" in
{values}
    *) [[ $word == -* ]] && words=$options ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}}
complete -o default -F _penstock penstock
"""


def _bash(root: Command) -> str:
    commands, values = [], []
    for command in root.tree():
        path = " ".join(command.path)
        flags = _joined(flag for option in command.options for flag in option.flags)
        commands.append(
            f'    "{path}") options="{flags}" words="{_joined(command.words())}" ;;'
        )
        for option in filter(_takes_value, command.options):
            pattern = " | ".join(f'"{path} {flag}"' for flag in option.flags)
            values.append(f'    {pattern}) words="{_joined(option.words)}" ;;')
    return _BASH.format(
        paths=" | ".join(f'"{" ".join(each.path)}"' for each in _below(root)),
        commands="\n".join(commands),
        values="\n".join(values),
    )


# --- zsh ------------------------------------------------------------------------------

_ZSH: Final = """\
#compdef penstock
# Completion of penstock for zsh: write it to a file _penstock in a folder of $fpath.
_penstock() {{
    local command=penstock each
    local -a options names
    for each in "${{(@)words[2,CURRENT-1]}}"; do
        case "$command $each" in
        ({paths}) command+=" $each" ;;
        esac
    done
    case "$command ${{words[CURRENT-1]}}" in
{values}
    (*)
        case $command in
{commands}
        esac ;;
    esac
    if [[ $words[CURRENT] == -* && -n $options ]]; then
        _describe -o option options
    elif (( $#names )); then
        _describe value names || _files
    else
        _files
    fi
}}
_penstock "$@"
"""


def _zsh(root: Command) -> str:
    commands, values = [], []
    for command in root.tree():
        path = " ".join(command.path)
        options = " ".join(
            _quoted(f"{_colons(flag)}:{option.meaning}")
            for option in command.options
            for flag in option.flags
        )
        if command.children:
            words = " ".join(
                _quoted(f"{_colons(child.path[-1])}:{child.summary}")
                for child in command.children
            )
        else:
            words = " ".join(_quoted(_colons(word)) for word in command.words())
        commands.append(f'        ("{path}") options=({options}) names=({words}) ;;')
        for option in filter(_takes_value, command.options):
            pattern = " | ".join(f'"{path} {flag}"' for flag in option.flags)
            words = " ".join(_quoted(_colons(word)) for word in option.words)
            values.append(f"    ({pattern}) names=({words}) ;;")
    return _ZSH.format(
        paths=" | ".join(f'"{" ".join(each.path)}"' for each in _below(root)),
        commands="\n".join(commands),
        values="\n".join(values),
    )


# --- fish -----------------------------------------------------------------------------

_FISH: Final = """\
# Completion of penstock for fish: ~/.config/fish/completions/penstock.fish
function __penstock_is
    set -l path penstock
    for word in (commandline -opc)[2..]
        switch "$path $word"
            case {paths}
                set path "$path $word"
        end
    end
    test "$path" = "$argv"
end
"""


def _fish(root: Command) -> str:
    paths = " ".join(_quoted(" ".join(each.path)) for each in _below(root))
    lines = [_FISH.format(paths=paths)]
    for command in root.tree():
        condition = _quoted(f"__penstock_is {' '.join(command.path)}")
        begin = f"complete -c penstock -n {condition}"
        for child in command.children:
            meaning = _quoted(child.summary)
            lines.append(f"{begin} -f -a {child.path[-1]} -d {meaning}\n")
        if not command.children and command.words():
            lines.append(f"{begin} -f -a {_quoted(_joined(command.words()))}\n")
        lines += [f"{begin} {_fish_option(option)}\n" for option in command.options]
    return "".join(lines)


def _fish_option(option: Argument) -> str:
    """Return the part of a ``complete`` command that describes an option."""
    flags = [
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
        for flag in option.flags
    ]
    parts = [*flags, f"-d {_quoted(option.meaning)}"]
    if option.words:
        parts.append(f"-x -a {_quoted(_joined(option.words))}")
    elif _takes_value(option):
        parts.append("-r")
    return " ".join(parts)


# --- All shells -----------------------------------------------------------------------

SHELLS: Final[dict[str, Callable[[Command], str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}


def _below(root: Command) -> Iterator[Command]:
    return (command for command in root.tree() if command is not root)


def _takes_value(option: Argument) -> bool:
    return bool(option.value)


def _joined(words: Iterable[str]) -> str:
    return " ".join(words)


def _quoted(text: str) -> str:
    return shlex.quote(text)


def _colons(text: str) -> str:
    """Return a word for ``_describe``, in which a colon ends the word."""
    return text.replace(":", r"\:")
