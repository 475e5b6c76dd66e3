# SPDX-License-Identifier: MIT
"""Plug-ins: policies, placement algorithms, staging strategies, request schedulers.

A plug-in is a function in a module of its own. A user selects one with the text
``name`` or ``name:key=value,key=value``. The name is

- a name in the table of penstock's own plug-ins (`Registry.table`), or
- a name that an installed package announces under an entry-point group, or
- the dotted name of a module with the function, or of the function itself; modules
  in the current folder can be named, too.

The module may declare ``PARAMETERS``, a tuple of `Parameter`. `Registry.find` parses
the text once; `BoundPlugin.bind` turns the result into a plug-in with a value for
every parameter. All code of plug-ins is called through `call_plugin`.

A table holds all that is needed to list its plug-ins. Listing them imports none.
"""

from __future__ import annotations

import importlib
import inspect
import math
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar, Final, Self, TypeAlias

from penstock.errors import (
    InputError,
    PenstockError,
    PolicyError,
    UnknownNameError,
    reason_of,
)
from penstock.units import parse_bandwidth, parse_time, parse_volume

__all__ = [
    "PAPERS",
    "BoundPlugin",
    "Lookup",
    "Parameter",
    "Registry",
    "Setting",
    "TableRow",
    "call_plugin",
    "name_in_label",
]

#: Value of a parameter: a number in base units (s, bytes, bytes/s), or a word.
Setting: TypeAlias = float | str

#: The papers by the names that code and documentation use; see docs/papers.md.
PAPERS: Final = {
    "bandwidth sharing": "Benoit, Herault, Perotin, Robert, Vivien: Revisiting "
    "I/O bandwidth-sharing strategies for HPC applications (2024)",
    "target allocation": "Bandet, Boito, Pallez: Allocation and placement "
    "algorithms for scheduling distributed I/O resources in HPC systems (2024)",
    "IO-SETS": "Boito, Pallez, Teylo, Vidal: IO-SETS: Simple and efficient "
    "approaches for I/O bandwidth management (2022)",
    "burst-buffer coordination": "Kougkas, Dorier, Latham, Ross, Sun: Leveraging "
    "burst buffer coordination to prevent I/O interference (2016)",
    "two-level scheduling": "Xu, Zhao: Two-level throughput and latency IO "
    "control for parallel file systems (2013)",
}

_PARSERS: Final = {
    "s": partial(parse_time, bare=True),
    "bytes": partial(parse_volume, bare=True),
    "bytes/s": partial(parse_bandwidth, bare=True),
}


@dataclass(frozen=True, slots=True)
class TableRow:
    """One plug-in in the table of a registry."""

    module: str
    """Name of its module in the package of the table; dotted if it is in a folder."""
    summary: str
    """First line of the module's docstring."""
    paper: str
    """Paper and section that describe it."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a plug-in: a number, or one of several words."""

    name: str
    meaning: str
    """One phrase for messages and tables."""
    default: Setting
    """An int here makes the parameter a whole number."""
    unit: str = ""
    """"s", "bytes", "bytes/s", or "" for a plain number."""
    choices: tuple[str, ...] = ()
    """The words, if the parameter is a word."""
    low: float = 0.0
    high: float = math.inf
    least: float = 0.0
    """Smallest number other than 0; 0 then has a meaning of its own."""

    def parse(self, text: str) -> Setting:
        """Return the value that `text` stands for: a word, or a number in base units.

        Raises `InputError` if the text is not a value of this parameter.
        """
        if self.choices:
            if text not in self.choices:
                raise UnknownNameError("value", text, self.choices, where=self.name)
            return text
        value = self._parse_number(text)
        fits = self.low <= value <= self.high and value < math.inf
        if not fits or 0 < value < self.least:
            raise InputError(
                f"{text!r} is out of range",
                where=self.name,
                remedy=f"{self.meaning}; {self._range()}",
            )
        return value

    def number(self, value: Setting) -> float:
        """Return `value` as a float, for compiled code: a word is its position."""
        return float(self.choices.index(value) if isinstance(value, str) else value)

    def _range(self) -> str:
        """Return the permitted range in words."""
        zero = "0 or " if self.least else ""
        most = "" if math.isinf(self.high) else f", at most {self.high:g}"
        return f"{zero}at least {max(self.low, self.least):g}{most}"

    def show(self, value: Setting) -> str:
        """Return the shortest text that `parse` turns into `value`."""
        return value if isinstance(value, str) else repr(value).removesuffix(".0")

    def _parse_number(self, text: str) -> float:
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
    """The result of `Registry.find`: a plug-in and the texts of its parameters."""

    name: str
    """Name in the table, name of an entry point, or dotted name."""
    function: Callable[..., Any]
    module: Any
    """The module that declares ``PARAMETERS``."""
    declared: tuple[Parameter, ...]
    given: Mapping[str, str]
    """Parameter -> value, as the user wrote them."""


@dataclass(frozen=True)
class BoundPlugin:
    """A plug-in with a value for each of its parameters: ready to be called.

    Subclasses add what their kind of plug-in is called for.
    """

    KIND: ClassVar[str] = "plug-in"
    """Kind of plug-in, as in messages."""

    name: str
    """Name in the table, name of an entry point, or dotted name."""
    label: str
    """`name` with the parameters that are not at their default, as a text that
    selects the same plug-in."""
    function: Callable[..., Any] = field(repr=False)
    settings: Mapping[str, Setting] = field(default_factory=dict, repr=False)
    """Parameter -> value, in the order in which the plug-in declares them."""
    given: frozenset[str] = field(default=frozenset(), repr=False)
    """The parameters that the user has set, even those set to their default."""

    @classmethod
    def bind(cls, lookup: Lookup) -> Self:
        """Return the plug-in with the values that the user has given.

        Raises `InputError` if a parameter is unknown or a value is not permitted.
        """
        owner = f"{cls.KIND} {lookup.name}"
        settings = _settings(owner, lookup.declared, lookup.given)
        label = _label(lookup.name, lookup.declared, settings)
        given = frozenset(lookup.given)
        return cls(lookup.name, label, lookup.function, settings, given)

    @property
    def title(self) -> str:
        """Kind and label, for messages: ``policy set-10:period=given``."""
        return f"{self.KIND} {self.label}"

    def call(self, *arguments: object) -> Any:
        """Call the plug-in's function with `arguments`, and its settings by name.

        Raises `PolicyError` if the function fails.
        """
        failure = f"{self.title} failed"
        return call_plugin(failure, self.function, *arguments, **self.settings)

    def __str__(self) -> str:
        return self.label


def name_in_label(label: str) -> str:
    """Return the name of the plug-in in ``name`` or ``name:key=value,key=value``."""
    return label.partition(":")[0]


def call_plugin(
    failure: str | Callable[[], str],
    function: Callable[..., Any],
    /,
    *arguments: Any,
    **settings: Any,
) -> Any:
    """Call foreign code: ``function(*arguments, **settings)``.

    RATIONALE: a plug-in may raise anything, even SystemExit. This is the one place
    where penstock catches everything. What the plug-in raises becomes a
    `PolicyError` that names file and line; errors of penstock itself and Ctrl-C pass
    unchanged.

    Parameters
    ----------
    failure
        What the message says before the original error, e.g. ``policy fcfs failed``;
        a function that returns this text if it is costly to make.
    """
    try:
        return function(*arguments, **settings)
    except (PenstockError, KeyboardInterrupt):
        raise
    except BaseException as error:
        what = failure if isinstance(failure, str) else failure()
        raise PolicyError(
            f"{what}: {reason_of(error)}", remedy=f"correct {_foreign_line(error)}"
        ) from error


def _foreign_line(error: BaseException) -> str:
    """Return file and line of the innermost code outside penstock that failed."""
    own = str(Path(__file__).parent)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith((own, "<frozen")):
            return f"{Path(frame.filename).name} line {frame.lineno}"
    return "its code"


@dataclass(frozen=True, slots=True)
class Registry:
    """All plug-ins of one kind."""

    kind: str
    """What one plug-in is called in messages."""
    plural: str
    """What several plug-ins are called in headings."""
    decides: str
    """The question that a plug-in answers."""
    package: str
    """Package that holds the modules of the table, and ``_template.py``."""
    table: Mapping[str, TableRow]
    function: str
    """Name of the function in every module."""
    arguments: tuple[str, ...]
    """The positional arguments of the function."""
    by_name: bool = True
    """True if the function also gets its parameters, by name."""

    @property
    def group(self) -> str:
        """Entry-point group in which other packages announce plug-ins."""
        return f"penstock.{self.plural}"

    def installed(self) -> dict[str, EntryPoint]:
        """Return the plug-ins that other packages announce, by name."""
        return {point.name: point for point in entry_points(group=self.group)}

    def find(self, text: str) -> Lookup:
        """Return the plug-in for ``name`` or ``name:key=value,key=value``.

        Raises `InputError` if there is no such plug-in or it does not fit this
        registry, `PolicyError` if importing its module fails.
        """
        name, _, settings = text.partition(":")
        loaded = self._load(name)
        try:
            return self._check(name, loaded, _split_settings(settings))
        except InputError as error:
            raise error.at(f"{self.kind} {name}: ") from None

    def _load(self, name: str) -> Any:
        """Import the module or function that has this name."""
        if name in self.table:
            return importlib.import_module(f"{self.package}.{self.table[name].module}")
        points = self.installed()
        try:
            if name in points:
                failure = f"importing {points[name].value} failed"
                loaded = call_plugin(failure, points[name].load)
            else:
                loaded = call_plugin(f"importing {name} failed", _import, name)
        except PenstockError as error:
            raise error.at(f"{self.kind} {name}: ") from error.__cause__
        if loaded is None:
            raise self._unknown(name, [*self.table, *points])
        return loaded

    def _unknown(self, name: str, known: list[str]) -> InputError:
        module, dot, function = name.rpartition(".")
        if dot and Path(f"{module}.py").is_file():
            return InputError(
                f"unknown {self.kind} {name!r}",
                remedy=f"{module}.py has no {function}",
            )
        if not Path(f"{name}.py").is_file():
            return UnknownNameError(self.kind, name, known)
        return InputError(
            f"unknown {self.kind} {name!r}",
            remedy=f"to use {name}.py write {name}.{self.function}",
        )

    def _check(self, name: str, loaded: Any, given: Mapping[str, str]) -> Lookup:
        """Return the function and its declared parameters; raise if they do not fit."""
        function = getattr(loaded, self.function, loaded)
        plain = getattr(function, "py_func", function)
        if not callable(plain):
            raise self._broken(f"no function `{self.function}`")
        module = loaded if inspect.ismodule(loaded) else inspect.getmodule(plain)
        declared = getattr(module, "PARAMETERS", ())
        if not isinstance(declared, (tuple, list)) or not all(
            isinstance(parameter, Parameter) for parameter in declared
        ):
            raise self._broken("PARAMETERS is not a tuple of `Parameter`")
        return Lookup(name, function, module, self._parameters(plain, declared), given)

    def _parameters(
        self, plain: Callable[..., Any], declared: Sequence[Parameter]
    ) -> tuple[Parameter, ...]:
        """Return the declared parameters that the function takes.

        Raises `InputError` if the function cannot be called with them.
        """
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


def _settings(
    owner: str, declared: Sequence[Parameter], given: Mapping[str, str]
) -> dict[str, Setting]:
    """Return a value for every declared parameter: the given one, or its default.

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


def _label(
    name: str, declared: Sequence[Parameter], settings: Mapping[str, Setting]
) -> str:
    """Return `name` with the settings that differ from their default."""
    changed = [
        f"{p.name}={p.show(settings[p.name])}"
        for p in sorted(declared, key=lambda p: p.name)
        if settings[p.name] != p.parse(str(p.default))
    ]
    return f"{name}:{','.join(changed)}" if changed else name


def _split_settings(text: str) -> dict[str, str]:
    """Return the keys and values of ``key=value,key=value``."""
    given: dict[str, str] = {}
    for setting in filter(None, text.split(",")):
        key, equals, value = setting.partition("=")
        if not equals:
            raise InputError(
                f"{setting!r} is not a parameter",
                remedy="write name:key=value,key=value; penstock policies NAME lists "
                "the parameters",
            )
        if key.strip() in given:
            raise InputError(f"{key.strip()} is given twice", remedy="leave one out")
        given[key.strip()] = value.strip()
    return given


def _import(name: str) -> Any:
    """Import a module or an attribute of a module; return None if neither exists."""
    parent, dot, attribute = name.rpartition(".")
    if not dot or not all(name.split(".")):
        return None
    if "" not in sys.path:
        sys.path.insert(0, "")
    for module in (name, parent):
        try:
            loaded = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if not _is_absent(module, error):
                raise
        else:
            return loaded if module == name else getattr(loaded, attribute, None)
    return None


def _is_absent(module: str, error: ModuleNotFoundError) -> bool:
    """Return True if `module` itself, or a package around it, is missing."""
    return error.name is not None and f"{module}.".startswith(f"{error.name}.")
