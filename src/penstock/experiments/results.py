# SPDX-License-Identifier: MIT
"""Results of earlier comparisons: read them, and merge them with other rows.

``penstock compare`` reads the JSON files that it has written. Instances are recognised
by their digest: the policies of several files on one instance stand side by side, and
an instance that occurs twice counts once. Only policies with a result on every instance
can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from penstock.analysis import Bound
from penstock.errors import InputError, plain_mismatch
from penstock.experiments.study import Row
from penstock.model.documents import check_format, inside

__all__ = [
    "BoundFormat",
    "BoundResultFormat",
    "BoundedInstanceFormat",
    "ComparedInstanceFormat",
    "ComparisonFormat",
    "PolicyResultFormat",
    "merged",
    "policies_in_all",
    "rows_of_result",
]

#: Columns that may differ between two runs of one policy on one instance.
_INDIFFERENT: Final = ("instance", "file", "result", "bound", "seconds")


class PolicyResultFormat(msgspec.Struct):
    """What one policy did on one instance."""

    min_yield: float
    utilization: float
    efficiency: float
    set_utilization: float
    stretch: float | None
    io_slowdown: float | None
    yields: list[float]
    events: int
    decisions: int
    seconds: float


class BoundFormat(msgspec.Struct):
    """The MinYield that no scheduler can exceed on an instance."""

    min_yield: float
    method: str


class ComparedInstanceFormat(msgspec.Struct):
    """One instance of a result file."""

    index: int
    digest: str
    pressure: float
    window: tuple[float, float]
    bound: BoundFormat | None
    applications: tuple[str, ...]
    policies: dict[str, PolicyResultFormat]
    file: str | None = None


class ComparisonFormat(msgspec.Struct):
    """A result of ``penstock compare --json``."""

    penstock: Literal[1]
    provenance: dict[str, Any]
    instances: list[ComparedInstanceFormat]


class BoundedInstanceFormat(msgspec.Struct):
    """One instance of a result of ``penstock bound --json``."""

    index: int
    digest: str
    pressure: float
    window: tuple[float, float]
    bound: BoundFormat


class BoundResultFormat(msgspec.Struct):
    """A result of ``penstock bound --json``."""

    penstock: Literal[1]
    provenance: dict[str, Any]
    instances: list[BoundedInstanceFormat]


def rows_of_result(document: dict[str, Any], path: str) -> list[Row]:
    """Return the rows of a document that ``penstock compare --json`` wrote.

    Raises `InputError` if the document was changed or cut, or has another format.
    """
    with inside(f"{path}: "):
        check_format(document)
    if not document["instances"]:
        raise InputError(
            "this result of penstock compare has no instances",
            where=path,
            remedy="write it again with penstock compare --json",
        )
    try:
        instances = msgspec.convert(document["instances"], list[ComparedInstanceFormat])
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        raise InputError(
            "this result of penstock compare is damaged at "
            f"instances{place.rstrip('`')}: {plain_mismatch(what)}",
            where=path,
            remedy="write it again with penstock compare --json",
        ) from None
    return [row for instance in instances for row in _rows(instance, path)]


def _rows(instance: ComparedInstanceFormat, path: str) -> Iterator[Row]:
    bound: Any = instance.bound
    for label, outcome in instance.policies.items():
        numbers = msgspec.to_builtins(outcome)
        for name in ("stretch", "io_slowdown"):
            numbers[name] = math.inf if numbers[name] is None else numbers[name]
        yield {
            "instance": instance.index,
            "file": instance.file or f"{path}, instance {instance.index}",
            "result": path,
            "pressure": instance.pressure,
            "window": instance.window,
            "digest": instance.digest,
            "bound": Bound(bound.min_yield, bound.method) if bound else None,
            "applications": instance.applications,
            "policy": label,
            **numbers,
        }


def policies_in_all(rows: Sequence[Row]) -> list[str]:
    """Return the labels of the policies that have a result on every instance."""
    by_instance: dict[str, dict[str, None]] = {}
    for row in rows:
        by_instance.setdefault(row["digest"], {})[row["policy"]] = None
    first, *others = by_instance.values()
    return [label for label in first if all(label in other for other in others)]


def merged(rows: Iterable[Row], labels: Sequence[str]) -> list[Row]:
    """Return the rows of these policies on every instance, numbered from 0.

    Raises `InputError` if two results of a policy on one instance differ, or if one is
    missing.
    """
    instances: dict[str, dict[str, Row]] = {}
    for row in rows:
        kept = instances.setdefault(row["digest"], {}).setdefault(row["policy"], row)
        if _differ(kept, row):
            raise InputError(
                f"policy {row['policy']} has another result here than in "
                f"{kept['file']}",
                where=row["file"],
                remedy="another version of penstock computed it: compute both again",
            )
    return [
        {**_chosen(found, label), "instance": number}
        for number, found in enumerate(instances.values())
        for label in labels
    ]


def _chosen(found: dict[str, Row], label: str) -> Row:
    first = next(iter(found.values()))
    if label not in found:
        instance = first["file"]
        raise InputError(
            f"it has no result of policy {label} for {instance}",
            where=str(first.get("result", instance)),
            remedy=f"it has {', '.join(found)}; to simulate {label}, name the instance "
            "file, too",
        )
    bounds = [row["bound"] for row in found.values() if row["bound"]]
    return {
        **found[label],
        "file": first["file"],
        "bound": bounds[0] if bounds else None,
    }


def _differ(one: Row, other: Row) -> bool:
    names = (one.keys() & other.keys()).difference(_INDIFFERENT)
    return any(one[name] != other[name] for name in names)
