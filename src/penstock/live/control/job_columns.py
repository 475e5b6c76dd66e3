# SPDX-License-Identifier: MIT
"""The books of a controller: the columns of the engine, for jobs that come and go.

A job is a number here. Columns grow when all numbers are taken. Everything is kept
in memory that the compiled and the interpreted kernels of `steps` share.
Times in seconds, volumes in bytes, rates in bytes per second.
"""

from __future__ import annotations

from functools import partial
from heapq import heappop, heappush
from math import inf
from typing import Any, Final, cast

import numpy as np

from penstock.kernels import addresses, interpreted, is_kernel, kinds, memory
from penstock.live.control import steps
from penstock.policies.ask import (
    LAWFUL,
    Breach,
    ask_policy,
    compile_policy,
    contract_error,
    read_only,
)
from penstock.policies.policy import Policy
from penstock.sim import containers, engine
from penstock.sim.state import (
    ACTIVE,
    CULPRIT,
    END_OF_APPLICATION,
    ENDED,
    GRANTED,
    NOW,
    Program,
    State,
)

__all__ = ["JobColumns", "prepare"]

_ROOM: Final = 16
#: Columns of a fixed size: those by target, and a few entries for all.
_FIXED: Final = {
    "clock": NOW + 1,
    "counter": ENDED + 1,
    "due": 2,
    "parameters": 1,
    **dict.fromkeys(("first_user", "users", "wake", "next_completion"), 1),
    **dict.fromkeys(("occupied", "occupied_since", "is_touched", "touched"), 1),
}
#: Entries per job, where it is not one; (struct, column).
_ENTRIES: Final = {
    (Program, "work"): 2,
    (Program, "volume"): 2,
    (Program, "first_flow"): 2,
    (State, "scratch"): 8,
}


def prepare(policy: Policy) -> None:
    """Compile a policy, which takes seconds; for another thread than the user's."""
    if is_kernel(policy.allocate):
        steps.compile_steps()
        compile_policy(policy)


class JobColumns:
    """A `Program` and a `State` of the engine, and how to run on them.

    Parameters
    ----------
    capacity
        B, what all jobs share (bytes/s).
    compiled
        Whether to run compiled kernels; a policy that is none is interpreted.
    """

    def __init__(self, policy: Policy, capacity: float, *, compiled: bool) -> None:
        self._wants_compiled = compiled
        self._free: list[int] = []
        self._capacity = capacity
        self.program: Any = _blank_program(_ROOM, capacity)
        self.state: Any = _blank_state(_ROOM)
        self._free = list(range(_ROOM))
        self.use(policy)

    # --- Jobs -----------------------------------------------------------------------

    def open(self, *, lost: float, **facts: float) -> int:
        """Return the number of a new job with these entries in its columns."""
        if not self._free:
            self._grow()
        i = heappop(self._free)
        blank = {"lost": lost, "iterations": 0, "iteration_time": 0.0} | facts
        blank |= {"work_done": 0.0, "transferred": 0.0, "operations": 0}
        for name, value in blank.items():
            struct = self.program if hasattr(self.program, name) else self.state
            getattr(struct, name)[i] = value
        return i

    def close(self, i: int) -> None:
        """Free the number of a job that has no operation."""
        heappush(self._free, i)

    def post(self, i: int, now: float, work: float, volume: float) -> None:
        """See `steps.post`."""
        self._steps.post(i, now, work, volume)

    def finish(self, i: int, at: float, volume: float, least: float) -> None:
        """See `steps.finish`."""
        self._steps.finish(i, at, volume, least)

    def settle(self, i: int, now: float, remaining: float, cap: float) -> None:
        """See `steps.settle`; for a job without operation only the cap matters."""
        if self.is_active(i):
            self._steps.settle(i, now, remaining, cap)
        self.program.cap[i] = cap

    def touch(self) -> None:
        """Have the policy decide at the next decision, even if nothing happens."""
        interpreted(containers.touch)(self.state, 0)

    # --- Decisions --------------------------------------------------------------------

    def begin_decision(self, now: float) -> int:
        """See `steps.begin_decision`."""
        return int(self._steps.begin(now))

    def ask(self) -> float:
        """Let the policy fill `State.wanted`; return when it wants to be woken (s)."""
        return float(self._steps.ask())

    def ask_again(self, jobs: list[int], capacity: float) -> float:
        """Let the policy share out only this capacity, among these jobs, ascending."""
        caps = self.program.cap[jobs]
        self._show(jobs, capacity)
        self.state.wanted[jobs] = 0.0
        self.program.cap[jobs] = np.minimum(caps, capacity)
        try:
            return self.ask()
        finally:
            self.program.cap[jobs] = caps
            self.set_scalar("capacity", self._capacity)

    def end_lending(
        self, active: list[int], fixed: dict[int, float], wake: float
    ) -> None:
        """End a decision in which the jobs in `fixed` get all that they can use.

        They lose nothing: what they use is their cap, here and now.
        """
        jobs, usable = list(fixed), list(fixed.values())
        caps = self.program.cap[jobs]
        self._show(active, self._capacity)
        self.state.wanted[jobs] = self.program.cap[jobs] = usable
        try:
            self.end_decision(wake)
        finally:
            self.program.cap[jobs] = caps

    def _show(self, jobs: list[int], capacity: float) -> None:
        self.state.active[: len(jobs)] = jobs
        self.state.counter[ACTIVE] = len(jobs)
        self.set_scalar("capacity", capacity)

    def end_decision(self, wake: float) -> None:
        """See `steps.end_decision`; raises `PolicyError` if rates are unlawful."""
        status = int(self._steps.end(wake))
        if status != LAWFUL:
            number = max(self.state.counter[CULPRIT], 0)
            breach = Breach(
                status,
                "a job",
                rate=float(self.state.wanted[number]),
                cap=float(self.program.cap[number]),
                capacity=self.program.capacity,
                wake=wake,
            )
            raise contract_error(self.policy, breach, self.state.clock[NOW])

    def changes(self) -> tuple[Any, Any]:
        """Return the jobs whose rate the last decision has changed, and the rates."""
        count = int(self.state.counter[GRANTED])
        state = self.state
        return state.grant_application[:count].copy(), state.grant_rate[:count].copy()

    # --- What the books say -----------------------------------------------------------

    def is_active(self, i: int) -> bool:
        """Tell whether job `i` has an operation."""
        return bool(self.state.unfinished[i])

    def active(self) -> list[int]:
        """Return the jobs with an operation, ascending."""
        return cast(list[int], self.state.flow[: self.state.users[0]].tolist())

    def overdue(self, now: float) -> list[int]:
        """Return the jobs whose operations should be complete by now, ascending."""
        active = self.state.flow[: self.state.users[0]]
        return cast(list[int], active[self.state.completion[active] <= now].tolist())

    def loss(self, i: int, now: float) -> float:
        """Return the time that job `i` has lost by now (s)."""
        if self.is_active(i):
            return float(interpreted(engine.loss)(self.state, i, now))
        return float(self.state.lost[i])

    def remaining(self, i: int, now: float) -> float:
        """Return what is left of an operation, at the rates that were held (bytes)."""
        state = self.state
        moved = state.rate[i] * (now - state.since[i])
        return float(max(state.remaining_then[i] - moved, 0.0))

    def next_instant(self) -> float:
        """Return when the policy wants to be asked, or an operation is done (s)."""
        return float(self.state.due[1])

    # --- Policy and scalars -----------------------------------------------------------

    def set_capacity(self, capacity: float) -> None:
        """Share another total bandwidth."""
        self._capacity = capacity
        self.set_scalar("capacity", capacity)

    def set_scalar(self, name: str, value: float) -> None:
        """Set an end of the window or the dedicated events."""
        self.program = self.program._replace(**{name: value})
        self._steps.set_scalar(name, value)

    def use(self, policy: Policy) -> None:
        """Decide with `policy` from now on; if it cannot be used, nothing changes."""
        parameters = np.append(policy.parameters, 0.0)
        program = self.program._replace(parameters=parameters)
        self._steps = self._bound(policy, program)
        self.policy, self.program = policy, program
        self.touch()

    def _bound(self, policy: Policy, program: Program) -> _Compiled | _Interpreted:
        compiled = self._wants_compiled and is_kernel(policy.allocate)
        kind: Any = _Compiled if compiled else _Interpreted
        return cast(_Compiled | _Interpreted, kind(policy, program, self.state))

    def _grow(self) -> None:
        size = self.program.entries
        self.program = _grown(Program, self.program, _blank_program(2 * size, 0.0))
        self.state = _grown(State, self.state, _blank_state(2 * size))
        self._free = list(range(size, 2 * size))
        self._steps = self._bound(self.policy, self.program)


class _Compiled:
    """The kernels of `steps`, compiled, on the words of two structs."""

    def __init__(self, policy: Policy, program: Program, state: State) -> None:
        prepare(policy)
        # Compiled code holds bare addresses.
        self._alive = program, state
        words = addresses(program), addresses(state)
        self._scalars = words[0].view(np.float64)
        function = np.zeros(8, dtype=np.uint64)
        steps.store_policy(function, policy.allocate)
        self._words = words
        self._function = function
        self.post = partial(steps.post_compiled, *words)
        self.finish = partial(steps.finish_compiled, *words)
        self.settle = partial(steps.settle_compiled, *words)

    def begin(self, now: float) -> int:
        """See `steps.begin_decision`."""
        return steps.begin_compiled(*self._words, now)

    def ask(self) -> float:
        """Ask the policy."""
        return steps.ask_compiled(*self._words, self._function)

    def end(self, wake: float) -> int:
        """See `steps.end_decision`."""
        return steps.end_compiled(*self._words, wake)

    def set_scalar(self, name: str, value: float) -> None:
        """Set a field of the program."""
        self._scalars[Program._fields.index(name)] = value


class _Interpreted:
    """The same kernels, interpreted; the policy sees memory it cannot write to."""

    def __init__(self, policy: Policy, program: Program, state: State) -> None:
        self._policy = policy
        self._view = interpreted(engine.view)
        books = memory(program), memory(state)
        self._wanted = books[1].wanted
        self._shown = [s._replace(**read_only(s._asdict())) for s in books]
        self.post = partial(interpreted(steps.post), *books)
        self.finish = partial(interpreted(steps.finish), *books)
        self.settle = partial(interpreted(steps.settle), *books)
        self._books = books

    def begin(self, now: float) -> int:
        """See `steps.begin_decision`."""
        return int(interpreted(steps.begin_decision)(*self._books, now))

    def end(self, wake: float) -> int:
        """See `steps.end_decision`."""
        return int(interpreted(steps.end_decision)(*self._books, wake))

    def ask(self) -> float:
        """Ask the policy; raise `PolicyError` if it fails."""
        return ask_policy(self._policy, self._view(*self._shown), self._wanted)

    def set_scalar(self, name: str, value: float) -> None:
        """Set a field of the program."""
        program, state = self._shown
        self._shown = [program._replace(**cast(Any, {name: value})), state]
        program, state = self._books
        self._books = program._replace(**cast(Any, {name: value})), state


# --- Columns ----------------------------------------------------------------------


def _blank_columns(struct: Any, entries: int) -> dict[str, Any]:
    types = {"Floats": np.float64, "Ints": np.int64}
    return {
        name: np.zeros(
            _FIXED.get(name, entries * _ENTRIES.get((struct, name), 1)),
            dtype=types[kind],
        )
        for name, kind in kinds(struct).items()
        if kind in types
    }


def _blank_program(entries: int, capacity: float) -> Program:
    """Return a program for this many jobs on one storage target."""
    columns = _blank_columns(Program, entries)
    columns["first"][:] = 2 * np.arange(entries)
    columns["volume"][1::2] = END_OF_APPLICATION
    columns["first_flow"][:] = np.arange(2 * entries)
    columns["owner"][:] = np.arange(entries)
    for name in ("portion", "unit", "cap", "bandwidth"):
        columns[name][:] = 1.0
    return Program(
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
        record=1,
        validate=0,
        **columns,
    )


def _blank_state(entries: int) -> State:
    """Return a state in which no job has an operation."""
    columns = _blank_columns(State, entries)
    for name in ("wake", "next_completion", "due", "completion", "finished"):
        columns[name][:] = inf
    columns["counter"][CULPRIT] = -1
    return State(**columns)


def _grown(struct: Any, old: Any, new: Any) -> Any:
    """Return `new`, which has more entries, with the contents of `old`."""
    for name in kinds(struct):
        before, after = getattr(old, name), getattr(new, name)
        if isinstance(before, np.ndarray) and name != "parameters":
            after[: len(before)] = before
    scalars = {
        name: getattr(old, name)
        for name in ("capacity", "window_begin", "window_end", "dedicated_events")
        if hasattr(old, name)
    }
    if struct is Program:
        scalars["parameters"] = old.parameters
    return new._replace(**scalars)
