# SPDX-License-Identifier: MIT
"""The preload library: found or compiled once; it exports only the wrapped calls."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.native import build
from penstock.native.build import (
    SOURCES,
    STRICT,
    build_shim,
    mount_library_path,
    shim_path,
)
from support.users import NEEDS_ROOT, NOBODY, as_user, open_for_all

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the library as strictly as it must pass."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    target = tmp_path_factory.mktemp("shim") / "shim.so"
    build_shim(target, STRICT)
    return target


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's cache folder, empty; there is no other place."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "_SYSTEM_CACHE", tmp_path / "absent" / "penstock")
    return tmp_path / "cache" / "penstock"


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a source that compiles at once in place of the real ones."""
    folder = tmp_path / "native"
    (folder / "shim").mkdir(parents=True)
    (folder / "shim/tiny.c").write_text(
        "int tiny(void);\nint tiny(void) { return 1; }\n"
    )
    monkeypatch.setattr(build, "SOURCES", folder)
    return folder


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


@needs_gcc
def test_a_library_is_built_once(cache: Path, tiny: Path) -> None:
    first = shim_path()
    built_ns = first.stat().st_mtime_ns
    assert first.parent == cache
    assert shim_path() == first
    assert first.stat().st_mtime_ns == built_ns
    assert [path.name for path in cache.iterdir()] == [first.name]


@needs_gcc
@pytest.mark.parametrize("name", ["shim/tiny.c", "shim/more.h"])
def test_a_changed_source_is_another_library(
    cache: Path, tiny: Path, name: str
) -> None:
    first = shim_path()
    with (tiny / name).open("a") as source:
        source.write("/* changed */\n")
    assert shim_path() != first
    assert len(list(cache.iterdir())) == 2


def test_a_packaged_library_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packaged = tmp_path / "libpenstock.so"
    packaged.touch()
    monkeypatch.setattr(build, "_PACKAGED", packaged)
    monkeypatch.setattr(build, "_is_public", lambda folder: True)
    assert shim_path() == packaged


def test_without_a_compiler_there_is_one_message(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="install gcc"):
        shim_path()


@needs_gcc
def test_a_source_that_does_not_compile_gives_one_message_and_no_file(
    cache: Path, tiny: Path
) -> None:
    (tiny / "shim/tiny.c").write_text("no C at all")
    with pytest.raises(InputError, match=r"cannot be compiled: .*tiny\.c:1.*error"):
        shim_path()
    assert list(cache.iterdir()) == []


def test_a_folder_that_others_can_write_is_refused(cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    with pytest.raises(InputError, match="other users can write") as caught:
        shim_path()
    assert caught.value.where == str(cache)


def test_a_cache_that_is_not_a_folder_gives_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(build, "_SYSTEM_CACHE", tmp_path / "file" / "penstock")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(InputError, match="set XDG_CACHE_HOME"):
        shim_path()


@needs_gcc
def test_a_library_that_must_be_compiled_is_announced(cache: Path, tiny: Path) -> None:
    messages: list[str] = []
    shim_path(messages.append)
    shim_path(messages.append)
    assert messages == ["compiling the preload library; this is necessary only once"]


# --- The library of root, which all users can read --------------------------------


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the system's cache folder, which does not exist yet."""
    folder = tmp_path / "var"
    folder.mkdir()
    open_for_all(folder)
    monkeypatch.setattr(build, "_SYSTEM_CACHE", folder / "penstock")
    return folder / "penstock"


@NEEDS_ROOT
@needs_gcc
def test_all_users_can_read_the_library_of_root(
    cache: Path, tiny: Path, public: Path
) -> None:
    cache.mkdir(mode=0o700, parents=True)
    cache.parent.chmod(0o700)
    before = os.umask(0o077)
    try:
        library = shim_path()
    finally:
        os.umask(before)
    assert library.parent == public
    # As another user, who can neither remove nor replace it.
    content = as_user(NOBODY, lambda: len(library.read_bytes()))
    assert content == library.stat().st_size
    assert as_user(NOBODY, lambda: os.access(public, os.W_OK)) is False
    assert list(cache.iterdir()) == []


@NEEDS_ROOT
@needs_gcc
def test_a_cache_folder_of_root_that_all_can_read_is_used(
    cache: Path, tiny: Path, public: Path
) -> None:
    cache.mkdir(parents=True)
    open_for_all(cache)
    assert shim_path().parent == cache


@NEEDS_ROOT
@needs_gcc
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o700])
def test_a_folder_below_one_that_others_can_write_or_not_enter_is_not_used(
    cache: Path, tiny: Path, public: Path, mode: int
) -> None:
    public.parent.chmod(mode)
    assert shim_path().parent == cache


@NEEDS_ROOT
def test_a_packaged_library_that_only_root_can_read_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path, public: Path
) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    (private / "libpenstock.so").write_bytes(b"library")
    monkeypatch.setattr(build, "_PACKAGED", private / "libpenstock.so")
    monkeypatch.setattr(build, "SOURCES", private)
    library = shim_path()
    assert library.parent == public
    assert as_user(NOBODY, library.read_text) == "library"


# --- The library of mounts --------------------------------------------------------


def test_the_library_of_mounts_is_compiled_from_its_own_sources(
    cache: Path, tiny: Path
) -> None:
    (tiny / "mount").mkdir()
    source = tiny / "mount/small.c"
    source.write_text("int small(void);\nint small(void) { return 1; }\n")
    messages: list[str] = []
    library = mount_library_path(messages.append)
    assert (library.parent, library.name[:6]) == (cache, "mount-")
    assert len(messages) == 1
    assert mount_library_path(messages.append) == library
    assert len(messages) == 1
    (tiny / "shim/tiny.c").write_text("int other;\n")
    assert mount_library_path() == library


def test_missing_headers_of_fuse_are_reported_with_the_package(
    cache: Path, tiny: Path
) -> None:
    (tiny / "mount").mkdir()
    (tiny / "mount/small.c").write_text("#include <fuse3/no_such_header.h>\n")
    with pytest.raises(InputError) as caught:
        mount_library_path()
    assert "the library of mounts cannot be compiled" in str(caught.value)
    assert "no_such_header.h: No such file" in str(caught.value)
    assert "libfuse3-dev" in str(caught.value)
    assert "\n" not in str(caught.value)


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
