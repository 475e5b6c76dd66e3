# SPDX-License-Identifier: MIT
"""Wheels are checked against what their names promise."""

from __future__ import annotations

import platform
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from check_wheel import main, problems

from penstock.native.files import BUILT, SOURCES

pytestmark = pytest.mark.skipif(
    shutil.which("readelf") is None or not (BUILT / "libpenstock-mount.so").is_file(),
    reason="needs readelf and the compiled C parts",
)
_TAG = f"py3-none-manylinux_2_99_{platform.machine()}"


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that makes a wheel of what is compiled in the checkout."""

    def wheel(tag: str = _TAG, without: str = "") -> Path:
        path = tmp_path / f"penstock-1-{tag}.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for file in (*BUILT.iterdir(), SOURCES / "shim/real.h"):
                if file.name != without:
                    name = file.relative_to(SOURCES.parents[1])
                    archive.write(file, name)
            archive.writestr("penstock/native/built/LICENSE.libfuse", "text")
            archive.writestr("penstock/data.csv", "1")
        return path

    return wheel


def test_a_developers_wheel_needs_libfuse_of_the_system(
    make: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    found = list(problems(make()))
    assert found == [
        f"{n} needs libfuse3.so.3" for n in ("libpenstock-mount.so", "plain")
    ]
    assert main([str(make())]) == 1
    assert "libfuse3.so.3" in capsys.readouterr().out


def test_an_older_c_library_than_needed_is_reported(make: Callable[..., Path]) -> None:
    found = list(problems(make(_TAG.replace("2_99", "2_2"))))
    assert any(line.startswith("libpenstock.so needs glibc 2.") for line in found)


def test_another_machine_is_reported(make: Callable[..., Path]) -> None:
    other = {"x86_64": "aarch64"}.get(platform.machine(), "x86_64")
    found = list(problems(make(f"py3-none-manylinux_2_99_{other}")))
    assert f"libpenstock.so is not for {other}" in found


def test_a_missing_file_is_reported(make: Callable[..., Path]) -> None:
    assert "writer is missing" in list(problems(make(without="writer")))


def test_a_name_without_the_tag_is_reported(make: Callable[..., Path]) -> None:
    (found,) = problems(make("py3-none-any"))
    assert "tag" in found


def test_a_wrapped_call_that_is_not_exported_is_reported(
    make: Callable[..., Path], tmp_path: Path
) -> None:
    wheel = make(without="libpenstock.so")
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.write(BUILT / "writer", "penstock/native/built/libpenstock.so")
    assert "libpenstock.so does not export pwrite64" in list(problems(wheel))


def test_a_data_file_that_only_the_sdist_has_is_reported(
    make: Callable[..., Path], tmp_path: Path
) -> None:
    with tarfile.open(tmp_path / "penstock-1.tar.gz", "w:gz") as archive:
        for name in ("data.csv", "more.csv", "source.c"):
            (tmp_path / name).touch()
            archive.add(tmp_path / name, f"penstock-1/src/penstock/{name}")
    found = [line for line in problems(make()) if "missing" in line]
    assert found == ["src/penstock/more.csv is missing"]
