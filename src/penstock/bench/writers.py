# SPDX-License-Identifier: MIT
"""Processes that write, for the benchmarks of cost and pacing.

They run ``writer.c`` under the preload library, with one page and a file in a
controlled or in an uncontrolled folder.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.bench.testbed import TIMEOUT_S, temporary_folder
from penstock.errors import InputError
from penstock.live.node.launch.shim import shim_environment
from penstock.live.node.pages.page import LEASE_MAX_S, Page
from penstock.native.files import program_path

__all__ = ["LARGEST_BYTES", "WriterProcess", "Writers", "writers"]

#: Size of the largest write call.
LARGEST_BYTES: Final = 64 << 20


@dataclass(frozen=True)
class WriterProcess:
    """A process that is ready to write."""

    process: subprocess.Popen[str]

    def begin_at(self, start_ns: int) -> None:
        """Start writing at this monotonic time (ns); 0: now."""
        stream = self.process.stdin
        if stream is not None:
            stream.write(f"{start_ns}\n")
            stream.flush()

    def finish(self) -> tuple[float, int]:
        """Return the processor time per call and the end of the last call (ns)."""
        output, _ = self.process.communicate(timeout=TIMEOUT_S)
        if self.process.returncode != 0:
            raise InputError(
                "a writing process of the benchmark failed",
                remedy="choose a folder with enough free space: --folder",
            )
        cost_ns, end_ns = output.split()
        return float(cost_ns), int(end_ns)


@dataclass(frozen=True)
class Writers:
    """Starts writing processes that share one page."""

    root: Path
    page: Page

    def start(
        self,
        size_bytes: int,
        count: int,
        *,
        controlled: bool = True,
        free: bool = False,
        call: str = "write",
    ) -> WriterProcess:
        """Start a process that will write `count` times; return when it is ready.

        Parameters
        ----------
        controlled
            The file is in the controlled folder.
        free
            Run without the preload library.
        call
            "write"; or "read": read the file instead, from memory.
        """
        folder = self.root / ("controlled" if controlled else "other")
        words = (folder / "file", size_bytes, count, self.root / "source", call)
        process = subprocess.Popen(  # noqa: S603 - our own program
            [str(program_path("writer")), *map(str, words)],
            env=dict(os.environ) if free else self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if process.stdout is not None:
            process.stdout.readline()
        return WriterProcess(process)

    def renew(self) -> None:
        """Renew the lease of the grant for as long as possible."""
        self.page.renew(LEASE_MAX_S)

    def _environment(self) -> dict[str, str]:
        return shim_environment(self.page.path, [self.root / "controlled"])


@contextmanager
def writers(folder: Path) -> Iterator[Writers]:
    """Prepare folders and page in `folder`; remove them afterwards."""
    with temporary_folder(folder) as root:
        for name in ("controlled", "other"):
            (root / name).mkdir()
        (root / "source").write_bytes(bytes(LARGEST_BYTES))
        with Page.create(root / "page") as page:
            yield Writers(root, page)
