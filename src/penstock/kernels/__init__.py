# SPDX-License-Identifier: MIT
"""Kernels: one source, run compiled by Numba or interpreted, with the same bits.

A kernel is a function of scalars and of *structs*: NamedTuples whose fields are
``float``, ``int``, `Floats` or `Ints`. Compiled, a `Floats` field is a bare
pointer, so that a struct of twenty arrays is passed through a function pointer
in about 10 ns (as Numba arrays it takes 65, or 280 when a scalar changes:
seven words each, and a reference count). Interpreted, the same field is a
``memoryview``, which gives Python floats. Both do IEEE double arithmetic in the
order of the source, and neither fast-math nor fused multiply-add is enabled:
that is why the results are equal bit by bit.

Plain Python may call a kernel, too. Called with numbers, arrays or a struct of them,
the kernel runs compiled; called with memoryviews, lists or a struct of them, or where
Numba is not installed, it runs interpreted.

Rules for kernels: index and assign only (no slices, no methods), call other
kernels by their imported name, never divide by zero (compiled code would go on
with an infinity where Python raises), no exceptions, no allocation.

This file needs neither NumPy nor Numba: nodes without them interpret kernels. The part
that compiles is `penstock.kernels.compiler`, which is imported when a kernel is first
compiled.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from importlib.util import find_spec
from types import FunctionType
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

__all__ = [
    "Floats",
    "Ints",
    "Kernel",
    "Unpacker",
    "can_compile",
    "inlined",
    "interpreted",
    "is_kernel",
    "kernel",
    "kinds",
    "memory",
    "part",
    "unpacker",
]

#: One column of doubles: a pointer (compiled) or a memoryview (interpreted).
Floats: TypeAlias = "memoryview[float]"
#: One column of 64-bit integers.
Ints: TypeAlias = "memoryview[int]"

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Struct = TypeVar("_Struct", bound=NamedTuple)


@cache
def can_compile() -> bool:
    """Return True if Numba is installed."""
    return find_spec("numba") is not None


class Kernel:
    """A function that runs compiled or interpreted; it is compiled at its first call.

    Parameters
    ----------
    inline
        Whether it becomes part of every kernel that calls it.
    has_entry
        Whether Python can call its machine code.
    """

    __name__: str
    __qualname__: str

    def __init__(
        self, function: Callable[..., Any], *, inline: bool, has_entry: bool
    ) -> None:
        update_wrapper(self, function)
        self.py_func: Any = function
        """The function as it is written."""
        self._inline, self._has_entry = inline, has_entry

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's object for the function: compiles, caches and calls machine code."""
        from penstock.kernels.compiler import new_dispatcher  # noqa: PLC0415 - Numba

        return new_dispatcher(
            self.py_func, inline=self._inline, has_entry=self._has_entry
        )

    @property
    def _numba_type_(self) -> Any:
        """How Numba sees this object in a function that it compiles."""
        return self.dispatcher._numba_type_

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run compiled or interpreted, as the arguments say."""
        if self._has_entry and _is_for_machine((*arguments, *named.values())):
            return self.dispatcher(*arguments, **named)
        return interpreted(self)(*arguments, **named)

    def __reduce__(self) -> str:
        # Worker processes import it by its name.
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<kernel {self.__module__}.{self.__qualname__}>"


def _is_for_machine(argument: Any) -> bool:
    """Return True if compiled code can take an argument, or every field of a struct.

    It takes numbers, arrays, numbers of NumPy (all of which have a `dtype`), kernels.
    """
    if isinstance(argument, tuple):
        return can_compile() and all(map(_is_for_machine, argument))
    is_number = isinstance(argument, (bool, int, float))
    return is_number or hasattr(argument, "dtype") or is_kernel(argument)


def kernel(function: _Function) -> _Function:
    """Compile `function` at its first call and keep the machine code on disk.

    A function without a file (typed at a prompt) is compiled again in every process.
    """
    return cast(_Function, Kernel(function, inline=False, has_entry=True))


def inlined(function: _Function) -> _Function:
    """Make `function` a kernel that becomes part of every kernel that calls it.

    RATIONALE: a call that is not inlined passes every field of its structs on the
    stack. The structs of the engine have many fields: such calls cost 70 ns per event.
    """
    return cast(_Function, Kernel(function, inline=True, has_entry=True))


def part(function: _Function) -> _Function:
    """Make `function` an inlined kernel that only kernels call.

    RATIONALE: Numba compiles an entry for calls from Python for every other kernel. For
    a struct of 80 fields that takes as long as all the rest. Called from Python, a part
    runs interpreted.
    """
    return cast(_Function, Kernel(function, inline=True, has_entry=False))


def is_kernel(function: object) -> bool:
    """Return True if `function` is a kernel."""
    return hasattr(function, "py_func")


def _global_names(function: Any) -> set[str]:
    loads = (i for i in dis.get_instructions(function) if i.opname == "LOAD_GLOBAL")
    return {i.argval for i in loads}


@cache
def interpreted(function: _Function) -> _Function:
    """Return the plain-Python twin of a kernel; any other function is its own twin.

    The twin has the same code object. It calls the twins of the kernels that
    `function` calls, so that nothing is compiled.
    """
    if not is_kernel(function):
        return function
    plain = cast(Any, function).py_func
    called = {name: plain.__globals__.get(name) for name in _global_names(plain)}
    twins = {name: interpreted(g) for name, g in called.items() if is_kernel(g)}
    twin = FunctionType(
        plain.__code__,
        {**plain.__globals__, **twins},
        plain.__name__,
        plain.__defaults__,
        plain.__closure__,
    )
    return cast(_Function, twin)


# --- Structs ----------------------------------------------------------------------


@cache
def kinds(struct: type[NamedTuple]) -> dict[str, str]:
    """Return the kind of every field: "float", "int", "Floats" or "Ints"."""
    return {
        name: str(getattr(kind, "__forward_arg__", kind))
        for name, kind in struct.__annotations__.items()
    }


def memory(struct: _Struct) -> _Struct:
    """Return `struct` with its arrays as memoryviews, for interpreted kernels."""
    views: Any = (memoryview(v) if hasattr(v, "dtype") else v for v in struct)
    return type(struct)(*views)


class Unpacker:
    """Turns the words of `penstock.kernels.compiler.addresses` into a struct.

    Compiled kernels pass the words as an array or as its address. Interpreted kernels
    pass the struct itself and get it back.
    """

    def __init__(self, struct: type[NamedTuple]) -> None:
        self._struct = struct

    @cached_property
    def _numba_type_(self) -> Any:
        """How Numba sees this object in a function that it compiles."""
        from penstock.kernels.compiler import unpacker_type  # noqa: PLC0415 - Numba

        return unpacker_type(self._struct)

    def __call__(self, struct: Any) -> Any:
        """Return the struct of an interpreted kernel."""
        return struct


def unpacker(struct: type[_Struct]) -> Callable[[Any], _Struct]:
    """Return an `Unpacker` for a struct, which kernels call as a function."""
    return Unpacker(struct)
