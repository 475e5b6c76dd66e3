# SPDX-License-Identifier: MIT
"""Kernels: compiled and interpreted twins, structs, and kernels without Numba."""

from __future__ import annotations

import copy
import dis
import pickle
import subprocess
import sys
from array import array
from types import FunctionType
from typing import Any, NamedTuple, cast

import numpy as np
import pytest

from penstock.kernels import (
    Floats,
    Ints,
    interpreted,
    is_kernel,
    kernel,
    kinds,
    memory,
    part,
    unpacker,
)
from penstock.kernels.compiler import addresses
from penstock.policies import POLICIES, get_policy
from penstock.sim import engine


class Sample(NamedTuple):
    number: int
    scale: float
    values: Floats
    counts: Ints


_columns = unpacker(Sample)


@part
def _add_scaled(sample: Sample, index: int, factor: float) -> float:
    sample.counts[index] += 1
    return sample.values[index] * sample.scale * factor


@kernel
def _scaled(table: Sample, index: int, factor: float) -> float:
    return _add_scaled(_columns(table), index, factor)


def _sample() -> Sample:
    values: Any = np.array([1.5, -2.5])
    counts: Any = np.array([7, -(2**62)])
    return Sample(-3, 0.1, values, counts)


@kernel
def weighted(sample: Sample, i: int) -> float:
    return sample.scale * sample.values[i] + sample.number


@kernel
def total(sample: Sample) -> float:
    result = 0.0
    for i in range(2):
        result += weighted(sample, i)
    sample.counts[0] += 1
    return result


_unpack = unpacker(Sample)


@kernel
def total_of_words(words: Any) -> float:
    return total(_unpack(words))


def _plain(x: float) -> float:
    return x


# --- Twins ------------------------------------------------------------------------


def test_is_kernel() -> None:
    assert is_kernel(total)
    assert not is_kernel(_plain)
    assert not is_kernel(3)


def test_a_plain_function_is_its_own_twin() -> None:
    assert interpreted(_plain) is _plain


def test_a_twin_is_made_once() -> None:
    assert interpreted(total) is interpreted(total)


def test_twin_and_kernel_give_the_same_bits() -> None:
    compiled, plain = _sample(), _sample()
    value = total_of_words(addresses(compiled))
    assert interpreted(total)(memory(plain)) == value
    assert compiled.counts[0] == plain.counts[0] == 8


# --- Calls from plain Python ------------------------------------------------------


@kernel
def scaled(values: Any, factor: float = 2.0) -> float:
    return first_of(values) * factor


@kernel
def first_of(values: Any) -> float:
    return values[0]  # type: ignore[no-any-return]


class _Columns:
    """A struct that is not a tuple, like the view of the engine's callback."""

    def __init__(self, sample: Sample) -> None:
        for name, value in memory(sample)._asdict().items():
            setattr(self, name, value)


@pytest.mark.parametrize("form", [memory, _Columns])
def test_a_struct_of_memoryviews_makes_a_kernel_run_interpreted(form: Any) -> None:
    compiled = _sample()
    assert total(form(_sample())) == total_of_words(addresses(compiled))


@pytest.mark.parametrize("values", [[3.0], memoryview(array("d", [3.0])), {0: 3.0}])
def test_python_columns_make_a_kernel_run_interpreted(values: Any) -> None:
    signatures = list(cast(Any, scaled).dispatcher.signatures)
    assert scaled(values) == 6.0
    assert scaled(values, 0.5) == 1.5
    assert scaled(values, factor=3.0) == 9.0
    assert cast(Any, scaled).dispatcher.signatures == signatures


def test_arrays_and_numbers_make_a_kernel_run_compiled() -> None:
    assert scaled(np.array([3.0])) == scaled(np.array([3.0]), 2.0) == 6.0
    assert cast(Any, scaled).dispatcher.signatures


def test_a_struct_of_arrays_makes_a_kernel_run_compiled() -> None:
    @kernel
    def first_value(sample: Sample) -> float:
        return sample.values[0] * sample.scale

    sample: Any = _sample()
    assert first_value(sample) == sample.values[0] * sample.scale
    assert len(cast(Any, first_value).dispatcher.signatures) == 1


def test_a_twin_keeps_the_closure_of_its_kernel() -> None:
    offset = 0.25

    @kernel
    def shifted(values: Any) -> float:
        return first_of(values) + offset

    assert shifted([1.0]) == shifted(np.array([1.0])) == 1.25


def _reachable(function: Any, seen: dict[int, Any]) -> dict[int, Any]:
    """Return all that a twin can call, by id."""
    for instruction in dis.get_instructions(function):
        called = function.__globals__.get(instruction.argval)
        if instruction.opname == "LOAD_GLOBAL" and id(called) not in seen:
            if is_kernel(called) or isinstance(called, FunctionType):
                seen[id(called)] = called
            if isinstance(called, FunctionType):
                _reachable(called, seen)
    return seen


@pytest.mark.parametrize("name", ["run", "start", *POLICIES])
def test_a_twin_reaches_no_compiled_function(name: str) -> None:
    function = getattr(engine, name, None) or get_policy(name).allocate
    twin = interpreted(function)
    assert isinstance(twin, FunctionType)
    called = _reachable(twin, {})
    assert [f.__name__ for f in called.values() if is_kernel(f)] == []


# --- Structs ----------------------------------------------------------------------


def test_kinds_are_those_of_the_annotations() -> None:
    assert kinds(Sample) == {
        "number": "int",
        "scale": "float",
        "values": "Floats",
        "counts": "Ints",
    }


def test_memory_shows_arrays_without_a_copy() -> None:
    sample = _sample()
    shown = memory(sample)
    assert type(shown) is Sample
    shown.values[0] = 4.5
    assert sample.values[0] == 4.5
    assert type(shown.values[0]) is float
    assert type(shown.counts[0]) is int
    assert shown.scale == 0.1


def test_an_interpreted_kernel_takes_the_struct_itself() -> None:
    sample = memory(_sample())
    expected = sample.values[1] * sample.scale * 3.0
    assert interpreted(_scaled)(sample, 1, 3.0) == expected
    # A part has no machine code of its own: Python always interprets it.
    assert _add_scaled(sample, 1, 3.0) == expected


def test_a_kernel_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(engine.run)) is engine.run  # noqa: S301
    assert copy.deepcopy(engine.run) is engine.run


# --- Without Numba ----------------------------------------------------------------

_WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = sys.modules["numpy"] = None
from array import array
from penstock.live.control.rates.controller import Controller
from penstock.policies import POLICIES
for name in POLICIES:
    dedicated = {"dedicated_events": 3.0}
    controller = Controller(name, 100.0, **dedicated, compiled=True)
    for job in "ab":
        controller.register(job, 0.0)
        controller.post(job, 1.0, 500.0)
    assert 0.0 < sum(controller.decide(1.0).rates.values()) <= 100.0, name
from penstock.policies.rounding import is_full
assert is_full(1.0, 1.0)
"""


def test_the_controller_decides_without_numba_and_numpy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_NUMBA],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_kernels_import_neither_numba_nor_numpy() -> None:
    code = "import sys, penstock.sim.engine, penstock.live.control.rates.controller\n"
    code += "sys.exit(','.join({'numpy', 'numba', 'scipy'} & set(sys.modules)) or 0)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
