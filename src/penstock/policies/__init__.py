# SPDX-License-Identifier: MIT
"""Bandwidth-sharing policies: who gets how much bandwidth now.

A policy is one file: copy `_template.py`, then add one row to `POLICIES`. A
policy outside of penstock needs no row: name it by its dotted name, or install
it under the entry-point group ``penstock.policies``.

The table holds what is needed to list the policies, so that listing them
imports none (and neither Numba).
"""

from __future__ import annotations

import importlib
import inspect
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from penstock.policies.policy import Policy

__all__ = [
    "ENTRY_POINTS",
    "PAPERS",
    "POLICIES",
    "Row",
    "get_policy",
    "installed_policies",
]

#: What "papers/N" stands for, here and in all docstrings.
PAPERS: Final = {
    "papers/1": "Benoit, Herault, Perotin, Robert, Vivien: Revisiting I/O "
    "bandwidth-sharing strategies for HPC applications",
    "papers/3": "Boito, Pallez, Teylo, Vidal: IO-SETS: Simple and efficient "
    "approaches for I/O bandwidth management (2022)",
}

#: Entry-point group in which other packages may announce policies.
ENTRY_POINTS: Final = "penstock.policies"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of policies."""

    module: str
    """File in this package."""
    summary: str
    """First line of the file's docstring."""
    paper: str
    """Where it comes from."""


POLICIES: Final[dict[str, Row]] = {
    "fair-share": Row(
        "fair_share",
        "Give every active application the same fraction of its cap.",
        "papers/1 §4.1",
    ),
    "fcfs": Row(
        "fcfs",
        "Serve operations in the order in which they were posted.",
        "papers/1 §4.1",
    ),
    "greedy-yield": Row(
        "greedy_yield",
        "Serve the application that has progressed least, relative to its age.",
        "papers/1 §4.1",
    ),
    "greedy-com": Row(
        "greedy_com",
        "Serve the operation that can be completed soonest.",
        "papers/1 §4.1",
    ),
    "look-ahead-greedy-yield": Row(
        "look_ahead_greedy_yield",
        "Serve first whoever leaves the best minimum yield at the next completion.",
        "papers/1 §4.1",
    ),
    "periodic-greedy-yield": Row(
        "periodic_greedy_yield",
        "Serve the lowest yield, and look again at regular intervals.",
        "papers/1 §4.1",
    ),
    "set-10": Row(
        "set_10",
        "Share between orders of magnitude of the period, serve in order within.",
        "papers/3 §3.1, papers/1 §4.2",
    ),
    "best-next-event": Row(
        "best_next_event",
        "Share so that the minimum yield at the next completion is the best possible.",
        "papers/1 §4.3",
    ),
    "exclusive-fcfs": Row(
        "exclusive_fcfs",
        "One set for all: serve in the order of posting.",
        "papers/3 §3",
    ),
    "set-fair-share": Row(
        "set_fair_share",
        "Share equally between the sets of set-10, serve in order within.",
        "papers/3 §3 (ablation)",
    ),
    "share-priority": Row(
        "share_priority",
        "A set for every application, with the priorities of set-10.",
        "papers/3 §3 (ablation)",
    ),
}


def installed_policies() -> dict[str, EntryPoint]:
    """Return the policies that other packages announce, by name."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def get_policy(text: str) -> Policy:
    """Return the policy for ``name`` or ``name:key=value,key=value``.

    `name` is one of the table, one of an installed package, or the dotted name of
    a module with a function ``allocate`` (or of such a function).
    """
    from penstock.policies.policy import bind  # noqa: PLC0415 - imports Numba

    name, _, settings = text.partition(":")
    given = {}
    for setting in filter(None, settings.split(",")):
        key, equals, value = setting.partition("=")
        if not equals:
            raise InputError(
                f"{setting!r} is not a parameter",
                where=f"policy {name}",
                remedy="write name:key=value,key=value",
            )
        given[key.strip()] = value.strip()
    allocate, declared = _load(name)
    return bind(name, allocate, declared, given)


def _load(name: str) -> tuple[Any, Any]:
    """Return the function and the parameters that policy `name` declares."""
    if name in POLICIES:
        module = importlib.import_module(f"{__name__}.{POLICIES[name].module}")
        return module.allocate, getattr(module, "PARAMETERS", ())
    points = installed_policies()
    if name in points:
        try:
            found = points[name].load()
        except Exception as error:  # whatever somebody's code raises
            raise _import_error(points[name].value, name, error) from error
    elif "." in name:
        found = _import_dotted(name)
    else:
        raise UnknownNameError("policy", name, [*POLICIES, *points])
    return _checked(found, name)


def _import_dotted(name: str) -> Any:
    """Import a module, or an attribute of one; the current folder counts."""
    if not all(name.split(".")):
        raise UnknownNameError("policy", name, POLICIES)
    if "" not in sys.path:
        sys.path.insert(0, "")
    parent, _, attribute = name.rpartition(".")
    for module, rest in ((name, None), (parent, attribute)):
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module}.".startswith(f"{error.name}."):
                raise _import_error(module, name, error) from error
            continue
        except Exception as error:  # whatever somebody's code raises
            raise _import_error(module, name, error) from error
        if rest is None or hasattr(found, rest):
            return found if rest is None else getattr(found, rest)
    raise UnknownNameError("policy", name, POLICIES)


def _import_error(module: str, name: str, error: Exception) -> InputError:
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return InputError(f"importing {module} failed: {reason}", where=f"policy {name}")


def _checked(found: Any, name: str) -> tuple[Any, Any]:
    """Return function and parameters of a policy from outside, if it is one."""
    allocate = getattr(found, "allocate", found)
    if inspect.ismodule(found):
        declared = getattr(found, "PARAMETERS", ())
    else:
        home = sys.modules.get(getattr(allocate, "__module__", ""))
        declared = getattr(home, "PARAMETERS", ())
    plain = getattr(allocate, "py_func", allocate)
    if not callable(plain) or inspect.ismodule(plain):
        raise InputError(
            "no function `allocate`",
            where=f"policy {name}",
            remedy="see penstock/policies/_template.py",
        )
    try:
        arguments = len(inspect.signature(plain).parameters)
    except ValueError:
        arguments = -1
    if arguments != 2:
        raise InputError(
            "`allocate` must take two arguments, (view, rates)",
            where=f"policy {name}",
            remedy="see penstock/policies/_template.py",
        )
    from penstock.policies.policy import Parameter  # noqa: PLC0415 - imports Numba

    if not isinstance(declared, (tuple, list)) or not all(
        isinstance(parameter, Parameter) for parameter in declared
    ):
        raise InputError(
            "PARAMETERS is not a tuple of `Parameter`",
            where=f"policy {name}",
            remedy="see penstock/policies/_template.py",
        )
    return allocate, tuple(declared)
