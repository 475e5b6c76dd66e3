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
the kernel runs compiled; called with memoryviews, lists or a struct of them, it runs
interpreted.

Rules for kernels: index and assign only (no slices, no methods), call other
kernels by their imported name, never divide by zero (compiled code would go on
with an infinity where Python raises), no exceptions, no allocation.
"""

from __future__ import annotations

import ctypes
import dis
import hashlib
import types as python_types
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher, OmittedArg
from numba.extending import intrinsic

__all__ = [
    "Floats",
    "Ints",
    "MachineCode",
    "addresses",
    "inlined",
    "interpreted",
    "is_kernel",
    "kernel",
    "kinds",
    "machine_code",
    "memory",
    "part",
    "struct_type",
    "unpacker",
]

#: One column of doubles: a pointer (compiled) or a memoryview (interpreted).
Floats: TypeAlias = "memoryview[float]"
#: One column of 64-bit integers.
Ints: TypeAlias = "memoryview[int]"

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Struct = TypeVar("_Struct", bound=NamedTuple)
_COLUMNS = {
    "float": types.float64,
    "int": types.int64,
    "Floats": types.CPointer(types.float64),
    "Ints": types.CPointer(types.int64),
}
#: Annotation of a kernel's parameter or result -> its type for Numba and for C. Any
#: other annotation is a struct, of which C passes the address of its words.
_SCALARS: dict[str, tuple[Any, Any]] = {
    "int": (types.int64, ctypes.c_int64),
    "float": (types.float64, ctypes.c_double),
    "None": (types.none, None),
}
_ADDRESS: tuple[Any, Any] = (types.intp, ctypes.c_void_p)
#: Arguments with which a kernel runs compiled: numbers, arrays, kernels.
_COMPILED = (bool, int, float, np.generic, np.ndarray, Dispatcher, OmittedArg)


class _KernelCache(FunctionCache):
    """Numba's disk cache, with the text of ALL kernels of penstock in the key.

    RATIONALE: Numba only checks whether the file of the function itself has changed.
    A kernel that calls a kernel of another file would not be compiled again when that
    file changes, and would silently give wrong numbers. The same holds for the helper
    functions of a user's policy.
    """

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        key = super()._index_key(sig, codegen)
        return (*key, _helper_digest(self._py_func), _source_digest())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for a signature, or None if it is not cached.

        A cache that names a class that no longer exists, because it was written by
        another version of penstock, is emptied.
        """
        try:
            return super().load_overload(sig, target_context)
        except (AttributeError, ImportError):
            self.flush()
            return None


@cache
def _source_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        text = path.read_bytes()
        if b"penstock.kernels" in text or path == Path(__file__):
            digest.update(text)
    return digest.hexdigest()


def _helper_digest(function: Any) -> str:
    """Return a digest of all code outside `function` that becomes part of it.

    This is the files of the kernels that it calls, and the constants that it uses.
    """
    digest = hashlib.sha256()
    seen, waiting = {function}, [function]
    files, constants = set(), set()
    while waiting:
        plain = waiting.pop()
        files.add(plain.__code__.co_filename)
        for name in _global_names(plain):
            value = plain.__globals__.get(name)
            if is_kernel(value) and cast(Any, value).py_func not in seen:
                seen.add(cast(Any, value).py_func)
                waiting.append(cast(Any, value).py_func)
            elif isinstance(value, (bool, int, float, str, tuple)):
                constants.add(f"{plain.__module__}.{name} = {value!r}")
            elif isinstance(value, python_types.ModuleType):
                files.add(getattr(value, "__file__", None) or "")
    for file in sorted(files):
        if Path(file).suffix == ".py" and Path(file).is_file():
            digest.update(Path(file).read_bytes())
    digest.update("\n".join(sorted(constants)).encode())
    return digest.hexdigest()


def _global_names(function: Any) -> set[str]:
    loads = (i for i in dis.get_instructions(function) if i.opname == "LOAD_GLOBAL")
    return {i.argval for i in loads}


def kernel(function: _Function) -> _Function:
    """Compile `function` at its first call and keep the machine code on disk.

    A function without a file (typed at a prompt) is compiled again in every process.
    """
    return _kernel(function)


def inlined(function: _Function) -> _Function:
    """Make `function` a kernel that becomes part of every kernel that calls it.

    RATIONALE: a call that is not inlined passes every field of its structs on the
    stack. The structs of the engine have many fields: such calls cost 70 ns per event.
    """
    return _kernel(function, inline=True)


def part(function: _Function) -> _Function:
    """Make `function` an inlined kernel that only kernels call.

    RATIONALE: Numba compiles an entry for calls from Python for every other kernel. For
    a struct of 80 fields that takes as long as all the rest. Called from Python, a part
    runs interpreted.
    """
    return _kernel(function, inline=True, has_entry=False)


def _kernel(
    function: _Function, *, inline: bool = False, has_entry: bool = True
) -> _Function:
    options: Any = {"error_model": "numpy", "forceinline": inline}
    if not has_entry:
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher: Any = njit(**options)(function)
    with suppress(RuntimeError):
        dispatcher._cache = _KernelCache(function)
    _interpret_plain_calls(dispatcher, has_entry=has_entry)
    return cast(_Function, dispatcher)


def _interpret_plain_calls(dispatcher: Any, *, has_entry: bool) -> None:
    """Let a kernel run interpreted if an argument is not for compiled code.

    RATIONALE: Numba calls `_compile_for_args` for arguments without machine code, and
    then calls the function that it returns. Calls of compiled code, which are frequent,
    cost nothing more. A policy in plain Python can call kernels in any way: through
    its globals, modules, closures and objects.
    """
    compile_for, type_of = dispatcher._compile_for_args, dispatcher.typeof_pyval

    def choose(*arguments: Any) -> Any:
        if has_entry and all(map(_is_compiled, arguments)):
            return compile_for(*arguments)
        dispatcher._types_active_call.clear()
        return lambda *given: interpreted(dispatcher)(*map(_plain_value, given))

    def quick_type_of(value: Any) -> Any:
        # Numba takes 20 us to find out that it has no type for a view.
        return type_of(value) if _is_compiled(value) else types.pyobject

    dispatcher._compile_for_args, dispatcher.typeof_pyval = choose, quick_type_of


def _is_compiled(argument: Any) -> bool:
    """Return True if an argument, or every field of a struct, is for compiled code."""
    if isinstance(argument, tuple):
        return all(map(_is_compiled, argument))
    return isinstance(argument, _COMPILED)


def _plain_value(argument: Any) -> Any:
    """Return an argument, or the default that Numba has put in its place."""
    return argument.value if isinstance(argument, OmittedArg) else argument


def is_kernel(function: object) -> bool:
    """Return True if `function` is a kernel."""
    return hasattr(function, "py_func")


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
    twins |= {n: _same for n, g in called.items() if hasattr(g, "unpacked_struct")}
    twin = python_types.FunctionType(
        plain.__code__,
        {**plain.__globals__, **twins},
        plain.__name__,
        plain.__defaults__,
        plain.__closure__,
    )
    return cast(_Function, twin)


def _same(struct: _Struct) -> _Struct:
    """Return a struct: what an `unpacker` does in an interpreted kernel."""
    return struct


class MachineCode(NamedTuple):
    """A compiled kernel, for callers outside of Numba."""

    address: int
    """Address of the C function."""
    call: Callable[..., Any]
    """The C function, for Python; it does not hold Python's lock."""


@cache
def machine_code(function: Callable[..., Any]) -> MachineCode:
    """Compile a kernel of numbers and structs as a C function.

    C passes an ``int`` as int64_t, a ``float`` as double, and a struct as the address
    of its words (`addresses`); the kernel turns that into a struct with an `unpacker`.
    """
    notes = {
        name: str(getattr(note, "__name__", note))
        for name, note in cast(Any, function).py_func.__annotations__.items()
    }
    result, c_result = _SCALARS[notes.pop("return")]
    arguments = [_SCALARS.get(note, _ADDRESS) for note in notes.values()]
    numba_arguments = tuple(numba for numba, _ in arguments)
    cast(Any, function).compile(numba_arguments)
    compiled = cast(Any, function).overloads[numba_arguments]
    returned = types.unliteral(compiled.signature.return_type)
    if returned != result:
        raise TypeError(f"{function.__name__} returns {returned}")
    name = compiled.fndesc.llvm_cfunc_wrapper_name
    address = compiled.library.get_pointer_to_function(name)
    c_type = ctypes.CFUNCTYPE(c_result, *(c_argument for _, c_argument in arguments))
    return MachineCode(address, c_type(address))


@cache
def kinds(struct: type[NamedTuple]) -> dict[str, str]:
    """Return the kind of every field: "float", "int", "Floats" or "Ints"."""
    return {
        name: str(getattr(kind, "__forward_arg__", kind))
        for name, kind in struct.__annotations__.items()
    }


@cache
def struct_type(struct: type[NamedTuple]) -> types.NamedTuple:
    """Return the Numba type of a struct, from its annotations."""
    columns = [_COLUMNS[kind] for kind in kinds(struct).values()]
    return types.NamedTuple(columns, struct)


def addresses(struct: NamedTuple) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return one 64-bit word per field of `struct`, for `unpacker`.

    The caller keeps `struct` alive while compiled code uses the words.
    """
    return np.array([_word(value) for value in struct], dtype=np.uint64)


def memory(struct: _Struct) -> _Struct:
    """Return `struct` with its arrays as memoryviews, for interpreted kernels."""
    views: Any = (
        memoryview(cast(Any, v)) if isinstance(v, np.ndarray) else v for v in struct
    )
    return type(struct)(*views)


def unpacker(struct: type[_Struct]) -> Callable[[Any], _Struct]:
    """Return an intrinsic that turns the words of `addresses` into a struct.

    The words are given as an array or as its address. In an interpreted kernel it
    returns its argument, which is the struct itself.
    """
    made = struct_type(struct)

    def unpack(_typing: Any, words: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if isinstance(signature.args[0], types.Integer):
                word_pointer = ir.IntType(64).as_pointer()
                data = builder.inttoptr(args[0], word_pointer)
            else:
                array = context.make_array(signature.args[0])
                data = array(context, builder, args[0]).data
            fields = []
            for number, column in enumerate(made.types):
                slot = builder.gep(data, [ir.Constant(ir.IntType(64), number)])
                word = builder.load(slot)
                target = context.get_value_type(column)
                pointer = isinstance(column, types.CPointer)
                convert = builder.inttoptr if pointer else builder.bitcast
                fields.append(convert(word, target))
            return context.make_tuple(builder, made, fields)

        return made(words), generate

    unpack_struct: Any = intrinsic(unpack)
    unpack_struct.unpacked_struct = struct
    return cast(Callable[[Any], _Struct], unpack_struct)


def _word(value: object) -> int:
    if isinstance(value, np.ndarray):
        if not value.flags.c_contiguous or value.dtype.itemsize != 8:
            raise TypeError("a kernel column is a contiguous array of 64-bit items")
        return value.ctypes.data
    if isinstance(value, float):
        return int(np.float64(value).view(np.uint64))
    return int(np.int64(cast(int, value)).view(np.uint64))
