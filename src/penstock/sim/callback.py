# SPDX-License-Identifier: MIT
"""Calling a policy in plain Python from the compiled engine.

The engine calls every policy through a function pointer of one type. For a
plain Python function that pointer leads through a small compiled trampoline and
a C callback, which costs one to two microseconds per decision. The columns of
the view are memoryviews of the engine's own memory: nothing is copied, and an
element is a Python number. ``numpy.asarray(view.lost)`` gives an array.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, cast

from numba import njit, types

from penstock.kernels import kinds, memory, struct_type
from penstock.policies.view import Allocate, View
from penstock.sim.state import Program, State

__all__ = ["ALLOCATE_ARGUMENTS", "ALLOCATE_TYPE", "PolicyCallback"]

ALLOCATE_ARGUMENTS = (struct_type(View), types.CPointer(types.float64))
#: Numba type of the pointer through which the engine calls a policy.
ALLOCATE_TYPE = types.FunctionType(types.float64(*ALLOCATE_ARGUMENTS))

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)


class _MovingView:
    """A `View` whose two moving fields are set before every call."""

    __slots__ = View._fields
    now: float
    n_active: int


class PolicyCallback:
    """Asks a Python policy, which sees the engine's memory but cannot write to it."""

    def __init__(self, allocate: Allocate, program: Program, state: State) -> None:
        self.error: BaseException | None = None
        self._shown = _moving_view(program, state)
        self._rates: Any = memoryview(cast(Any, state.wanted))
        self._allocate = allocate

    def __call__(self, now: float, n_active: int) -> float:
        """Ask the policy; on an error, keep it and answer what stops the engine."""
        shown = self._shown
        shown.now = now
        shown.n_active = n_active
        try:
            return float(self._allocate(cast(View, shown), self._rates))
        except BaseException as error:  # noqa: BLE001 - C must not see it; re-raised
            self.error = error
            return float("nan")

    def pointer(self) -> Callable[..., float]:
        """Return the trampoline through which the compiled engine calls.

        The caller must outlive it.
        """
        callback: Callable[..., float] = _CALLBACK(self)
        self._callback = callback

        def trampoline(view: View, _rates: Any) -> float:
            return callback(view.now, view.n_active)

        signature = types.float64(*ALLOCATE_ARGUMENTS)
        return cast(Callable[..., float], njit(signature)(trampoline))


def _moving_view(program: Program, state: State) -> _MovingView:
    """Return a view of the engine's memory, read-only but for working memory."""
    shown = _MovingView()
    sources = {**memory(program)._asdict(), **memory(state)._asdict()}
    for name, kind in kinds(View).items():
        value = sources.get(name)
        if kind in ("Floats", "Ints") and name not in ("key", "order", "scratch"):
            value = cast(memoryview, value).toreadonly()
        setattr(shown, name, value)
    return shown
