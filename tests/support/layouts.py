# SPDX-License-Identifier: MIT
"""Compare structures in Python with those of a C header."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.native.files import SOURCES

__all__ = ["assert_layout"]


def assert_layout(
    header: str,
    structures: Mapping[str, type[ctypes.Structure]],
    constants: Mapping[str, int],
    folder: Path,
) -> None:
    """Assert that sizes, offsets and constants are those that the compiler sees."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    rows = {**_places(structures), **constants}
    prints = "\n".join(
        f'printf("%llu\\n", (unsigned long long)({expression}));' for expression in rows
    )
    source, program = folder / "layout.c", folder / "layout"
    source.write_text(
        "#include <stddef.h>\n#include <stdio.h>\n"
        f'#include "{header}"\nint main(void) {{\n{prints}\nreturn 0; }}\n'
    )
    command = [
        "gcc",
        "-std=c11",
        f"-I{SOURCES}/shim",
        f"-I{SOURCES}/stage",
        "-o",
        str(program),
        str(source),
    ]
    subprocess.run(command, check=True, timeout=120)
    output = subprocess.run(
        [program], capture_output=True, text=True, check=True, timeout=120
    ).stdout.split()
    assert dict(zip(rows, map(int, output), strict=True)) == rows


def _places(structures: Mapping[str, type[ctypes.Structure]]) -> dict[str, int]:
    """Return the sizes of structures, and the offsets and sizes of their fields."""
    rows = {}
    for name, kind in structures.items():
        rows[f"sizeof({name})"] = ctypes.sizeof(kind)
        for field, *_ in kind._fields_:
            place = getattr(kind, field)
            rows[f"offsetof({name}, {field})"] = place.offset
            rows[f"sizeof((({name} *)0)->{field})"] = place.size
    return rows
