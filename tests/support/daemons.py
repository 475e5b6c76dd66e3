# SPDX-License-Identifier: MIT
"""A real ``penstock serve`` and programs under its control, for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.waiting import LIMIT_S, until

__all__ = ["PHASES", "WRITER", "Daemon", "resident_bytes"]

#: A program that writes a block to a file again and again, until it is stopped.
WRITER = """
import sys
with open(sys.argv[1], "wb", buffering=0) as stream:
    for number in range(int(sys.argv[2])):
        stream.write(bytes(65536))
"""

#: A program that writes a megabyte for every line it reads.
PHASES = """
import sys
with open(sys.argv[1], "wb", buffering=0) as stream:
    for line in sys.stdin:
        for number in range(16):
            stream.write(bytes(65536))
        print("written", flush=True)
"""


class Daemon:
    """A daemon in a folder of its own, and the programs that it controls."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        self.home = folder / "run"
        self.settings = {
            "bandwidth": "8 MB/s",
            "prefixes": str(self.data),
            "lease": "1 s",
            "folder": str(self.home),
            "node": "here",
        } | settings
        self._started: list[subprocess.Popen[str]] = []
        self.process: subprocess.Popen[str] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment of all commands: no settings but those given."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
        return {**kept, "PENSTOCK_FOLDER": str(self.home)}

    def start(self) -> None:
        """Start the daemon and wait until it answers."""
        self.begin()
        until(self._is_ready)

    def begin(self) -> None:
        """Start the daemon."""
        flags = [
            f"--{name.replace('_', '-')}={value}"
            for name, value in self.settings.items()
        ]
        with (self.folder / "serve.log").open("a") as log:
            self.process = self._popen(
                [sys.executable, "-m", "penstock", "serve", *flags], stderr=log
            )

    def _is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log
        done = self.command("ctl", "status")
        return done.returncode == 0

    @property
    def log(self) -> str:
        """What the daemon has logged."""
        return (self.folder / "serve.log").read_text()

    def kill(self) -> None:
        """Kill the daemon as if the node had lost it."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(LIMIT_S)

    def stop(self) -> int:
        """Stop the daemon in good order."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(LIMIT_S)

    def close(self) -> None:
        """Kill the processes that a test has left."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait(LIMIT_S)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of penstock to its end."""
        done = subprocess.run(
            [sys.executable, "-m", "penstock", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
            env=self.environment,
            cwd=self.data,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def ctl(self, *arguments: str) -> str:
        """Return what a successful ``penstock ctl`` prints."""
        done = self.command("ctl", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(self) -> dict[str, Any]:
        """Return the status of the daemon."""
        document: dict[str, Any] = json.loads(self.ctl("status", "--json", "-"))
        assert document["penstock"] == 1
        return document

    def job(self, name: str) -> dict[str, Any]:
        """Return the status of a job; empty if there is none."""
        lines = [line for line in self.status()["jobs"] if line["job"] == name]
        return lines[0] if lines else {}

    def run(
        self,
        *command: str,
        job: str = "a",
        options: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        **rest: Any,
    ) -> subprocess.Popen[str]:
        """Start a program under control."""
        own = ["run", f"--job={job}", *options, "--", *command]
        return self._popen(
            [sys.executable, "-m", "penstock", *own],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            extra=environment or {},
            **rest,
        )

    def write(
        self, job: str, blocks: int = 100_000, **rest: Any
    ) -> subprocess.Popen[str]:
        """Start a job that writes blocks of 64 KiB."""
        writer = (sys.executable, "-c", WRITER, job, str(blocks))
        return self.run(*writer, job=job, **rest)

    def _popen(
        self, command: list[str], extra: Mapping[str, str] | None = None, **rest: Any
    ) -> subprocess.Popen[str]:
        process: subprocess.Popen[str] = subprocess.Popen(
            command,
            text=True,
            env={**self.environment, **(extra or {})},
            cwd=self.data,
            **rest,
        )
        self._started.append(process)
        return process


def resident_bytes(pid: int) -> int:
    """Return the memory of a process that is resident."""
    status = Path(f"/proc/{pid}/status").read_text()
    lines = dict(line.split(":", 1) for line in status.splitlines())
    return int(lines["VmRSS"].split()[0]) * 1024
