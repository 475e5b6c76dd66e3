# SPDX-License-Identifier: MIT
"""Check what is compiled in wheels against what their names promise.

    python scripts/check_wheel.py WHEEL ...

The tag of a wheel names a machine and the oldest C library (glibc) with which its files
run. Each compiled file must be for that machine, need no symbol of a newer glibc, and
need no library but those of glibc. No file of the package may be missing. The preload
library must export every wrapped call: where headers of a compiler define a call
inline, it would silently be missing. Needs readelf (binutils).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["main", "problems"]

_MACHINES = {"x86_64": "Advanced Micro Devices X86-64", "aarch64": "AArch64"}
_LIBRARIES = re.compile(r"(lib(c|m|dl|rt|pthread)|ld-linux-[\w-]+)\.so\.\d")
_BUILT = "penstock/native/built/"
#: Files that every wheel has.
_EXPECTED = {
    *("libpenstock.so", "libpenstock-mount.so", "LICENSE.libfuse"),
    *("libbbio.a", "libbbio_posix.so", "bbio.h"),
    *("application", "microbenchmark", "plain", "stopwatch", "writer"),
}


def main(wheels: list[str]) -> int:
    """Print what is wrong with each wheel; return 1 if something is."""
    status = 0
    for name in wheels:
        found = list(problems(Path(name)))
        for problem in found or ["complete, and as its name says"]:
            sys.stdout.write(f"{Path(name).name}: {problem}\n")
        status |= bool(found)
    return status


def problems(wheel: Path) -> Iterator[str]:
    """Yield what is wrong with a wheel."""
    tag = re.search(r"-py3-none-manylinux_(\d+)_(\d+)_(\w+)\.whl$", wheel.name)
    if tag is None:
        yield "the name has no tag py3-none-manylinux_..."
        return
    newest, machine = (int(tag[1]), int(tag[2])), tag[3]
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)  # noqa: S202 - our own
        built = {path.name: path for path in (Path(folder) / _BUILT).glob("*")}
        yield from (f"{name} is missing" for name in sorted(_EXPECTED - set(built)))
        for name, path in sorted(built.items()):
            if path.read_bytes()[:4] == b"\x7fELF":
                facts = _readelf(path)
                found = (*_foreign(facts, machine), *_too_new(facts, newest))
                yield from (f"{name} {problem}" for problem in found)
        yield from _left_out(wheel, Path(folder))
        if "libpenstock.so" in built:
            yield from _not_exported(Path(folder), built["libpenstock.so"])


def _readelf(path: Path) -> str:
    return subprocess.run(  # noqa: S603 - of the system
        ["readelf", "--wide", "-h", "-d", "-V", "--dyn-syms", str(path)],  # noqa: S607
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


def _foreign(facts: str, machine: str) -> Iterator[str]:
    """Yield another machine, and libraries that a system may not have."""
    name = re.search(r"Machine: +(.+)", facts)
    if name is None or name[1].strip() != _MACHINES[machine]:
        yield f"is not for {machine}"
    for library in re.findall(r"\(NEEDED\).*\[(.+)\]", facts):
        if not _LIBRARIES.fullmatch(library):
            yield f"needs {library}"


def _too_new(facts: str, newest: tuple[int, int]) -> Iterator[str]:
    """Yield versions of glibc that are newer than promised."""
    versions = {
        tuple(map(int, version.split(".")))
        for version in re.findall(r"GLIBC_(\d+(?:\.\d+)+)", facts)
    }
    for version in sorted(versions):
        if version[:2] > newest:
            yield f"needs glibc {'.'.join(map(str, version))}"


def _left_out(wheel: Path, root: Path) -> Iterator[str]:
    """Yield files of the package in the sdist beside the wheel that the wheel lacks.

    C sources are left out, and headers that nobody but the compiler reads.
    """
    for sdist in wheel.parent.glob("penstock-*.tar.gz"):
        with tarfile.open(sdist) as archive:
            names = (name.partition("/")[2] for name in archive.getnames())
            for name in sorted(names):
                kept = Path(name).suffix not in {"", ".c", ".h"}
                if name.startswith("src/") and kept and not (root / name[4:]).exists():
                    yield f"{name} is missing"


def _not_exported(root: Path, library: Path) -> Iterator[str]:
    """Yield wrapped calls (native/shim/real.h) that the library does not export."""
    header = (root / "penstock/native/shim/real.h").read_text()
    wrapped = set(re.findall(r"\bX\((\w+), \w+\)", header)) - {"name"}
    exported = set(
        re.findall(r"GLOBAL +DEFAULT +\d+ +([\w]+)", _readelf(library)),
    )
    for name in sorted(wrapped - exported):
        yield f"libpenstock.so does not export {name}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
