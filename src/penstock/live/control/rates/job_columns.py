# SPDX-License-Identifier: MIT
"""The engine's columns for the jobs of a controller, which come and go.

A job is a number, the index of its entries in the columns. Numbers of jobs that have
left are used again; the columns grow when all numbers are taken. The kernels of `steps`
work on the columns, compiled or interpreted, on the same memory. Columns are
memoryviews: the controller needs NumPy and Numba only to run compiled.

Times are in seconds, volumes in bytes, rates in bytes per second.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import partial
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any, Final, cast

from penstock.kernels import can_compile, interpreted, is_kernel, kinds
from penstock.live.control.rates import steps
from penstock.policies.ask import (
    LAWFUL,
    Breach,
    ask_policy,
    contract_error,
    read_only,
)
from penstock.policies.policy import Policy
from penstock.sim import containers, engine
from penstock.sim.state import (
    ACTIVE,
    END_OF_APPLICATION,
    ENDED,
    FAULTY_INDEX,
    GRANTED,
    NOW,
    EngineInput,
    State,
)

if TYPE_CHECKING:
    from penstock.live.control.rates.compiled_steps import CompiledSteps

__all__ = ["JobColumns", "prepare"]

#: Number of jobs for which the first columns have room.
_FIRST_SIZE: Final = 16
#: Sizes of the columns that do not grow with the number of jobs.
_FIXED: Final = {
    "clock": NOW + 1,
    "counter": ENDED + 1,
    "due": 2,
    "parameters": 1,
    **dict.fromkeys(("first_entry", "flow_count", "wake", "next_completion"), 1),
    **dict.fromkeys(("occupied", "occupied_since", "is_undecided", "undecided"), 1),
}
#: (struct, column) -> entries per job, where that is not 1.
_ENTRIES: Final = {
    (EngineInput, "work"): 2,
    (EngineInput, "volume"): 2,
    (EngineInput, "first_flow"): 2,
    (State, "scratch"): 8,
}


def prepare(policy: Policy) -> None:
    """Compile a policy in advance; this takes seconds. May be called in any thread."""
    if is_kernel(policy.allocate) and can_compile():
        from penstock.live.control.rates.compiled_steps import compile_steps  # noqa: PLC0415 - Numba
        from penstock.policies.compilation import compile_policy  # noqa: PLC0415

        compile_steps()
        compile_policy(policy)


class JobColumns:
    """An `EngineInput` and a `State` of the engine, and the kernels that work on them.

    Parameters
    ----------
    capacity
        B: what all jobs together may draw.
    compiled
        Whether to run compiled kernels. A policy that is not a kernel is interpreted,
        and so is everything where Numba is not installed.
    """

    def __init__(self, policy: Policy, capacity: float, *, compiled: bool) -> None:
        self._prefers_compiled = compiled
        self._capacity = capacity
        #: The scalars of the inputs that were set. They change with every decision and
        #: go to the kernels only: `inputs` shows them after its next replacement.
        self.scalars = {"capacity": capacity}
        self.inputs: Any = _blank_input(_FIRST_SIZE, capacity)
        self.state: Any = _blank_state(_FIRST_SIZE)
        #: What the policy wanted before lending, by job; None: nothing is lent.
        self.shares_before_lending: Any = None
        #: Heap of the numbers that no job has.
        self._free = list(range(_FIRST_SIZE))
        self.set_policy(policy)

    # --- Jobs -----------------------------------------------------------------------

    def add_job(self, *, lost: float, **facts: float) -> int:
        """Add a job with these entries in its columns; return its number."""
        if not self._free:
            self._grow()
        i = heappop(self._free)
        blank = {"lost": lost, "iterations": 0, "iteration_time": 0.0} | facts
        blank |= {"work_done": 0.0, "transferred": 0.0, "operations": 0}
        for name, value in blank.items():
            struct = self.inputs if hasattr(self.inputs, name) else self.state
            getattr(struct, name)[i] = value
        return i

    def copy_past(self, i: int, origin: JobColumns, number: int) -> None:
        """Copy what job `number` of other columns has completed to job `i`."""
        for name in ("operations", "work_done", "transferred"):
            getattr(self.state, name)[i] = getattr(origin.state, name)[number]

    def set_iterations(self, i: int, number: int, time_s: float) -> None:
        """Set how many iterations a job has completed, and their total time."""
        self.state.iterations[i], self.state.iteration_time[i] = number, time_s

    def remove_job(self, i: int) -> None:
        """Remove a job, which must not have an operation; its number is free."""
        heappush(self._free, i)

    def post(self, i: int, now: float, work: float, volume: float) -> None:
        """Post an operation; see `steps.post`."""
        self._steps.post(i, now, work, volume)

    def finish(self, i: int, at: float, volume: float, least: float) -> None:
        """End an operation; see `steps.finish`."""
        self._steps.finish(i, at, volume, least)

    def update(self, i: int, now: float, remaining: float, cap: float) -> None:
        """Set the cap of a job, and what remains of its operation if it has one."""
        if self.is_active(i):
            self._steps.update(i, now, remaining, cap)
        self.inputs.cap[i] = cap

    def request_decision(self) -> None:
        """Make the next decision ask the policy, even if nothing has happened."""
        interpreted(containers.request_decision)(self.state, 0)

    # --- Decisions --------------------------------------------------------------------

    def begin_decision(self, now: float) -> int:
        """Begin a decision; see `steps.begin_decision`."""
        return int(self._steps.begin(now))

    def ask(self) -> float:
        """Let the policy fill `State.wanted`; return when it wants to be woken (s)."""
        return float(self._steps.ask())

    def ask_again(self, jobs: list[int], capacity: float) -> float:
        """Let the policy divide this capacity among these jobs, in ascending order."""
        self._show(jobs, capacity)
        cap, wanted = self.inputs.cap, self.state.wanted
        caps = [cap[i] for i in jobs]
        for i in jobs:
            wanted[i], cap[i] = 0.0, min(cap[i], capacity)
        try:
            return self.ask()
        finally:
            _assign(cap, jobs, caps)
            self.set_scalar("capacity", self._capacity)

    def end_lending(
        self, active: list[int], fixed: dict[int, float], wake: float
    ) -> None:
        """End a decision in which the jobs in `fixed` get the rates given there.

        These rates count as their caps in this decision: the jobs lose no time.
        """
        cap, wanted = self.inputs.cap, self.state.wanted
        caps = [cap[i] for i in fixed]
        self._show(active, self._capacity)
        for i, rate in fixed.items():
            wanted[i] = cap[i] = rate
        try:
            self.end_decision(wake)
        finally:
            _assign(cap, fixed, caps)

    def _show(self, jobs: list[int], capacity: float) -> None:
        """Show the policy only these jobs and this capacity."""
        self.state.active[: len(jobs)] = array("q", jobs)
        self.state.counter[ACTIVE] = len(jobs)
        self.set_scalar("capacity", capacity)

    def end_decision(self, wake: float) -> None:
        """End a decision; raise `PolicyError` if the policy broke its contract."""
        status = int(self._steps.end(wake))
        if status != LAWFUL:
            number = max(self.state.counter[FAULTY_INDEX], 0)
            breach = Breach(
                status,
                "a job",
                rate=float(self.state.wanted[number]),
                cap=float(self.inputs.cap[number]),
                capacity=self.scalars["capacity"],
                wake=wake,
            )
            raise contract_error(self.policy, breach, self.state.clock[NOW])

    def changes(self) -> tuple[Any, Any]:
        """Return the jobs whose rates the last decision changed, and their rates."""
        count = int(self.state.counter[GRANTED])
        state = self.state
        return _copy(state.grant_application[:count]), _copy(state.grant_rate[:count])

    def wanted_rates(self) -> Any:
        """Return a copy of the rates that the policy wants, by job."""
        return _copy(self.state.wanted)

    # --- Queries ---------------------------------------------------------------------

    def is_active(self, i: int) -> bool:
        """Return True if job `i` has an operation with a volume."""
        return bool(self.state.unfinished[i])

    def active(self) -> list[int]:
        """Return the jobs with an operation, ascending."""
        return cast(
            list[int], self.state.flows_to_serve[: self.state.flow_count[0]].tolist()
        )

    def overdue(self, now: float) -> list[int]:
        """Return the jobs whose operations should be complete by now, ascending."""
        count = self._steps.overdue(now)
        return cast(list[int], self.state.order[:count].tolist())

    def loss(self, i: int, now: float) -> float:
        """Return the time that job `i` has lost by now."""
        if self.is_active(i):
            return float(interpreted(engine.loss)(self.state, i, now))
        return float(self.state.lost[i])

    def remaining(self, i: int, now: float) -> float:
        """Return what remains of an operation, by the rates that it was granted."""
        state = self.state
        moved = state.rate[i] * (now - state.since[i])
        return float(max(state.remaining_then[i] - moved, 0.0))

    def granted(self, i: int, now: float) -> tuple[float, float]:
        """Return what its rates have granted job `i`: of its operation, and beyond it.

        If they have granted more than its volume, the next decision raises the volume:
        see `steps.raise_volume`.
        """
        state = self.state
        moved = state.rate[i] * (now - state.since[i])
        left = state.remaining_then[i] - moved
        volume = state.volume[i]
        return (volume - left, 0.0) if left > 0.0 else (volume, -left)

    def next_instant(self) -> float:
        """Return when the policy wants to be woken or an operation is complete."""
        return float(self.state.due[1])

    # --- Policy and scalars -----------------------------------------------------------

    def set_capacity(self, capacity: float) -> None:
        """Set B, what all jobs together may draw."""
        self._capacity = capacity
        self.set_scalar("capacity", capacity)

    def set_scalar(self, name: str, value: float) -> None:
        """Set a scalar of the inputs, e.g. ``window_end``."""
        self.scalars[name] = value
        self._steps.set_scalar(name, value)

    def set_policy(self, policy: Policy) -> None:
        """Replace the policy; a policy that cannot be compiled changes nothing."""
        # At least one entry: a column must have an address.
        parameters = memoryview(array("d", [*policy.parameters, 0.0]))
        inputs = self.inputs._replace(parameters=parameters, **self.scalars)
        self._steps = self._steps_for(policy, inputs)
        self.policy, self.inputs = policy, inputs
        self.request_decision()

    def _steps_for(
        self, policy: Policy, inputs: EngineInput
    ) -> CompiledSteps | _Interpreted:
        if self._prefers_compiled and is_kernel(policy.allocate) and can_compile():
            from penstock.live.control.rates.compiled_steps import CompiledSteps  # noqa: PLC0415 - Numba

            return CompiledSteps(policy, inputs, self.state)
        return _Interpreted(policy, inputs, self.state)

    def _grow(self) -> None:
        size = self.inputs.entries
        inputs = _grown(EngineInput, self.inputs, _blank_input(2 * size, 0.0))
        parameters = self.inputs.parameters
        self.inputs = inputs._replace(parameters=parameters, **self.scalars)
        self.state = _grown(State, self.state, _blank_state(2 * size))
        self._free = list(range(size, 2 * size))
        self._steps = self._steps_for(self.policy, self.inputs)


class _Interpreted:
    """The same kernels, interpreted; the policy gets read-only columns."""

    def __init__(self, policy: Policy, inputs: EngineInput, state: State) -> None:
        self._policy = policy
        self._view = interpreted(engine.view)
        structs = inputs, state
        self._wanted = state.wanted
        self._shown = [s._replace(**read_only(s._asdict())) for s in structs]
        self.post = partial(interpreted(steps.post), *structs)
        self.finish = partial(interpreted(steps.finish), *structs)
        self.update = partial(interpreted(steps.update_operation), *structs)
        self.overdue = partial(interpreted(steps.find_overdue), state)
        self._structs = structs

    def begin(self, now: float) -> int:
        """Begin a decision."""
        return int(interpreted(steps.begin_decision)(*self._structs, now))

    def end(self, wake: float) -> int:
        """End a decision."""
        return int(interpreted(steps.end_decision)(*self._structs, wake))

    def ask(self) -> float:
        """Ask the policy; raise `PolicyError` if it fails."""
        return ask_policy(self._policy, self._view(*self._shown), self._wanted)

    def set_scalar(self, name: str, value: float) -> None:
        """Set a scalar of the inputs."""
        inputs, state = self._shown
        self._shown = [inputs._replace(**cast(Any, {name: value})), state]
        inputs, state = self._structs
        self._structs = inputs._replace(**cast(Any, {name: value})), state


# --- Columns ----------------------------------------------------------------------


def _blank_columns(struct: Any, entries: int) -> dict[str, Any]:
    codes = {"Floats": "d", "Ints": "q"}
    return {
        name: _column(
            codes[kind],
            [0] * _FIXED.get(name, entries * _ENTRIES.get((struct, name), 1)),
        )
        for name, kind in kinds(struct).items()
        if kind in codes
    }


def _column(code: str, values: Iterable[float]) -> Any:
    return memoryview(array(code, values))


def _fill(column: Any, value: float) -> None:
    for i in range(len(column)):
        column[i] = value


def _assign(column: Any, jobs: Iterable[int], values: Iterable[float]) -> None:
    for i, value in zip(jobs, values, strict=True):
        column[i] = value


def _copy(column: Any) -> Any:
    """Return a copy of a column, without making a Python number of every entry."""
    return memoryview(column.tobytes()).cast(column.format)


def _blank_input(entries: int, capacity: float) -> EngineInput:
    """Return an engine input with room for this many jobs, on one storage target."""
    columns = _blank_columns(EngineInput, entries)
    columns["first"] = _column("q", range(0, 2 * entries, 2))
    columns["volume"] = _column("d", [0.0, END_OF_APPLICATION] * entries)
    columns["first_flow"] = _column("q", range(2 * entries))
    columns["owner"] = _column("q", range(entries))
    for name in ("portion", "unit", "cap", "bandwidth"):
        _fill(columns[name], 1.0)
    return EngineInput(
        applications=entries,
        entries=entries,
        targets=1,
        leaves=1,
        capacity=capacity,
        window_begin=0.0,
        window_end=inf,
        ends_before=-inf,
        until_first_end=0,
        dedicated_events=0.0,
        origin=0.0,
        record=1,
        validate=0,
        **columns,
    )


def _blank_state(entries: int) -> State:
    """Return a state in which no job has an operation."""
    columns = _blank_columns(State, entries)
    for name in ("wake", "next_completion", "due", "completion", "finished"):
        _fill(columns[name], inf)
    columns["counter"][FAULTY_INDEX] = -1
    return State(**columns)


def _grown(struct: Any, old: Any, new: Any) -> Any:
    """Copy the columns of `old` into `new`, which is larger; return `new`."""
    for name in kinds(struct):
        before, after = getattr(old, name), getattr(new, name)
        if isinstance(before, memoryview) and name != "parameters":
            after[: len(before)] = before
    return new
