# SPDX-License-Identifier: MIT
"""Compiling a policy that is a kernel, for compiled code that calls it by a pointer."""

from __future__ import annotations

import re
from typing import Any, Final, cast

from numba import types

from penstock.errors import PolicyError
from penstock.kernels.compiler import struct_type
from penstock.policies.policy import Policy
from penstock.policies.view import Allocate, View
from penstock.registry import call_plugin

__all__ = ["ALLOCATE_ARGUMENTS", "ALLOCATE_TYPE", "compile_policy"]

ALLOCATE_ARGUMENTS: Final = (struct_type(View), types.CPointer(types.float64))
#: Numba type of the pointer through which compiled code calls a policy.
ALLOCATE_TYPE: Final = types.FunctionType(types.float64(*ALLOCATE_ARGUMENTS))

#: Begin of the lines in which Numba names a stage of its compiler, not a reason.
_COMPILER_STAGE: Final = "Failed in nopython mode pipeline"
_COMPILE_REMEDY: Final = (
    "remove @kernel to run it as plain Python, or use only what Numba compiles"
)


def compile_policy(policy: Policy) -> Allocate:
    """Compile a policy that is a kernel, for calls through `ALLOCATE_TYPE`.

    Return the function to pass to compiled code.
    Raises `PolicyError` if Numba cannot compile it or it does not return a float.
    """
    failure = f"{policy.title} cannot be compiled"
    compiler = cast(Any, policy.allocate).dispatcher
    try:
        call_plugin(failure, compiler.compile, ALLOCATE_ARGUMENTS)
    except PolicyError as error:
        reason = _compiler_reason(cast(BaseException, error.__cause__))
        raise PolicyError(f"{failure}: {reason}", remedy=_COMPILE_REMEDY) from None
    returned = compiler.overloads[ALLOCATE_ARGUMENTS].signature.return_type
    if returned != types.float64:
        raise PolicyError(
            f"{failure}: it returns {type(returned).__name__}, not a float",
            remedy="return the next wake-up in s as a float, or math.inf for never",
        )
    return cast(Allocate, compiler)


def _compiler_reason(error: BaseException) -> str:
    """Return the first line of the reason in an error of Numba, and the source line.

    Numba prints a page: the stage of the compiler that failed, the reason, the source,
    and all calls that led to it.
    """
    lines = [line.strip() for line in str(error).splitlines()]
    reasons = [line for line in lines if line and not line.startswith(_COMPILER_STAGE)]
    reason = re.sub(r"\bView\([^)]*\)", "View", reasons[0]) if reasons else ""
    reason = reason.rstrip(" :.") or type(error).__name__
    place = getattr(error, "loc", None)
    if place is None or place.filename in reason:
        return reason
    return f"{reason}, {place.filename.rpartition('/')[2]} line {place.line}"
