# SPDX-License-Identifier: MIT
"""A page, a controlled folder, one that is not, and a program in C that writes."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.bench.stage import LIMIT_S, compiled
from penstock.errors import InputError
from penstock.live.node.page import LEASE_MAX_S, Page
from penstock.live.node.shim import shim_environment

__all__ = ["LARGEST_BYTES", "WriterProcess", "Writers", "writers"]

#: The largest call that a writer can make.
LARGEST_BYTES: Final = 64 << 20


@dataclass(frozen=True)
class WriterProcess:
    """A program that is ready to write."""

    process: subprocess.Popen[str]

    def begin_at(self, start_ns: int) -> None:
        """Let it begin at this monotonic time (ns); 0: now."""
        stream = self.process.stdin
        if stream is not None:
            stream.write(f"{start_ns}\n")
            stream.flush()

    def finish(self) -> tuple[float, int]:
        """Return the processor time of a call, and when the last one ended (ns)."""
        said, _ = self.process.communicate(timeout=LIMIT_S)
        if self.process.returncode != 0:
            raise InputError(
                "a writer of the benchmark failed",
                remedy="is there room in the folder? see --folder",
            )
        cost, end = said.split()
        return float(cost), int(end)


@dataclass(frozen=True)
class Writers:
    """Starts writers."""

    root: Path
    page: Page

    def start(
        self,
        size_bytes: int,
        count: int,
        *,
        controlled: bool = True,
        free: bool = False,
    ) -> WriterProcess:
        """Start a program that will write `count` times; return when it is ready.

        Parameters
        ----------
        controlled
            Whether its file lies under a prefix.
        free
            True to leave the preload library out.
        """
        place = self.root / ("controlled" if controlled else "other")
        words = (place / "file", size_bytes, count, self.root / "source")
        process = subprocess.Popen(  # noqa: S603 - made by us
            [str(self.root / "writer"), *map(str, words)],
            env=dict(os.environ) if free else self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if process.stdout is not None:
            process.stdout.readline()
        return WriterProcess(process)

    def renew(self) -> None:
        """Let the grant hold for as long as can be."""
        self.page.renew(LEASE_MAX_S)

    def _environment(self) -> dict[str, str]:
        return shim_environment(self.page.path, [self.root / "controlled"])


@contextmanager
def writers(folder: Path) -> Iterator[Writers]:
    """Make all that is needed in `folder`, and remove it afterwards."""
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix="penstock-") as name:
            root = Path(name)
            compiled("writer", root)
            for place in ("controlled", "other"):
                (root / place).mkdir()
            (root / "source").write_bytes(bytes(LARGEST_BYTES))
            with Page.create(root / "page") as page:
                yield Writers(root, page)
    except OSError as error:
        raise InputError(
            f"no benchmark here: {error.strerror}",
            where=str(folder),
            remedy="name a folder with 200 MB of room, in memory if you can: --folder",
        ) from error
