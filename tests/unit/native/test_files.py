# SPDX-License-Identifier: MIT
"""The compiled C parts: found, readable for all users; what the library exports."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.native import files
from penstock.native.files import (
    BUILT,
    SOURCES,
    mount_library_path,
    program_path,
    shim_path,
)
from support.native_build import STRICT, build_variant
from support.users import NEEDS_ROOT, NOBODY, as_user, open_for_all


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the library as strictly as it must pass."""
    folder = tmp_path_factory.mktemp("shim")
    return build_variant(folder, "shim", STRICT, "-DPENSTOCK_LIBFUSE=none")


def _wrapped() -> set[str]:
    return set(re.findall(r"\bX\((\w+), \w+\)", (SOURCES / "shim/real.h").read_text()))


def _exported(library: Path) -> set[str]:
    lines = subprocess.run(
        ["nm", "-D", "--defined-only", library],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout.splitlines()
    return {line.split()[-1] for line in lines}


def test_only_wrapped_calls_and_hints_are_exported_and_all_of_them(
    library: Path,
) -> None:
    hints = {"penstock_phase_begin", "penstock_phase_end"}
    words = ("init", "enable", "disable", "flush", "finalize", "on_flush")
    staging = {f"penstock_bbio_{word}" for word in words}
    # Programs built for an older C library call these instead of stat.
    kinds = ("x", "lx", "fx")
    old = {f"__{kind}stat{bits}" for kind in kinds for bits in ("", "64")}
    old |= {"__fxstatat", "__fxstatat64"}
    assert _exported(library) == _wrapped() - {"name"} | hints | staging | old


def test_every_wrapped_call_exists_in_the_c_library() -> None:
    libc = ctypes.CDLL(None)
    missing = {name for name in _wrapped() - {"name"} if not hasattr(libc, name)}
    assert not missing


def test_the_library_needs_nothing_but_the_c_library(library: Path) -> None:
    text = subprocess.run(
        ["readelf", "-d", library],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", text))
    assert needed <= {"libc.so.6", "libdl.so.2", "libpthread.so.0"}


# --- Finding them -----------------------------------------------------------------


def test_the_preload_library_is_beside_its_sources() -> None:
    assert shim_path() == BUILT / "libpenstock.so"


@pytest.mark.parametrize("name", ["application", "microbenchmark", "writer"])
def test_every_program_runs_and_checks_its_arguments(name: str) -> None:
    command = [program_path(name)]
    assert subprocess.run(command, check=False, timeout=60).returncode == 2


@pytest.mark.parametrize(
    ("find", "kind"),
    [
        (shim_path, "preload library"),
        (mount_library_path, "library of mounts"),
        (lambda: program_path("writer"), "program `writer`"),
    ],
)
def test_what_is_not_compiled_is_reported_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, find: object, kind: str
) -> None:
    monkeypatch.setattr(files, "BUILT", tmp_path)
    assert callable(find)
    with pytest.raises(InputError, match=rf"the {kind} is not compiled.*make native"):
        find()


# --- The library of root, which all users can read --------------------------------


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a library that only root can read, as the installed one."""
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    (folder / "libpenstock.so").write_bytes(b"library")
    monkeypatch.setattr(files, "BUILT", folder)
    return folder / "libpenstock.so"


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the copies, which does not exist yet."""
    folder = tmp_path / "var"
    folder.mkdir()
    open_for_all(folder)
    monkeypatch.setattr(files, "_PUBLIC", folder / "penstock")
    return folder / "penstock"


@NEEDS_ROOT
def test_a_library_that_only_root_can_read_is_copied(
    private: Path, public: Path
) -> None:
    before = os.umask(0o077)
    try:
        library = shim_path()
    finally:
        os.umask(before)
    assert library.parent == public
    # As another user, who can neither remove nor replace it.
    assert as_user(NOBODY, library.read_text) == "library"
    assert as_user(NOBODY, lambda: os.access(public, os.W_OK)) is False


@NEEDS_ROOT
def test_a_library_is_copied_once_and_another_one_beside_it(
    private: Path, public: Path
) -> None:
    """A job that runs has the first copy open."""
    first = shim_path()
    changed_ns = first.stat().st_mtime_ns
    assert (shim_path(), first.stat().st_mtime_ns) == (first, changed_ns)
    private.write_bytes(b"newer")
    second = shim_path()
    assert (first.read_bytes(), second.read_bytes()) == (b"library", b"newer")
    assert set(public.iterdir()) == {first, second}


@NEEDS_ROOT
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o700])
def test_without_a_folder_for_copies_root_uses_its_own_library(
    private: Path, public: Path, mode: int
) -> None:
    public.parent.chmod(mode)
    assert shim_path() == private


@NEEDS_ROOT
def test_a_folder_for_copies_that_cannot_be_made_is_no_error(
    private: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(files, "_PUBLIC", tmp_path / "file" / "penstock")
    assert shim_path() == private


# --- Names in the sources ---------------------------------------------------------


def test_functions_shared_by_the_shim_carry_the_prefix_of_their_module() -> None:
    """The prefix says in which file a function is."""
    header = (SOURCES / "shim/shim.h").read_text()
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    declared = set(
        re.findall(r"^[a-z][\w *]*?\*?(\w+)\([^;{]*\)(?:;|\n\{)", code, re.M)
    )
    modules = {path.stem for path in SOURCES.glob("*/*.c")}
    prefixes = {name.partition("_")[0] for name in modules} | {"wrap", "stdio"}
    assert len(declared) > 50
    assert {
        name for name in declared if name.partition("_")[0] not in prefixes
    } == set()
