# SPDX-License-Identifier: MIT
"""The memory of the engine at the beginning of a simulation, made from an instance.

`penstock.sim.state` describes the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, cast

import numpy as np

from penstock.kernels import kinds
from penstock.model import Instance, Sharing
from penstock.sim.state import (
    END_OF_APPLICATION,
    ENDED,
    FAULTY_INDEX,
    NOW,
    RECORD_LIMIT,
    EngineInput,
    State,
)

__all__ = ["new_input", "new_state"]

_BY_APPLICATION: Final = (
    *("position", "working", "work_end", "unfinished", "work_done"),
    *("transferred", "finished", "begin_work", "begin_transferred"),
)
_BY_TARGET: Final = (
    *("flow_count", "wake", "next_completion", "occupied", "occupied_since"),
    *("is_undecided", "undecided"),
)


def new_input(
    instance: Instance,
    parameters: Sequence[float],
    *,
    steady: bool,
    until_first_end: bool = False,
    record: bool,
    validate: bool,
) -> EngineInput:
    """Return `instance` as an engine input, for a policy with these parameters."""
    window = instance.window
    slack = 1e-9 * (window.end - min(a.start for a in instance.applications))
    steady = steady and not until_first_end
    return _input(instance)._replace(
        ends_before=window.end - slack if steady else -np.inf,
        until_first_end=int(until_first_end),
        parameters=_column(parameters, np.float64),
        record=int(record),
        validate=int(validate),
    )


@lru_cache(maxsize=1)
def _input(instance: Instance) -> EngineInput:
    """Return the engine input of an instance; cached for the next policy."""
    applications = instance.applications
    platform = instance.platform
    lengths = np.array([len(a.work) for a in applications], dtype=np.int64)
    volumes = [np.append(a.volume, END_OF_APPLICATION) for a in applications]
    widths = np.array([len(a.targets) for a in applications], dtype=np.int64)
    target = np.concatenate([a.targets for a in applications]).astype(np.int64)
    flow_cap = np.repeat(instance.caps / widths, widths)
    portion = np.repeat(1.0 / widths, widths)
    by_time = platform.sharing is Sharing.TIME
    flow_count = np.bincount(target, minlength=platform.targets)

    def by_flow(values: list[Any], kind: type[Any]) -> Any:
        return _column(np.repeat(np.array(values, dtype=kind), widths))

    return EngineInput(
        applications=len(applications),
        entries=len(target),
        targets=platform.targets,
        leaves=1 << (platform.targets - 1).bit_length(),
        capacity=1.0 if by_time else platform.target_bandwidth,
        window_begin=instance.window.begin,
        window_end=instance.window.end,
        ends_before=-np.inf,
        until_first_end=0,
        dedicated_events=float(instance.dedicated_events()),
        origin=min(a.start for a in applications),
        work=_column(np.concatenate([a.work for a in applications])),
        volume=_column(np.concatenate(volumes)),
        first=_column(np.cumsum(lengths) - lengths),
        start=_column([a.start for a in applications], np.float64),
        bandwidth=_column(instance.caps),
        first_flow=_column(np.concatenate([[0], np.cumsum(widths)]), np.int64),
        owner=by_flow(list(range(len(applications))), np.int64),
        target=_column(target),
        portion=_column(portion / flow_cap if by_time else portion),
        unit=_column(flow_cap if by_time else np.ones(len(target))),
        cap=_column(np.ones(len(target)) if by_time else flow_cap),
        release=by_flow([a.release for a in applications], np.float64),
        nodes=by_flow([a.nodes for a in applications], np.int64),
        period=by_flow([a.period for a in applications], np.float64),
        user=by_flow(_numbered([a.user for a in applications]), np.int64),
        group=by_flow(_numbered([a.group for a in applications]), np.int64),
        first_entry=_column(np.cumsum(flow_count) - flow_count),
        parameters=_column([], np.float64),
        record=0,
        validate=0,
    )


def _numbered(names: list[str]) -> list[int]:
    """Return a number for each name: equal names, equal numbers, from 0 on."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return [numbers[name] for name in names]


def new_state(instance: Instance, inputs: EngineInput) -> State:
    """Return the state before the first event.

    The caller empties a log whenever it has `RECORD_LIMIT` entries. The logs also have
    room for all entries that one instant can add beyond that.
    """
    sizes = dict.fromkeys(_BY_APPLICATION, inputs.applications)
    sizes |= dict.fromkeys(_BY_TARGET, inputs.targets)
    sizes |= {"counter": ENDED + 1, "clock": NOW + 1, "due": 2 * inputs.leaves}
    sizes["scratch"] = 8 * inputs.entries
    operations = sum(len(a.volume) for a in instance.applications)
    for prefix, most in (("log_", 2 * operations), ("grant_", 2 * inputs.entries)):
        size = RECORD_LIMIT + most + inputs.targets if inputs.record else 1
        sizes |= {n: size for n in State._fields if n.startswith(prefix)}
    columns: dict[str, np.ndarray[Any, Any]] = {
        name: np.zeros(
            sizes.get(name, inputs.entries),
            dtype=np.int64 if kind == "Ints" else np.float64,
        )
        for name, kind in kinds(State).items()
    }
    columns["clock"][NOW] = min(a.start for a in instance.applications)
    columns["counter"][FAULTY_INDEX] = -1
    for name in ("finished", "wake", "next_completion", "due"):
        columns[name][:] = np.inf
    lost = [a.lost_at_start(c) for a, c in instance.with_caps()]
    columns["lost"][:] = np.array(lost)[cast(Any, inputs.owner)]
    columns["work_done"][:] = [a.done_work for a in instance.applications]
    columns["transferred"][:] = [a.done_volume for a in instance.applications]
    return State(**cast(Any, columns))


def _column(values: Any, kind: type[Any] | None = None) -> Any:
    """Return `values` as a column; never empty, because it must have an address."""
    array = np.ascontiguousarray(values, dtype=kind)
    return array if array.size else np.zeros(1, dtype=array.dtype)
