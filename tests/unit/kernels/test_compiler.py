# SPDX-License-Identifier: MIT
"""The compiler of kernels: types of structs, addresses, the cache's key, C calls."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Any, NamedTuple, cast
from unittest.mock import Mock

import numpy as np
import pytest
from numba import types
from numba.core.caching import FunctionCache

from penstock.kernels import Floats, Ints, compiler, kernel, part, unpacker
from penstock.kernels.compiler import addresses, machine_code, struct_type
from penstock.policies import get_policy
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


@kernel
def _first_count(table: Sample) -> int:
    return _columns(table).counts[0]


@kernel
def _clear(table: Sample, index: int) -> None:
    _columns(table).counts[index] = 0


def _sample() -> Sample:
    values: Any = np.array([1.5, -2.5])
    counts: Any = np.array([7, -(2**62)])
    return Sample(-3, 0.1, values, counts)


@kernel
def total(sample: Sample) -> float:
    return sample.scale * sample.values[0] + sample.values[1]


# --- Structs ----------------------------------------------------------------------


def test_struct_type_has_pointers_for_columns() -> None:
    made = struct_type(Sample)
    assert made.fields == Sample._fields
    pointer: Any = types.CPointer
    assert tuple(made.types) == (
        types.int64,
        types.float64,
        pointer(types.float64),
        pointer(types.int64),
    )
    assert struct_type(Sample) is made


def test_struct_type_refuses_other_kinds() -> None:
    class Wrong(NamedTuple):
        name: str

    with pytest.raises(KeyError):
        struct_type(Wrong)


def test_addresses_hold_the_bits_of_scalars_and_where_arrays_lie() -> None:
    sample: Any = _sample()
    words = addresses(sample)
    assert words.dtype == np.uint64
    assert words[:1].view(np.int64)[0] == -3
    assert words[1:2].view(np.float64)[0] == 0.1
    assert words[2] == sample.values.ctypes.data
    assert words[3] == sample.counts.ctypes.data


@pytest.mark.parametrize(
    "column",
    [
        np.zeros(4, dtype=np.float32),
        np.zeros(4, dtype=np.int32),
        np.zeros(4, dtype=bool),
        np.zeros(4, dtype=complex),
        np.zeros(8)[::2],
        np.zeros((2, 2)).T[:1],
    ],
    ids=["float32", "int32", "bool", "complex", "strided", "transposed"],
)
def test_addresses_refuse_what_is_no_column(column: Any) -> None:
    with pytest.raises(TypeError, match="contiguous array of 64-bit items"):
        addresses(_sample()._replace(values=column))


def test_a_memoryview_is_a_column() -> None:
    memory = array("d", [1.0])
    words = addresses(_sample()._replace(values=memoryview(memory)))
    assert words[2] == memory.buffer_info()[0]


# --- The cache on disk ------------------------------------------------------------


class _Codegen:
    """What the cache asks of Numba's code generator."""

    def magic_tuple(self) -> tuple[str, ...]:
        return ("triple", "cpu", "features")


class _Context:
    """The part of Numba's target context that loading from a cache asks for."""

    def codegen(self) -> Any:
        return _Codegen()


def test_the_key_of_the_cache_has_the_digest_of_the_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_cache: Any = compiler._KernelCache
    cache = make_cache(cast(Any, total).py_func)
    key = cache._index_key((), _Codegen())
    assert key[-1] == compiler._source_digest()
    assert cache._index_key((), _Codegen()) == key
    monkeypatch.setattr(compiler, "_source_digest", lambda: "changed")
    assert cache._index_key((), _Codegen()) != key


def test_a_cache_that_names_a_class_of_another_version_is_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_cache: Any = compiler._KernelCache
    cache = make_cache(cast(Any, total).py_func)
    monkeypatch.setattr(compiler, "rtsys", Mock())
    stored = cache._cache_file
    monkeypatch.setattr(stored, "_index_path", str(tmp_path / "index"))
    version = pickle.dumps(stored._version)
    (tmp_path / "index").write_bytes(version + b"cpenstock.kernels\nNo_such_class\n.")
    with pytest.raises(AttributeError):
        stored._load_index()
    monkeypatch.setattr(cache, "_index_key", lambda *_: ())
    assert cache.load_overload((), _Context()) is None
    assert stored._load_index() == {}


def test_an_index_that_another_process_writes_never_names_the_code_of_an_older_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_files: Any = compiler._KernelCacheFiles

    def files(stamp: str) -> Any:
        return make_files(str(tmp_path), "module.kernel-1.py311", stamp)

    files("old source").save(("key", "old"), "old code")
    writer, reader = files("new source"), files("new source")
    read = []

    def then_read(save: Any) -> Any:
        def save_and_read(*arguments: Any) -> None:
            save(*arguments)
            read.append(reader.load(("key", "new")))

        return save_and_read

    for name in ("_save_index", "_save_data"):
        monkeypatch.setattr(writer, name, then_read(getattr(writer, name)))
    writer.save(("key", "new"), "new code")
    assert read == [None, "new code"]
    assert len(list(tmp_path.glob("*.nbc"))) == 1


def test_every_kernel_uses_that_cache() -> None:
    for function in (total, engine.run_compiled, get_policy("fcfs").allocate):
        assert isinstance(cast(Any, function).dispatcher._cache, compiler._KernelCache)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a copy of a package with kernels, and let the digest look at it."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "compiler.py").write_text("import penstock.kernels\n")
    (tmp_path / "deep" / "fcfs.py").write_text(
        "from penstock.kernels import kernel\nx = 1\n"
    )
    (tmp_path / "deep" / "other.py").write_text("x = 1\n")
    monkeypatch.setattr(compiler, "__file__", f"{tmp_path}/kernels/compiler.py")
    return tmp_path


@pytest.mark.parametrize("changed", ["kernels/compiler.py", "deep/fcfs.py"])
def test_the_digest_changes_with_any_file_of_kernels(
    package: Path, changed: str
) -> None:
    digest = compiler._source_digest.__wrapped__
    before = digest()
    assert digest() == before
    path = package / changed
    path.write_text(path.read_text() + "# changed\n")
    assert digest() != before


def test_the_digest_does_not_look_at_other_files(package: Path) -> None:
    digest = compiler._source_digest.__wrapped__
    before = digest()
    (package / "deep" / "other.py").write_text("x = 2\n")
    assert digest() == before


class UserPolicy:
    """A user's kernel and its helper, a kernel of another file that is a factor."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.helper = folder / "my_helper.py"
        (folder / "my_policy.py").write_text(
            "from my_helper import factor\n"
            "from penstock.kernels import kernel\n\n\n"
            "@kernel\ndef scaled(x: float) -> float:\n    return factor(x)\n"
        )

    def write_helper(self, factor: float, time_s: int) -> None:
        """Write the helper; the time of its last change decides if Python reads it."""
        self.helper.write_text(
            "from penstock.kernels import kernel\n\n\n"
            f"@kernel\ndef factor(x: float) -> float:\n    return {factor} * x\n"
        )
        os.utime(self.helper, (time_s, time_s))

    def result(self) -> float:
        """Return what a new process computes."""
        done = subprocess.run(
            [sys.executable, "-c", "import my_policy; print(my_policy.scaled(1.0))"],
            cwd=self._folder,
            env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout)


def test_a_user_s_kernel_is_compiled_anew_when_its_helper_changes(
    tmp_path: Path,
) -> None:
    policy = UserPolicy(tmp_path)
    for factor in (2.0, 3.0):
        policy.write_helper(factor, time_s=int(factor))
        assert policy.result() == factor


def test_a_kernel_of_an_outdated_pyc_file_is_not_kept_for_the_text(
    tmp_path: Path,
) -> None:
    """Python reads byte code of a text of the same size and the same second."""
    policy = UserPolicy(tmp_path)
    policy.write_helper(2.0, time_s=1)
    assert policy.result() == 2.0
    policy.write_helper(3.0, time_s=1)
    assert policy.result() == 2.0
    for path in tmp_path.rglob("my_helper*.pyc"):
        path.unlink()
    assert policy.result() == 3.0


def test_a_kernel_without_a_file_is_compiled_all_the_same() -> None:
    names: dict[str, Any] = {"kernel": kernel}
    exec("@kernel\ndef double(x):\n    return 2.0 * x\n", names)  # noqa: S102
    assert names["double"](2.0) == 4.0


def test_a_cache_that_names_a_renamed_struct_is_built_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(self: object, sig: object, target_context: object) -> None:
        raise AttributeError("Can't get attribute 'Program'")

    monkeypatch.setattr(FunctionCache, "_load_overload", load)

    @kernel
    def double(value: float) -> float:
        return 2.0 * value

    assert double(21.0) == 42.0


def test_c_calls_a_kernel_with_the_address_of_a_struct() -> None:
    sample = _sample()
    words = addresses(sample)
    before = int(sample.counts[0])
    result = machine_code(_scaled).call(words.ctypes.data, 0, 2.0)
    assert result == sample.values[0] * sample.scale * 2.0
    assert machine_code(_first_count).call(words.ctypes.data) == before + 1
    assert machine_code(_clear).call(words.ctypes.data, 0) is None
    assert sample.counts[0] == 0
    assert machine_code(_scaled).address != machine_code(_clear).address


def test_c_cannot_call_a_kernel_whose_result_is_not_as_declared() -> None:
    @kernel
    def half(value: int) -> int:
        return value / 2  # type: ignore[return-value]

    with pytest.raises(TypeError, match="half returns float64"):
        machine_code(half)
