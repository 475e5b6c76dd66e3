# SPDX-License-Identifier: MIT
"""`simulate` runs one policy on one instance; the main loop is in `engine`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, Final, cast

import numpy as np
from numba import types

from penstock.errors import InputError, InternalError
from penstock.kernels import Floats, interpreted, is_kernel, memory
from penstock.kernels.compiler import addresses
from penstock.model import Instance, Window
from penstock.policies import get_policy
from penstock.policies.ask import BREACHES, Breach, contract_error
from penstock.policies.compilation import ALLOCATE_TYPE, compile_policy
from penstock.policies.policy import Policy
from penstock.policies.view import View
from penstock.sim import engine
from penstock.sim.callback import PolicyCallback
from penstock.sim.engine_setup import new_input, new_state
from penstock.sim.run import EventLog, GrantLog, Run
from penstock.sim.state import (
    APPLICATION_ENDED,
    DECISIONS,
    DONE,
    EVENTS,
    FAULTY_INDEX,
    GRANTED,
    LOGGED,
    NOW,
    PAUSED,
    EngineInput,
    State,
)

__all__ = ["simulate", "warm_up"]

#: Instants per call of the engine: less than a second, so that Ctrl-C works.
_SLICE: Final = 1 << 20


def simulate(
    instance: Instance,
    policy: Policy | str,
    *,
    steady: bool = True,
    until_first_end: bool = False,
    compiled: bool = True,
    validate: bool = False,
    record: bool = False,
) -> Run:
    """Run `policy` on `instance` until the end of its window.

    Parameters
    ----------
    steady
        True if it is an error that an application ends inside the window (bandwidth
        sharing, section 3.2).
    until_first_end
        End the window when the first application ends (target allocation, section
        5.4). The instance of the result has the shortened window.
    compiled
        False to interpret engine and policy, e.g. in a debugger: slow, but the
        results are equal in every bit.
    validate
        Check the engine's invariants at every instant.
    record
        Log all events and all changes of rates.

    Raises
    ------
    InputError
        If an application ends inside a steady window.
    PolicyError
        If the policy breaks its contract or fails.
    """
    if isinstance(policy, str):
        policy = get_policy(policy)
    inputs = new_input(
        instance,
        policy.parameters,
        steady=steady,
        until_first_end=until_first_end,
        record=record,
        validate=validate,
    )
    state = new_state(instance, inputs)
    caller = PolicyCallback(policy, inputs, state)
    if not compiled:
        advance = _interpreted(caller, inputs, state)
    elif is_kernel(policy.allocate):
        advance = _compiled(compile_policy(policy), inputs, state)
    else:
        advance = _compiled(caller.pointer(), inputs, state)
    records: list[tuple[np.ndarray[Any, Any], ...]] = []
    began = time.perf_counter()
    status = PAUSED
    while status == PAUSED:
        status = advance(_SLICE)
        if record:
            records.append(_take_record(state))
    seconds = time.perf_counter() - began
    if caller.error is not None:
        raise caller.error
    if status != DONE:
        _raise_status(status, instance, policy, inputs, state)
    if until_first_end:
        instance = replace(instance, window=_cut_window(instance, state))
    return _outcome(instance, policy, inputs, state, seconds, records)


def warm_up(*policies: Policy) -> None:
    """Compile the engine and `policies`, or load them from the cache.

    Compiling takes seconds; so call this once before worker processes start.
    """
    _compile_engine()
    for policy in policies:
        if is_kernel(policy.allocate):
            compile_policy(policy)


@cache
def _compile_engine() -> None:
    words = types.uint64[::1]
    cast(Any, engine.start_compiled).dispatcher.compile((words, words))
    run = cast(Any, engine.run_compiled).dispatcher
    run.compile((words, words, ALLOCATE_TYPE, types.int64))
    # Without this, Numba would compile the engine again for every policy.
    run.disable_compile()


def _compiled(
    allocate: Callable[..., float], inputs: EngineInput, state: State
) -> Callable[[int], int]:
    _compile_engine()
    words = addresses(inputs), addresses(state)
    engine.start_compiled(*words)
    run = cast(Any, engine.run_compiled).dispatcher
    return lambda budget: cast(int, run(*words, allocate, budget))


def _interpreted(
    caller: PolicyCallback, inputs: EngineInput, state: State
) -> Callable[[int], int]:
    run = interpreted(engine.run)

    def decide(view: View, _rates: Floats) -> float:
        return caller(view.now, view.n_active)

    shown = memory(inputs), memory(state)
    interpreted(engine.start)(*shown)
    return lambda budget: run(*shown, decide, budget)


def _take_record(state: State) -> tuple[np.ndarray[Any, Any], ...]:
    """Return a copy of the logs and empty them."""
    counter: Any = state.counter
    logged, granted = int(counter[LOGGED]), int(counter[GRANTED])
    counter[LOGGED] = counter[GRANTED] = 0
    logs = (state.log_time, state.log_kind, state.log_application)
    grants = (
        state.grant_time,
        state.grant_application,
        state.grant_rate,
        state.grant_target,
    )
    return (
        *(cast(Any, column)[:logged].copy() for column in logs),
        *(cast(Any, column)[:granted].copy() for column in grants),
    )


def _cut_window(instance: Instance, state: State) -> Window:
    """Return the window, cut at the end of the run."""
    begin, end = instance.window.begin, float(state.clock[NOW])
    if end <= begin:
        first = int(np.argmin(cast(Any, state.finished)))
        raise InputError(
            f"{instance.applications[first].name!r} ends at {end:g} s, before the "
            f"window begins ({begin:g} s)",
            where=f"applications[{first}]",
            remedy="give it more phases, or begin the window earlier",
        )
    return Window(begin, end)


def _outcome(
    instance: Instance,
    policy: Policy,
    inputs: EngineInput,
    state: State,
    seconds: float,
    records: list[tuple[np.ndarray[Any, Any], ...]],
) -> Run:
    columns = cast(Any, state)
    first_flows = cast(Any, inputs.first_flow)[:-1]
    joined = [np.concatenate(parts) for parts in zip(*records, strict=True)]
    return Run(
        instance=instance,
        policy=policy.label,
        lost=columns.lost[first_flows],
        ended=np.minimum(columns.finished, instance.window.end),
        work=columns.work_done - columns.begin_work,
        volume=columns.transferred - columns.begin_transferred,
        operations=columns.operations[first_flows],
        occupied=columns.occupied,
        events=int(columns.counter[EVENTS]),
        decisions=int(columns.counter[DECISIONS]),
        seconds=seconds,
        log=EventLog(*joined[:3]) if joined else None,
        grants=GrantLog(*joined[3:]) if joined else None,
    )


def _raise_status(
    status: int, instance: Instance, policy: Policy, inputs: EngineInput, state: State
) -> None:
    """Raise the error for a status of the engine, with application and instant."""
    now = state.clock[NOW]
    number = state.counter[FAULTY_INDEX]
    flow = max(number, 0)
    if number >= 0 and status != APPLICATION_ENDED:
        number = inputs.owner[flow]
    name = instance.applications[number].name if number >= 0 else ""
    if status == APPLICATION_ENDED:
        place = "before" if now < instance.window.begin else "inside"
        raise InputError(
            f"{name!r} ends at {now:g} s, {place} the window "
            f"[{instance.window.begin:g}, {instance.window.end:g}]",
            where=f"applications[{number}]",
            remedy="give it more phases, end the window earlier, or allow open runs: "
            "--open, in Python steady=False",
        )
    if status in BREACHES:
        breach = Breach(
            status,
            repr(name),
            rate=state.wanted[flow] * inputs.unit[flow],
            cap=inputs.cap[flow] * inputs.unit[flow],
            capacity=inputs.capacity,
            wake=min(state.wake),
        )
        raise contract_error(policy, breach, now)
    raise InternalError(
        f"engine status {status} at t = {now!r} s, application {name!r}, "
        f"policy {policy.label}: please report it with the instance"
    )
