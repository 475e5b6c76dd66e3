# SPDX-License-Identifier: MIT
"""The kernels of `steps` compiled, called from Python on the addresses of the columns.

RATIONALE: Numba takes 0.4 ms to unpack a function that is passed as an argument.
Therefore the policy's function pointer is stored once, and loaded at each call.
For the same reason, columns are passed as arrays of addresses
(`penstock.kernels.compiler.addresses`).
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, Final, cast

import numpy as np
from numba import types
from numba.extending import intrinsic

from penstock.kernels import kernel, unpacker
from penstock.kernels.compiler import addresses
from penstock.live.control.rates.steps import (
    begin_decision,
    end_decision,
    find_overdue,
    finish,
    post,
    update_operation,
)
from penstock.policies.compilation import ALLOCATE_TYPE, compile_policy
from penstock.policies.policy import Policy
from penstock.policies.view import Allocate
from penstock.sim.engine import view
from penstock.sim.state import EngineInput, State

__all__ = [
    "CompiledSteps",
    "ask_compiled",
    "begin_compiled",
    "compile_steps",
    "end_compiled",
    "finish_compiled",
    "overdue_compiled",
    "post_compiled",
    "store_policy",
    "update_compiled",
]

#: Name of a field of the inputs -> the number of its word.
_PLACES: Final = {name: place for place, name in enumerate(EngineInput._fields)}

_input = unpacker(EngineInput)
_state = unpacker(State)


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    function = context.get_value_type(ALLOCATE_TYPE)
    return builder.bitcast(array.data, function.as_pointer())


def _store(_typing: Any, words: Any, function: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[1], _place(context, builder, signature, args))
        return context.get_dummy_value()

    return types.void(words, function), generate


def _load(_typing: Any, words: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_place(context, builder, signature, args))

    return ALLOCATE_TYPE(words), generate


_stored: Any = cast(Any, intrinsic)(_store)
_loaded: Any = cast(Any, intrinsic)(_load)


@kernel
def store_policy(words: Any, allocate: Allocate) -> None:
    """Store the function pointer of a policy in `words`."""
    _stored(words, allocate)


@kernel
def ask_compiled(inputs: Any, state: Any, policy: Any) -> float:
    """Let the policy that `store_policy` has stored fill `State.wanted`."""
    shown = _state(state)
    allocate = _loaded(policy)
    return allocate(view(_input(inputs), shown), shown.wanted)  # type: ignore[no-any-return]


@kernel
def post_compiled(
    inputs: Any, state: Any, i: int, now: float, work: float, volume: float
) -> None:
    """See `post`."""
    post(_input(inputs), _state(state), i, now, work, volume)


@kernel
def finish_compiled(
    inputs: Any, state: Any, i: int, at: float, volume: float, least: float
) -> None:
    """See `finish`."""
    finish(_input(inputs), _state(state), i, at, volume, least)


@kernel
def update_compiled(
    inputs: Any, state: Any, i: int, now: float, remaining: float, cap: float
) -> None:
    """See `update_operation`."""
    update_operation(_input(inputs), _state(state), i, now, remaining, cap)


@kernel
def begin_compiled(inputs: Any, state: Any, now: float) -> int:
    """See `begin_decision`."""
    return begin_decision(_input(inputs), _state(state), now)


@kernel
def end_compiled(inputs: Any, state: Any, wake: float) -> int:
    """See `end_decision`."""
    return end_decision(_input(inputs), _state(state), wake)


@kernel
def overdue_compiled(state: Any, now: float) -> int:
    """See `find_overdue`."""
    return find_overdue(_state(state), now)


@cache
def compile_steps() -> None:
    """Compile the kernels above, or load them from the cache."""
    words, number, real = types.uint64[::1], types.int64, types.float64
    by_job = (words, words, number, real, real, real)
    signatures = (
        (store_policy, (words, ALLOCATE_TYPE)),
        (ask_compiled, (words, words, words)),
        (post_compiled, by_job),
        (finish_compiled, by_job),
        (update_compiled, by_job),
        (begin_compiled, (words, words, real)),
        (end_compiled, (words, words, real)),
        (overdue_compiled, (words, real)),
    )
    for function, signature in signatures:
        cast(Any, function).dispatcher.compile(signature)
        cast(Any, function).dispatcher.disable_compile()


class CompiledSteps:
    """The kernels of `steps` with the columns of a controller, as methods."""

    def __init__(self, policy: Policy, inputs: EngineInput, state: State) -> None:
        compile_steps()
        allocate = compile_policy(policy)
        # Compiled code holds addresses only: keep the memory alive.
        self._alive = inputs, state
        words = addresses(inputs), addresses(state)
        self._scalars = words[0].data.cast("B").cast("d")
        function = np.zeros(8, dtype=np.uint64)
        _machine(store_policy)(function, allocate)
        self.post = partial(_machine(post_compiled), *words)
        self.finish = partial(_machine(finish_compiled), *words)
        self.update = partial(_machine(update_compiled), *words)
        self.begin = partial(_machine(begin_compiled), *words)
        self.ask = partial(_machine(ask_compiled), *words, function)
        self.end = partial(_machine(end_compiled), *words)
        self.overdue = partial(_machine(overdue_compiled), words[1])

    def set_scalar(self, name: str, value: float) -> None:
        """Set a scalar of the inputs."""
        self._scalars[_PLACES[name]] = value


def _machine(function: Any) -> Any:
    """Return the machine code of a kernel: calls need not look at their arguments."""
    return function.dispatcher
