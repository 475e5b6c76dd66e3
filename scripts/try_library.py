# SPDX-License-Identifier: MIT
"""Load the preload library of an unpacked wheel into a program of another system.

    python scripts/try_library.py FOLDER LAUNCHER [WORD ...]

FOLDER holds the unpacked wheel. LAUNCHER starts programs there: ``chroot ROOT``, or
``qemu-aarch64-static -L SYSROOT``. The program writes, and the page of the job must
show the calls. Fails if it does not. A root needs a mounted /proc.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from penstock.live.node.launch.shim import shim_environment
from penstock.live.node.pages.page import IoClass, Page

__all__ = ["main"]

_CALLS = 20
_BYTES = 4096


def main(words: list[str]) -> int:
    """Return 0 if the library counts what a program writes."""
    unpacked, *launcher = words
    built = Path(unpacked).absolute() / "penstock/native/built"
    is_root = Path(launcher[0]).name == "chroot"
    # In a root, everything must be below it.
    root = Path(launcher[1]) if is_root else Path("/")
    with tempfile.TemporaryDirectory(dir=root / "tmp") as name:
        folder = Path(name).absolute()
        page = Page.create(folder / "page")
        page.renew(60.0)
        for file in ("libpenstock.so", "writer"):
            (folder / file).write_bytes((built / file).read_bytes())
            (folder / file).chmod(0o755)
        (folder / "source").write_bytes(bytes(_BYTES))
        inside = Path("/") / folder.relative_to(root.absolute())
        variables = {
            name: value.replace(str(folder), str(inside))
            for name, value in shim_environment(
                page.path, [folder], {}, library=folder / "libpenstock.so"
            ).items()
        }
        _write(launcher, inside, variables)
        counters = page.counters(IoClass.WRITE)
    sys.stdout.write(f"{counters.ended_calls} calls, {counters.moved_bytes} bytes\n")
    return 0 if counters.moved_bytes == _CALLS * _BYTES else 1


def _write(launcher: list[str], folder: Path, variables: dict[str, str]) -> None:
    """Run the writer under the library; variables are for it, not for the launcher."""
    words = (folder / "file", _BYTES, _CALLS, folder / "source", "write")
    program = [str(folder / "writer"), *map(str, words)]
    settings = [f"{name}={value}" for name, value in variables.items()]
    if Path(launcher[0]).name == "chroot":
        command = [*launcher, "/usr/bin/env", *settings, *program]
    else:
        given = [word for setting in settings for word in ("-E", setting)]
        command = [*launcher, *given, *program]
    subprocess.run(  # noqa: S603 - given by the caller
        command,
        input="0\n",
        text=True,
        check=True,
        timeout=60,
        stdout=subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", os.defpath)},
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
