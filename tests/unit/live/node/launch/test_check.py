# SPDX-License-Identifier: MIT
"""Whether a program can be controlled: the findings and their remedies."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.node.launch.check import (
    UNCOVERED,
    CheckReport,
    Controllability,
    check,
    wrapped_calls,
)

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

WRITES = '#include <stdio.h>\nint main(void) { puts("a"); return 0; }\n'


def _program(folder: Path, text: str, *options: str) -> Path:
    source = folder / "program.c"
    source.write_text(text)
    target = folder / "program"
    command = ["gcc", "-w", "-o", str(target), str(source), *options]
    done = subprocess.run(command, capture_output=True, check=False, timeout=120)
    if done.returncode:
        pytest.skip(f"gcc cannot: {done.stderr.decode().splitlines()[-1]}")
    return target


def _script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def _reasons(report: CheckReport, verdict: Controllability) -> str:
    return "; ".join(f.what for f in report.findings if f.verdict is verdict)


@needs_gcc
def test_an_ordinary_program_can_be_controlled(tmp_path: Path) -> None:
    report = check(str(_program(tmp_path, WRITES)))
    assert report.verdict is Controllability.CONTROLLABLE
    assert report.findings == ()


@needs_gcc
def test_a_static_program_cannot(tmp_path: Path) -> None:
    report = check(str(_program(tmp_path, WRITES, "-static")))
    assert report.verdict is Controllability.NOT
    assert "static" in _reasons(report, Controllability.NOT)
    assert "penstock mount" in report.findings[0].remedy


@needs_gcc
def test_a_program_for_another_c_library_cannot(tmp_path: Path) -> None:
    loader = "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1"
    report = check(str(_program(tmp_path, WRITES, loader)))
    assert "not glibc" in _reasons(report, Controllability.NOT)


@needs_gcc
def test_a_program_without_its_loader_cannot(tmp_path: Path) -> None:
    loader = "-Wl,--dynamic-linker=/nowhere/ld-linux-x86-64.so.2"
    report = check(str(_program(tmp_path, WRITES, loader)))
    assert "loader does not exist" in _reasons(report, Controllability.NOT)


@needs_gcc
def test_a_go_program_cannot(tmp_path: Path) -> None:
    note = (
        '__attribute__((section(".note.go.buildid"), used, aligned(4)))\n'
        "static const struct { int a, b, c; char n[4]; char d[4]; } note =\n"
        '    {4, 4, 4, "Go\\0", "abc"};\n'
    )
    # The linker puts notes of other names into one segment: leave out its own.
    options = ["-Wl,--build-id=none", "-Wl,-z,nognustack"]
    path = _program(tmp_path, note + WRITES, *options)
    strip = ["objcopy", "-R", ".note.gnu.property", "-R", ".note.ABI-tag"]
    subprocess.run([*strip, str(path)], check=True, timeout=120, capture_output=True)
    assert "Go programs" in _reasons(check(str(path)), Controllability.NOT)


def test_a_program_of_32_bits_cannot(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(b"\x7fELF\x01\x01" + bytes(10) + b"\x02\x00\x03\x00")
    path.chmod(0o755)
    report = check(str(path))
    assert "32 bits for x86" in _reasons(report, Controllability.NOT)
    assert "cannot be preloaded" in report.findings[0].remedy


@needs_gcc
@pytest.mark.parametrize("bit", [0o4000, 0o2000])
def test_a_set_user_id_program_cannot_be_controlled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bit: int
) -> None:
    path = _program(tmp_path, WRITES)
    path.chmod(0o755 | bit)
    assert "for other users" in _reasons(check(str(path)), Controllability.PARTLY)
    for name in ("geteuid", "getegid"):
        monkeypatch.setattr(os, name, lambda: 12345)
    monkeypatch.setattr(os, "getgroups", list)
    assert "more rights" in _reasons(check(str(path)), Controllability.NOT)


@needs_gcc
def test_a_program_with_capabilities_cannot_unless_root_calls_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _program(tmp_path, WRITES)
    monkeypatch.setattr(os, "listxattr", lambda _: ["security.capability"])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "for other users" in _reasons(check(str(path)), Controllability.PARTLY)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert "more rights" in _reasons(check(str(path)), Controllability.NOT)


@needs_gcc
def test_a_file_system_without_attributes_has_no_capabilities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise OSError(95, os.strerror(95))

    monkeypatch.setattr(os, "listxattr", refuse)
    for user in (0, 12345):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert check(str(_program(tmp_path, WRITES))).findings == ()


@needs_gcc
@pytest.mark.parametrize(
    ("call", "reason"),
    [("io_uring_queue_init", "io_uring"), ("io_submit", "libaio")],
)
def test_a_library_that_bypasses_control_is_named(
    tmp_path: Path, call: str, reason: str
) -> None:
    """The program itself imports nothing suspicious; its library does."""
    (tmp_path / "engine.c").write_text(f"void {call}(void) {{}}\n")
    (tmp_path / "helper.c").write_text(
        f"void {call}(void); void help(void); void help(void) {{ {call}(); }}\n"
    )
    for name, more in (("engine", []), ("helper", ["-L.", "-lengine"])):
        command = ["gcc", "-shared", "-fPIC", "-o", f"lib{name}.so", f"{name}.c"]
        command += ["-Wl,-rpath,$ORIGIN", *more]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=120)
    text = "void help(void); int main(void) { help(); return 0; }\n"
    path = _program(
        tmp_path, text, f"-L{tmp_path}", "-lhelper", f"-Wl,-rpath,{tmp_path}"
    )
    report = check(str(path))
    assert report.verdict is Controllability.PARTLY
    assert reason in _reasons(report, Controllability.PARTLY)
    assert str(tmp_path / "libhelper.so") in _reasons(report, Controllability.PARTLY)
    assert str(tmp_path / "libhelper.so") in report.examined
    (tmp_path / "libengine.so").unlink()
    assert "libengine.so" in _reasons(check(str(path)), Controllability.CONTROLLABLE)


@needs_gcc
def test_calls_that_are_not_wrapped_are_named(tmp_path: Path) -> None:
    text = '#include <stdio.h>\nint main(void) { return fscanf(stdin, "a"); }\n'
    report = check(str(_program(tmp_path, text)))
    assert report.verdict is Controllability.PARTLY
    assert "fscanf" in _reasons(report, Controllability.PARTLY)


def test_no_wrapped_call_is_listed_as_uncovered() -> None:
    assert {"write", "fwrite", "copy_file_range", "stat"} <= wrapped_calls()
    assert not wrapped_calls() & {
        name for names in UNCOVERED.values() for name in names
    }


def test_every_call_listed_as_uncovered_exists() -> None:
    libc = ctypes.CDLL(None)
    newer = {"__isoc23_fscanf", "__isoc23_vfscanf"}
    names = {name for group in UNCOVERED.values() for name in group} - newer
    assert {name for name in names if not hasattr(libc, name)} == set()


# --- Scripts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["#!/bin/sh", "#! /bin/sh -e", "#!/usr/bin/env sh", "#!/usr/bin/env -S A=1 sh"],
)
def test_a_script_is_judged_by_its_interpreter(tmp_path: Path, line: str) -> None:
    report = check(_script(tmp_path / "a", f"{line}\nexit\n"))
    assert Path(report.examined[1]).name == "sh"
    assert report.verdict is check("sh").verdict


def test_a_script_of_a_script_is_followed(tmp_path: Path) -> None:
    inner = _script(tmp_path / "inner", f"#!{sys.executable}\n")
    report = check(_script(tmp_path / "outer", f"#!{inner}\n"))
    assert report.examined[1] == inner
    assert report.examined[2] == sys.executable


def test_a_script_that_calls_itself_gives_one_message(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(InputError, match="scripts of one another"):
        check(_script(path, f"#!{path}\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a program and not a script"),
        (b"hello\n", "not a program and not a script"),
        (b"#!\n", "names no interpreter"),
        (b"#!/usr/bin/env\n", "names no interpreter"),
        (b"#!/no/such\n", "no such program"),
        (b"\x7fELF", "damaged ELF file"),
    ],
)
def test_a_file_that_is_not_a_program_gives_one_message(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    path.chmod(0o755)
    with pytest.raises(InputError, match=message):
        check(str(path))


def test_an_unknown_name_gives_one_message(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such program"):
        check("no-such-program-at-all")
    with pytest.raises(InputError, match="no such program"):
        check(str(tmp_path))


def test_a_program_that_cannot_be_read_gives_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, os.strerror(13))

    path = _script(tmp_path / "a", "#!/bin/sh\n")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        check(path)
