# SPDX-License-Identifier: MIT
"""Read a user's own study from a TOML file.

::

    name = "short-iterations"
    instances = 20
    seed = 7
    policies = ["fair-share", "greedy-yield", "mypackage.mypolicy:patience=0.1"]
    bound = true                      # compute the bound as well; default false

    [workload]
    name = "synthetic"
    horizon = 400000                  # any parameter of the workload

    [sweep]                           # all combinations
    pressure = [0.5, 0.8, 1.0]
    n_small = [10, 30]

    [plot]
    x = "pressure"                    # default: the first key of [sweep]
    metrics = ["min_yield", "efficiency"]
"""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from matplotlib.figure import Figure

from penstock.errors import InputError, UnknownNameError
from penstock.experiments.claims import Tables
from penstock.experiments.output.charts import grouped_boxes
from penstock.experiments.reproduction import Reproduction
from penstock.experiments.study import METRICS, Point, Study, column_of, sweep
from penstock.model.documents import inside, refuse_other_kind

__all__ = [
    "PlotFormat",
    "StudyFormat",
    "read_study",
]

#: A name of a folder, except names that the results folder uses for other things.
_NAME: Final = re.compile(r"(?!(studies|live|index\.html)$)\w[\w.-]*")
_Names = Annotated[list[str], msgspec.Meta(min_length=1)]
_Values = Annotated[list[float | str | bool], msgspec.Meta(min_length=1)]


class PlotFormat(msgspec.Struct, forbid_unknown_fields=True):
    """What the figure of a study shows."""

    x: str | msgspec.UnsetType = msgspec.UNSET
    metrics: _Names | msgspec.UnsetType = msgspec.UNSET


class StudyFormat(msgspec.Struct, forbid_unknown_fields=True):
    """A study: a workload, its swept parameters and the policies (TOML)."""

    policies: _Names
    sweep: Annotated[dict[str, _Values], msgspec.Meta(min_length=1)]
    name: Annotated[str, msgspec.Meta(pattern=f"^{_NAME.pattern}$")] = "study"
    instances: Annotated[int, msgspec.Meta(ge=1)] = 10
    seed: Annotated[int, msgspec.Meta(ge=0)] = 1
    bound: bool = False
    workload: dict[str, float | str | bool] = {}
    plot: PlotFormat | msgspec.UnsetType = msgspec.UNSET


_KINDS: Final = {
    str: "a text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}


def read_study(path: str) -> Reproduction:
    """Read a study; return it as a figure, which is computed like those of papers.

    Raises `InputError` with the place in the file.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read the file: {error.strerror}",
            where=path,
            remedy="check its name and its permissions",
        ) from None
    with inside(f"{path}: "):
        return _declared(_decoded(data))


def _decoded(data: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        _refuse_json(data)
        raise InputError(f"not TOML: {error}", remedy="correct the syntax") from None


def _refuse_json(data: bytes) -> None:
    """Raise `InputError` if the data is another file of penstock, which is JSON."""
    with suppress(msgspec.DecodeError, ValueError, RecursionError):
        refuse_other_kind(msgspec.json.decode(data), set())


def _declared(document: dict[str, Any]) -> Reproduction:
    _known(document, StudyFormat, "")
    study = Study(
        name=_name(document),
        points=_points(document),
        instances=_typed(document, "instances", int, 10),
        policies=_texts(document, "policies", ()),
        seed=_seed(document),
        bounded=_typed(document, "bound", bool, default=False),
    )
    plot = _typed(document, "plot", dict, {})
    _known(plot, PlotFormat, "plot")
    swept = list(document["sweep"])
    x = plot.get("x", swept[0])
    if x not in swept:
        raise UnknownNameError("key of [sweep]", str(x), swept, where="plot.x")
    metrics = _texts(plot, "metrics", METRICS[:3], "plot.")
    for metric in metrics:
        if metric not in METRICS:
            raise UnknownNameError("metric", metric, METRICS, where="plot.metrics")

    apart = [column_of(k) for k in swept if k != x and len(document["sweep"][k]) > 1]

    def draw(tables: Tables) -> Figure:
        return grouped_boxes(tables.rows, column_of(x), metrics, apart=apart)

    return Reproduction(
        name=study.name,
        title=study.name,
        source="a study of one's own",
        study=lambda _scale: study,
        draw=draw,
    )


def _name(document: dict[str, Any]) -> str:
    name: str = _typed(document, "name", str, "study")
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot be the name of a study",
            where="name",
            remedy="use letters, digits, '-', '_' and '.', but not 'studies', 'live' "
            "or 'index.html'",
        )
    return name


def _seed(document: dict[str, Any]) -> int:
    seed: int = _typed(document, "seed", int, 1)
    if seed < 0:
        raise InputError(f"{seed} is negative", where="seed", remedy="give 0 or more")
    return seed


def _points(document: dict[str, Any]) -> tuple[Point, ...]:
    workload = _typed(document, "workload", dict, {"name": "synthetic"})
    if "name" not in workload:
        raise InputError("key 'name' is missing", where="workload", remedy="add it")
    name = _typed(workload, "name", str, "", "workload.")
    fixed = {key: value for key, value in workload.items() if key != "name"}
    swept = _typed(document, "sweep", dict, {})
    if not swept:
        raise InputError(
            "the study sweeps no parameter",
            where="sweep",
            remedy="give a list of values for a parameter of the workload",
        )
    for key, values in swept.items():
        if not isinstance(values, list) or not values:
            raise InputError(
                f"{values!r} is not a list of values",
                where=f"sweep.{key}",
                remedy="write [VALUE, VALUE, ...]",
            )
        for value in values:
            if values.count(value) > 1:
                raise InputError(
                    f"{value!r} is listed twice",
                    where=f"sweep.{key}",
                    remedy="leave one out",
                )
    return sweep(name, fixed, swept)


def _known(table: dict[str, Any], shape: type[msgspec.Struct], where: str) -> None:
    known = set(shape.__struct_fields__)
    for key in sorted(table.keys() - known):
        raise UnknownNameError("key", key, known, where=where)


def _typed(
    table: dict[str, Any], key: str, kind: type, default: Any, place: str = ""
) -> Any:
    value = table.get(key, default)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InputError(f"{value!r} is not {_KINDS[kind]}", where=f"{place}{key}")
    return value


def _texts(
    table: dict[str, Any], key: str, default: tuple[str, ...], place: str = ""
) -> tuple[str, ...]:
    """Return a list of texts; raise `InputError` if it is empty."""
    values = _typed(table, key, list, list(default), place)
    if not values or not all(isinstance(value, str) for value in values):
        raise InputError(
            f"{values!r} is not a list of names",
            where=f"{place}{key}",
            remedy="write at least one name",
        )
    return tuple(values)
