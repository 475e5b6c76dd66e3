# SPDX-License-Identifier: MIT
"""The compiler of kernels: Numba, its cache on disk, and machine code for C.

`penstock.kernels` imports this file when a kernel is first compiled; importing Numba
takes half a second and 60 MB.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from glob import escape
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic

from penstock.kernels import is_kernel, kinds

__all__ = [
    "MachineCode",
    "addresses",
    "machine_code",
    "new_dispatcher",
    "struct_type",
    "unpacker_type",
]

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


class _KernelCacheFiles(IndexDataCacheFile):
    """The index of one kernel's machine code, and one file of code for each key.

    RATIONALE: Numba numbers the files and writes the index before the code. A second
    process that starts meanwhile finds the new key in the index, and reads the code
    that an older version of the kernel left under that number. Here the name of a file
    follows from the key, and the code is written first.
    """

    def save(self, key: tuple[Any, ...], data: Any) -> None:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        stem = self._index_name.removesuffix(".nbi")
        name = f"{stem}.{digest}.nbc"
        self._save_data(name, data)
        overloads = self._load_index()
        overloads[key] = name
        self._save_index(overloads)
        for path in Path(self._cache_path).glob(f"{escape(stem)}.*.nbc"):
            if path.name not in overloads.values():
                path.unlink(missing_ok=True)


class _KernelCache(FunctionCache):
    """Numba's disk cache, with the text of ALL kernels of penstock in the key.

    RATIONALE: Numba only checks whether the file of the function itself has changed.
    A kernel that calls a kernel of another file would not be compiled again when that
    file changes, and would silently give wrong numbers. The same holds for the helper
    functions of a user's policy.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _KernelCacheFiles(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        key = super()._index_key(sig, codegen)
        return (*key, _helper_digest(self._py_func), _source_digest())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for a signature, or None if it is not cached.

        A cache that names a class that no longer exists, because it was written by
        another version of penstock, is emptied.

        RATIONALE: Numba's own method first imports all that a function might be
        compiled from, `scipy.linalg` among it, which takes 0.3 s. Machine code needs
        only Numba's memory manager.
        """
        rtsys.initialize(target_context)
        try:
            return self._load_overload(sig, target_context)
        except (AttributeError, ImportError):
            self.flush()
            return None


@cache
def _source_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        text = path.read_bytes()
        if b"penstock.kernels" in text:
            digest.update(text)
    return digest.hexdigest()


def _helper_digest(function: Any) -> str:
    """Return a digest of all code outside `function` that becomes part of it.

    This is the files of the kernels that it calls, the constants that it uses, and the
    byte code of all of them.

    RATIONALE: machine code is compiled from byte code. Python may have read that from a
    .pyc file which is older than the text: it compares sizes and whole seconds only.
    """
    digest = hashlib.sha256()
    seen, waiting = {function}, [function]
    files, constants = set(), set()
    while waiting:
        plain = waiting.pop()
        files.add(plain.__code__.co_filename)
        digest.update(_byte_code(plain.__code__))
        # With the names of attributes, which do no harm: dis would take 0.1 s.
        for name in plain.__code__.co_names:
            value = plain.__globals__.get(name)
            if is_kernel(value) and cast(Any, value).py_func not in seen:
                seen.add(cast(Any, value).py_func)
                waiting.append(cast(Any, value).py_func)
            elif isinstance(value, (bool, int, float, str, tuple)):
                constants.add(f"{plain.__module__}.{name} = {value!r}")
            elif isinstance(value, ModuleType):
                files.add(getattr(value, "__file__", None) or "")
    for file in sorted(files):
        if Path(file).suffix == ".py" and Path(file).is_file():
            digest.update(Path(file).read_bytes())
    digest.update("\n".join(sorted(constants)).encode())
    return digest.hexdigest()


def _byte_code(code: CodeType) -> bytes:
    """Return what a function does: its instructions, constants and names."""
    constants = []
    for each in code.co_consts:
        if isinstance(each, CodeType):
            constants.append(_byte_code(each))
        else:
            # The order of a set is another one in each process.
            is_set = isinstance(each, frozenset)
            constants.append(repr(sorted(each, key=repr) if is_set else each).encode())
    names = repr((code.co_names, code.co_varnames, code.co_freevars)).encode()
    return b"\n".join((code.co_code, names, *constants))


def new_dispatcher(
    function: Callable[..., Any], *, inline: bool, has_entry: bool
) -> Any:
    """Return Numba's dispatcher of a kernel, with the cache on disk.

    `inline` and `has_entry` are as in `penstock.kernels.Kernel`.
    """
    options: Any = {"error_model": "numpy", "forceinline": inline}
    if not has_entry:
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher: Any = njit(**options)(function)
    with suppress(RuntimeError):
        dispatcher._cache = _KernelCache(function)
    return dispatcher


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
    dispatcher = cast(Any, function).dispatcher
    dispatcher.compile(numba_arguments)
    compiled = dispatcher.overloads[numba_arguments]
    returned = types.unliteral(compiled.signature.return_type)
    if returned != result:
        raise TypeError(f"{function.__name__} returns {returned}")
    name = compiled.fndesc.llvm_cfunc_wrapper_name
    address = compiled.library.get_pointer_to_function(name)
    c_type = ctypes.CFUNCTYPE(c_result, *(c_argument for _, c_argument in arguments))
    return MachineCode(address, c_type(address))


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


def unpacker_type(struct: type[NamedTuple]) -> Any:
    """Return the type of a `penstock.kernels.Unpacker`: a function of words.

    The words (`addresses`) are given as an array or as its address.
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

    unpack_struct = cast(Any, intrinsic)(unpack)
    typing = cast(Any, cpu_target).typing_context
    # Make Numba read its list of functions again, to which `intrinsic` has added one.
    typing.refresh()
    return typing.resolve_value_type(unpack_struct)


def _word(value: object) -> int:
    if isinstance(value, (np.ndarray, memoryview)):
        column = np.asarray(value)
        if not column.flags.c_contiguous or column.dtype.itemsize != 8:
            raise TypeError("a kernel column is a contiguous array of 64-bit items")
        return column.ctypes.data
    if isinstance(value, float):
        return int(np.float64(value).view(np.uint64))
    return int(np.int64(cast(int, value)).view(np.uint64))
