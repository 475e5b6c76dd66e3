# SPDX-License-Identifier: MIT
"""Asking a policy: the one place that calls and checks policies.

Three programs ask policies: the engine (`penstock.sim.simulation`), the simulator of
burst buffers (`penstock.sim.buffers.sharing`) and the live controller
(`penstock.live.control.rates.job_columns`). All of them use this module:

- A policy that is a kernel is compiled in `penstock.policies.compilation`; compiled
  code calls it through a function pointer.
- Any other policy, and every policy in an interpreted run, is called with
  `ask_policy`. It sees columns that it cannot write to: `read_only`.
- The answer is checked with `is_over` and `is_past`, compiled in the engine and
  interpreted in `find_breach`. `contract_error` turns a breach into a `PolicyError`.

The contract of a policy: every rate lies between 0 and the cap of its application,
the rates together do not exceed the capacity, and the wake-up lies in the future.
Rates may exceed a limit by the relative `TOLERANCE`, because of rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Final, cast

from penstock.errors import PolicyError
from penstock.kernels import inlined, interpreted
from penstock.policies.policy import Policy
from penstock.policies.view import Allocate, View
from penstock.registry import call_plugin

__all__ = [
    "BREACHES",
    "CAPACITY_EXCEEDED",
    "LAWFUL",
    "RATE_NEGATIVE",
    "RATE_OVER_CAP",
    "TOLERANCE",
    "WAKE_IN_THE_PAST",
    "Breach",
    "ask_policy",
    "contract_error",
    "find_breach",
    "is_over",
    "is_past",
    "read_only",
]

#: Relative excess over a cap or over the capacity that rounding may cause.
TOLERANCE: Final = 1e-9

# Results of the checks. The engine returns them among its own statuses.
LAWFUL: Final = 0
RATE_OVER_CAP: Final = 2
RATE_NEGATIVE: Final = 3
CAPACITY_EXCEEDED: Final = 4
WAKE_IN_THE_PAST: Final = 5
#: All results that break the contract.
BREACHES: Final = (RATE_OVER_CAP, RATE_NEGATIVE, CAPACITY_EXCEEDED, WAKE_IN_THE_PAST)

#: Columns of a `View` that a policy may write to.
_WORKING_MEMORY: Final = ("key", "order", "scratch")


# --- Calling ----------------------------------------------------------------------


def ask_policy(policy: Policy, view: View, rates: Any) -> float:
    """Call a policy as plain Python; return the wake-up that it asks for (s).

    Raises `PolicyError` if the policy fails.
    """

    def failure() -> str:
        return f"{policy.title} failed at t = {view.now:g} s"

    wake = call_plugin(failure, _wake_up, policy.allocate, view, rates)
    if wake is None:
        raise PolicyError(
            f"{policy.title} returned None at t = {view.now:g} s",
            where=_place(policy.allocate),
            remedy="return math.inf, or the time at which to ask the policy again",
        )
    return cast(float, wake)


def _wake_up(allocate: Allocate, view: View, rates: Any) -> float | None:
    wake: Any = interpreted(allocate)(view, rates)
    return None if wake is None else float(wake)


def _place(allocate: Allocate) -> str:
    """Return file and first line of a policy's function, if it has source code."""
    code = getattr(interpreted(allocate), "__code__", None)
    if code is None:
        return ""
    return f"{code.co_filename.rpartition('/')[2]} line {code.co_firstlineno}"


def read_only(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a view, or of a struct, that a policy may see.

    Memoryviews and lists become read-only, except working memory.
    """
    return {
        name: value if name in _WORKING_MEMORY else _read_only(value)
        for name, value in columns.items()
    }


def _read_only(value: Any) -> Any:
    if isinstance(value, memoryview):
        return value.toreadonly()
    return tuple(value) if isinstance(value, list) else value


# --- The contract -----------------------------------------------------------------


@inlined
def is_over(value: float, limit: float) -> bool:
    """Return True if `value` exceeds `limit` by more than rounding, or is NaN."""
    # "not <=" is also true for NaN.
    return not value <= limit * (1.0 + TOLERANCE)


@inlined
def is_past(wake: float, now: float) -> bool:
    """Return True if a wake-up does not lie after `now`, or is NaN."""
    return not wake > now


@dataclass(frozen=True, slots=True)
class Breach:
    """A breach of the contract, with the numbers that a message needs."""

    status: int
    """One of `BREACHES`."""
    application: str = "an application"
    """The application whose rate is wrong."""
    rate: float = 0.0
    """Its rate (bytes/s)."""
    cap: float = 0.0
    """Its cap (bytes/s)."""
    capacity: float = 0.0
    """Capacity that was to be shared (bytes/s)."""
    wake: float = 0.0
    """Wake-up that the policy asked for (s)."""

    def __str__(self) -> str:
        gives = f"gives {self.application} {self.rate} B/s"
        over = f"over its cap {self.cap} B/s"
        return {
            RATE_OVER_CAP: f"{gives}, {'not a number' if isnan(self.rate) else over}",
            RATE_NEGATIVE: f"{gives}, a negative rate",
            CAPACITY_EXCEEDED: "gives more in total than the capacity "
            f"{self.capacity} B/s",
            WAKE_IN_THE_PAST: f"asks to be woken at {self.wake} s, not after now",
        }[self.status]


#: Breach -> what the author of the policy can do.
_REMEDIES: Final = {
    RATE_OVER_CAP: "let it set rates[i] from 0 to view.cap[i]",
    RATE_NEGATIVE: "let it set rates[i] from 0 to view.cap[i]",
    CAPACITY_EXCEEDED: "let the sum of its rates be at most view.capacity",
    WAKE_IN_THE_PAST: "let it return a time after view.now, or math.inf for never",
}


def find_breach(view: View, rates: Sequence[float], wake: float) -> Breach | None:
    """Return the first breach in the answer of an interpreted policy, if any.

    The engine makes the same checks in the same order (`penstock.sim.engine.grant`).
    """
    total = 0.0
    for position in range(view.n_active):
        i = view.active[position]
        rate, cap = rates[i], view.cap[i]
        if interpreted(is_over)(rate, cap):
            return Breach(RATE_OVER_CAP, rate=rate, cap=cap)
        if rate < 0.0:
            return Breach(RATE_NEGATIVE, rate=rate, cap=cap)
        total += min(rate, cap)
    if interpreted(is_over)(total, view.capacity):
        return Breach(CAPACITY_EXCEEDED, capacity=view.capacity)
    if interpreted(is_past)(wake, view.now):
        return Breach(WAKE_IN_THE_PAST, wake=wake)
    return None


def contract_error(policy: Policy, breach: Breach, now: float) -> PolicyError:
    """Return the error for a breach of the contract at the instant `now` (s)."""
    place = f"{policy.title} at t = {now:g} s"
    return PolicyError(str(breach), where=place, remedy=_REMEDIES[breach.status])
