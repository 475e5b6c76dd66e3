# SPDX-License-Identifier: MIT
"""Calling a policy in plain Python from the compiled engine.

The engine calls every policy through a function pointer of one type. For a plain
Python function, that pointer leads to a small compiled function (the trampoline),
which calls Python through a C callback. This costs one to two microseconds per
decision. The columns of the view are memoryviews of the engine's own memory: nothing
is copied, and an element is a Python number. ``numpy.asarray(view.lost)`` is an array.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, cast

from numba import njit, types

from penstock.errors import PenstockError
from penstock.kernels import memory
from penstock.policies.ask import ask_policy, read_only
from penstock.policies.compilation import ALLOCATE_ARGUMENTS
from penstock.policies.policy import Policy
from penstock.policies.view import View
from penstock.sim.state import EngineInput, State

__all__ = ["PolicyCallback"]

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)


class _MovingView:
    """A `View` whose fields `now` and `n_active` are set before every call."""

    __slots__ = View._fields
    now: float
    n_active: int


class PolicyCallback:
    """Asks a Python policy, which sees the engine's memory but cannot write to it."""

    def __init__(self, policy: Policy, inputs: EngineInput, state: State) -> None:
        self.error: PenstockError | KeyboardInterrupt | None = None
        """The error of the last call, for the caller of the engine to raise."""
        self._policy = policy
        self._shown = _moving_view(inputs, state)
        self._rates: Any = memoryview(cast(Any, state.wanted))

    def __call__(self, now: float, n_active: int) -> float:
        """Ask the policy; if it fails, keep the error and return NaN.

        NaN stops the engine: it is not a lawful wake-up. No exception may leave this
        function, because compiled code called it; `ask_policy` raises no others.
        """
        shown = self._shown
        shown.now = now
        shown.n_active = n_active
        try:
            return ask_policy(self._policy, cast(View, shown), self._rates)
        except (PenstockError, KeyboardInterrupt) as error:
            self.error = error
            return float("nan")

    def pointer(self) -> Callable[..., float]:
        """Return the trampoline, a function that the compiled engine can call.

        This object must outlive it.
        """
        callback: Callable[..., float] = _CALLBACK(self)
        self._callback = callback

        def trampoline(view: View, _rates: Any) -> float:
            return callback(view.now, view.n_active)

        signature = types.float64(*ALLOCATE_ARGUMENTS)
        return cast(Callable[..., float], njit(signature)(trampoline))


def _moving_view(inputs: EngineInput, state: State) -> _MovingView:
    """Return a view of the engine's memory that a policy cannot write to."""
    shown = _MovingView()
    columns = {**memory(inputs)._asdict(), **memory(state)._asdict()}
    for name, value in read_only(columns).items():
        if name in View._fields:
            setattr(shown, name, value)
    return shown
