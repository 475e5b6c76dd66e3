# SPDX-License-Identifier: MIT
"""A digest of the code that decides a claim, to see that a kept verdict is out of date.

The digest covers the function that checks the claim, its arguments, and the functions
and constants that it names, directly or through such functions, if they are of the same
folder of figures (``penstock.papers.p1``). Decorators and docstrings do not count: a
better text must not cost a measurement. Code of other folders does not count either.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import CodeType, FunctionType
from typing import Any, Final

__all__ = ["check_digest"]

#: Parts of the name of a module that name the folder of figures.
_FOLDER_PARTS: Final = 3
#: Hexadecimal digits of a digest.
_LENGTH: Final = 16
_CONSTANTS: Final = (bool, int, float, str, tuple, dict)


def check_digest(check: Callable[..., Any]) -> str:
    """Return the digest of the code of a check."""
    arguments = []
    while isinstance(check, partial):
        arguments.append(_value_text(check.keywords))
        check = check.func
    texts = _texts(check) if isinstance(check, FunctionType) else set()
    text = "\n".join([*arguments, *sorted(texts)])
    return hashlib.sha256(text.encode()).hexdigest()[:_LENGTH]


def _texts(check: FunctionType) -> set[str]:
    """Return the functions and constants that decide a claim, as text."""
    folder = _folder(check)
    texts: set[str] = set()
    seen: set[FunctionType] = set()
    pending = [check]
    while pending:
        function = pending.pop()
        if function in seen:
            continue
        seen.add(function)
        name = f"{function.__module__}.{function.__qualname__}"
        texts.add(f"{name}: {_source(function)}")
        for used, value in _used(function):
            if isinstance(value, FunctionType):
                pending += [value] if _folder(value) == folder else []
            elif isinstance(value, _CONSTANTS):
                texts.add(f"{name}: {used} = {_value_text(value)}")
    return texts


def _folder(function: FunctionType) -> list[str]:
    return function.__module__.split(".")[:_FOLDER_PARTS]


def _used(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the values of the module and of the closure that a function names."""
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for name, cell in zip(
        function.__code__.co_freevars, function.__closure__ or (), strict=True
    ):
        yield name, cell.cell_contents


def _names(code: CodeType) -> set[str]:
    """Return the names in a function and in the functions inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


@cache
def _source(function: FunctionType) -> str:
    """Return the lines of a function without decorators and docstring."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
        node = ast.parse(text).body[0]
    except (OSError, SyntaxError):
        # A lambda in the middle of a statement, or no source at hand.
        return function.__qualname__
    lines: list[str | None] = [*text.splitlines()]
    if isinstance(node, ast.FunctionDef):
        lines[: node.lineno - 1] = [None] * (node.lineno - 1)
        if ast.get_docstring(node) is not None:
            first = node.body[0]
            last = first.end_lineno or first.lineno
            lines[first.lineno - 1 : last] = [None] * (last - first.lineno + 1)
    return "\n".join(line for line in lines if line is not None)


def _value_text(value: Any) -> str:
    """Return a value as text that is the same in every process."""
    if isinstance(value, dict):
        return str({str(key): _value_text(part) for key, part in value.items()})
    if isinstance(value, tuple | list):
        return str([_value_text(part) for part in value])
    text = repr(value)
    unstable = " at 0x" in text or isinstance(value, set | frozenset)
    return type(value).__qualname__ if unstable else text
