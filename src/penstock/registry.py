# SPDX-License-Identifier: MIT
"""Finding what a user names: in a table, among installed packages, by dotted name.

An *entry* is a function in a module of its own. It is asked for by ``name`` or
``name:key=value,key=value``, where the name is

- one of the table of penstock's own entries;
- one that an installed package announces under an entry-point group;
- the dotted name of a module with the function, or of the function itself; the
  current folder counts.

The module may declare ``PARAMETERS``, a tuple of `Parameter`: what can be set. A table
holds all that is needed to list its entries, so that listing them imports none.
"""

from __future__ import annotations

import importlib
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError, UnknownNameError, reason_of
from penstock.units import parse_bandwidth, parse_time, parse_volume

__all__ = [
    "PAPERS",
    "Lookup",
    "Parameter",
    "Registry",
    "TableRow",
    "labelled",
    "parameter_values",
]

#: What "papers/N" stands for, here and in all docstrings.
PAPERS: Final = {
    "papers/1": "Benoit, Herault, Perotin, Robert, Vivien: Revisiting I/O "
    "bandwidth-sharing strategies for HPC applications (2024)",
    "papers/2": "Bandet, Boito, Pallez: Allocation and placement algorithms for "
    "scheduling distributed I/O resources in HPC systems (2024)",
    "papers/3": "Boito, Pallez, Teylo, Vidal: IO-SETS: Simple and efficient "
    "approaches for I/O bandwidth management (2022)",
    "papers/4": "Kougkas, Dorier, Latham, Ross, Sun: Leveraging burst buffer "
    "coordination to prevent I/O interference (2016)",
    "papers/5": "Xu, Zhao: Two-level throughput and latency IO control for parallel "
    "file systems (2013)",
}

_PARSERS: Final = {
    "s": partial(parse_time, bare=True),
    "bytes": partial(parse_volume, bare=True),
    "bytes/s": partial(parse_bandwidth, bare=True),
}


@dataclass(frozen=True, slots=True)
class TableRow:
    """One line of a table."""

    module: str
    """File in the package of the table."""
    summary: str
    """First line of the file's docstring."""
    paper: str
    """Where it comes from."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """What can be set of an entry: a quantity, or one of several words.

    A quantity is whole if its default is. A word is given to the entry as its
    position in `choices`.
    """

    name: str
    meaning: str
    default: float | str
    unit: str = ""
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = math.inf
    least: float = 0.0
    """Smallest quantity but 0, which then has a meaning of its own."""

    def parse(self, text: str) -> float:
        """Return `text` as the number that the entry will be given."""
        if self.choices:
            if text not in self.choices:
                raise UnknownNameError("value", text, self.choices, where=self.name)
            return float(self.choices.index(text))
        value = self._number(text)
        fits = self.low <= value <= self.high and value < math.inf
        if not fits or 0 < value < self.least:
            raise InputError(
                f"{text!r} is out of range",
                where=self.name,
                remedy=f"{self.meaning}; {self._range()}",
            )
        return value

    def _range(self) -> str:
        """Return in words what fits."""
        zero = "0 or " if self.least else ""
        most = "" if math.isinf(self.high) else f", at most {self.high:g}"
        return f"{zero}at least {max(self.low, self.least):g}{most}"

    def show(self, value: float) -> str:
        """Return the shortest text that `parse` makes `value` of."""
        if self.choices:
            return self.choices[int(value)]
        return repr(value).removesuffix(".0")

    def _number(self, text: str) -> float:
        whole = isinstance(self.default, int)
        parse = _PARSERS.get(self.unit, int if whole else float)
        try:
            return parse(text)
        except (ValueError, InputError):
            wanted = "a whole number" if whole else "a number"
            unit = f" in {self.unit}" if self.unit else ""
            raise InputError(
                f"{text!r} is not {wanted}{unit}", where=self.name, remedy=self.meaning
            ) from None


@dataclass(frozen=True, slots=True)
class Lookup:
    """An entry that was asked for."""

    name: str
    """As in the table, as announced, or dotted."""
    function: Callable[..., Any]
    home: Any
    """The module that declares things about it."""
    declared: tuple[Parameter, ...]
    given: Mapping[str, str]
    """Key -> value, as the user wrote them."""


@dataclass(frozen=True, slots=True)
class Registry:
    """All entries of one kind."""

    kind: str
    """What an entry is called in messages."""
    plural: str
    """What entries are called in headings."""
    decides: str
    """The question that an entry answers."""
    package: str
    """Where the modules of the table and the template are."""
    table: Mapping[str, TableRow]
    function: str
    """Name of the function in every module."""
    arguments: tuple[str, ...]
    """What the function is given by position."""
    by_name: bool = True
    """Whether it is also given, by name, those parameters that it takes."""

    @property
    def group(self) -> str:
        """Entry-point group in which other packages announce entries."""
        return f"penstock.{self.plural}"

    def installed(self) -> dict[str, EntryPoint]:
        """Return what other packages announce, by name."""
        return {point.name: point for point in entry_points(group=self.group)}

    def find(self, text: str) -> Lookup:
        """Return the entry for ``name`` or ``name:key=value,key=value``."""
        name, _, settings = text.partition(":")
        found = self._load(name)
        try:
            return self._checked(name, found, _given(settings))
        except InputError as error:
            raise error.at(f"{self.kind} {name}: ") from None

    def _load(self, name: str) -> Any:
        """Import the module (or function) that is called `name`."""
        if name in self.table:
            return importlib.import_module(f"{self.package}.{self.table[name].module}")
        points = self.installed()
        try:
            found = points[name].load() if name in points else _imported(name)
        except (Exception, SystemExit) as error:  # whatever somebody's code raises
            module = points[name].value if name in points else name
            raise InputError(
                f"importing {module} failed: {reason_of(error)}",
                where=f"{self.kind} {name}",
            ) from error
        if found is None:
            raise self._unknown(name, [*self.table, *points])
        return found

    def _unknown(self, name: str, known: list[str]) -> InputError:
        if not Path(f"{name}.py").is_file():
            return UnknownNameError(self.kind, name, known)
        return InputError(
            f"unknown {self.kind} {name!r}",
            remedy=f"for that of {name}.py write {name}.{self.function}",
        )

    def _checked(self, name: str, found: Any, given: Mapping[str, str]) -> Lookup:
        """Return the function with what its module declares, if that is in order."""
        function = getattr(found, self.function, found)
        plain = getattr(function, "py_func", function)
        if not callable(plain):
            raise self._broken(f"no function `{self.function}`")
        home = found if inspect.ismodule(found) else inspect.getmodule(plain)
        declared = getattr(home, "PARAMETERS", ())
        if not isinstance(declared, (tuple, list)) or not all(
            isinstance(parameter, Parameter) for parameter in declared
        ):
            raise self._broken("PARAMETERS is not a tuple of `Parameter`")
        return Lookup(name, function, home, self._bound(plain, declared), given)

    def _bound(
        self, plain: Callable[..., Any], declared: Sequence[Parameter]
    ) -> tuple[Parameter, ...]:
        """Return those parameters that can be set, if the function can be called."""
        try:
            signature = inspect.signature(plain)
            if self.by_name:
                declared = [p for p in declared if p.name in signature.parameters]
            named = {p.name: p.default for p in declared} if self.by_name else {}
            signature.bind(*self.arguments, **named)
        except (TypeError, ValueError):
            rest = " and declared parameters only" if self.by_name else ""
            raise self._broken(
                f"`{self.function}` must take ({', '.join(self.arguments)}){rest}"
            ) from None
        return tuple(declared)

    def _broken(self, what: str) -> InputError:
        template = f"{self.package.replace('.', '/')}/_template.py"
        return InputError(what, remedy=f"see {template}")


def parameter_values(
    owner: str, declared: Sequence[Parameter], given: Mapping[str, str]
) -> dict[str, float]:
    """Return the values of all `declared` parameters, the `given` ones as given.

    `owner` is named in messages.
    """
    known = {parameter.name: parameter for parameter in declared}
    for key in given:
        if key not in known:
            raise UnknownNameError("parameter", key, known, where=owner)
    texts = {p.name: str(p.default) for p in declared} | dict(given)
    try:
        return {key: known[key].parse(text) for key, text in texts.items()}
    except InputError as error:
        raise error.at(f"{owner}: ") from None


def labelled(
    name: str, declared: Sequence[Parameter], values: Mapping[str, float]
) -> str:
    """Return `name` with those parameters that are not at their default."""
    changed = [
        f"{p.name}={p.show(values[p.name])}"
        for p in sorted(declared, key=lambda p: p.name)
        if values[p.name] != p.parse(str(p.default))
    ]
    return f"{name}:{','.join(changed)}" if changed else name


def _given(settings: str) -> dict[str, str]:
    """Return the keys and values of ``key=value,key=value``."""
    given: dict[str, str] = {}
    for setting in filter(None, settings.split(",")):
        key, equals, value = setting.partition("=")
        if not equals:
            raise InputError(
                f"{setting!r} is not a parameter",
                remedy="write name:key=value,key=value",
            )
        if key.strip() in given:
            raise InputError(f"{key.strip()} is given twice", remedy="leave one out")
        given[key.strip()] = value.strip()
    return given


def _imported(name: str) -> Any:
    """Import a module, or an attribute of one; None if there is no such thing."""
    parent, dot, attribute = name.rpartition(".")
    if not dot or not all(name.split(".")):
        return None
    if "" not in sys.path:
        sys.path.insert(0, "")
    for module in (name, parent):
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if not _is_absent(module, error):
                raise
        else:
            return found if module == name else getattr(found, attribute, None)
    return None


def _is_absent(module: str, error: ModuleNotFoundError) -> bool:
    """Tell whether it is `module` itself, or a package around it, that is missing."""
    return error.name is not None and f"{module}.".startswith(f"{error.name}.")
