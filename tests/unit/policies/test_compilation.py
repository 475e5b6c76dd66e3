# SPDX-License-Identifier: MIT
"""Compiling a policy: what Numba refuses, and the type of the answer."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import PolicyError
from penstock.kernels import kernel
from penstock.policies import get_policy
from penstock.policies.compilation import compile_policy
from penstock.policies.policy import bind

#: Something that Numba cannot compile.
FOREIGN = object()


@kernel
def _no_such_column(view: Any, _rates: Any) -> float:
    return view.tomorrow  # type: ignore[no-any-return]


@kernel
def _foreign_object(_view: Any, _rates: Any) -> float:
    return float(hash(FOREIGN))


@kernel
def _helper_fails(view: Any, rates: Any) -> float:
    return _no_such_column(view, rates)


@kernel
def _context_manager(_view: Any, _rates: Any) -> float:
    with open("x") as file:  # noqa: PTH123 - a construct that Numba refuses
        return float(file.read())


@kernel
def _import_inside(_view: Any, _rates: Any) -> float:
    import os  # noqa: PLC0415 - a construct that Numba refuses

    return float(os.getpid())


@pytest.mark.parametrize(
    ("allocate", "reason"),
    [
        (
            _no_such_column,
            "Unknown attribute 'tomorrow' of type View, test_comp",
        ),
        (
            _helper_fails,
            "Unknown attribute 'tomorrow' of type View, test_comp",
        ),
        (_foreign_object, "Untyped global name 'FOREIGN': Cannot determine Numba typ"),
        (_context_manager, "The 'with (context manager) as (variable):' construct is"),
        (_import_inside, "Use of unsupported opcode (IMPORT_NAME) found"),
    ],
)
def test_a_kernel_that_cannot_be_compiled_gets_one_line_and_a_way_out(
    allocate: Any, reason: str
) -> None:
    with pytest.raises(PolicyError) as caught:
        compile_policy(bind("mine", allocate))
    message = str(caught.value)
    assert message.startswith(f"policy mine cannot be compiled: {reason}")
    assert message.endswith(
        "(remove @kernel to run it as plain Python, or use only what Numba compiles)"
    )
    assert "\n" not in message
    assert len(message) < 300


@pytest.mark.parametrize(
    ("answer", "kind"), [(7, "IntegerLiteral"), ("soon", "StringLiteral"), (None, "No")]
)
def test_a_kernel_returns_a_float(answer: Any, kind: str) -> None:
    @kernel
    def allocate(_view: Any, _rates: Any) -> Any:
        return answer

    with pytest.raises(
        PolicyError, match=f"^policy mine .* it returns {kind}"
    ) as caught:
        compile_policy(bind("mine", allocate))
    assert "math.inf" in caught.value.remedy


def test_a_kernel_is_compiled_by_its_own_dispatcher() -> None:
    policy: Any = get_policy("fcfs")
    assert compile_policy(policy) is policy.allocate.dispatcher
