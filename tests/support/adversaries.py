# SPDX-License-Identifier: MIT
"""Policies that break the rules, one rule each, as plain Python and as kernels.

``get_policy("support.adversaries.over_cap")`` is the plain one, with ``_kernel``
behind the name it is compiled.
"""

from __future__ import annotations

from math import inf, nan

from penstock.kernels import Floats, kernel
from penstock.policies.view import View

__all__ = [
    "cannot_compile_kernel",
    "index_out_of_range",
    "interrupted",
    "minus_infinity",
    "minus_infinity_kernel",
    "negative",
    "negative_kernel",
    "never_grant",
    "never_grant_kernel",
    "not_a_number",
    "not_a_number_kernel",
    "nothing_returned",
    "over_cap",
    "over_cap_kernel",
    "over_capacity",
    "over_capacity_kernel",
    "raises",
    "serve_the_idle",
    "serve_the_idle_kernel",
    "wake_in_the_past",
    "wake_in_the_past_kernel",
    "wake_not_a_number",
    "wake_not_a_number_kernel",
    "wake_now",
    "wake_now_kernel",
    "writes_to_the_view",
]


def never_grant(view: View, rates: Floats) -> float:
    """Let all applications wait: allowed, but useless."""
    return inf


def over_cap(view: View, rates: Floats) -> float:
    """Give the first application a little more than it can use."""
    i = view.active[0]
    rates[i] = view.cap[i] * 1.001
    return inf


def over_capacity(view: View, rates: Floats) -> float:
    """Give all applications their caps, even if the bandwidth is too small."""
    for position in range(view.n_active):
        i = view.active[position]
        rates[i] = view.cap[i]
    return inf


def negative(view: View, rates: Floats) -> float:
    """Give the first application a negative rate."""
    rates[view.active[0]] = -0.25
    return inf


def not_a_number(view: View, rates: Floats) -> float:
    """Give the first application NaN."""
    rates[view.active[0]] = nan
    return inf


def minus_infinity(view: View, rates: Floats) -> float:
    """Give the first application a rate of minus infinity."""
    rates[view.active[0]] = -inf
    return inf


def wake_in_the_past(view: View, rates: Floats) -> float:
    """Ask to be woken a second ago."""
    return view.now - 1.0


def wake_now(view: View, rates: Floats) -> float:
    """Ask to be woken now, at every decision."""
    return view.now


def wake_not_a_number(view: View, rates: Floats) -> float:
    """Ask to be woken at NaN."""
    return nan


def serve_the_idle(view: View, rates: Floats) -> float:
    """Give rates to all applications; those of inactive ones are ignored."""
    for i in range(view.entries):
        rates[i] = 1e300
    for position in range(view.n_active):
        rates[view.active[position]] = 0.0
    first = view.active[0]
    rates[first] = view.cap[first]
    return inf


never_grant_kernel = kernel(never_grant)
over_cap_kernel = kernel(over_cap)
over_capacity_kernel = kernel(over_capacity)
negative_kernel = kernel(negative)
not_a_number_kernel = kernel(not_a_number)
minus_infinity_kernel = kernel(minus_infinity)
wake_in_the_past_kernel = kernel(wake_in_the_past)
wake_now_kernel = kernel(wake_now)
wake_not_a_number_kernel = kernel(wake_not_a_number)
serve_the_idle_kernel = kernel(serve_the_idle)


# --- Mistakes that only Python, or only the compiler, can see -----------------


def raises(view: View, rates: Floats) -> float:
    """Raise an error as soon as two applications are active."""
    if view.n_active > 1:
        raise ValueError("no idea what to do with two")
    rates[view.active[0]] = view.cap[view.active[0]]
    return inf


def interrupted(view: View, rates: Floats) -> float:
    """Behave as if the user had pressed Ctrl-C."""
    raise KeyboardInterrupt


def nothing_returned(view: View, rates: Floats) -> float:
    """Return None instead of a wake-up."""
    return None  # type: ignore[return-value]


def index_out_of_range(view: View, rates: Floats) -> float:
    """Give a rate to an application that does not exist."""
    rates[view.entries] = 1.0
    return inf


def writes_to_the_view(view: View, rates: Floats) -> float:
    """Write to a column of the view."""
    view.remaining[view.active[0]] = 0.0
    return inf


@kernel
def cannot_compile_kernel(view: View, rates: Floats) -> float:
    """Read a column that does not exist."""
    return view.tomorrow[0]  # type: ignore[attr-defined,no-any-return]
