# SPDX-License-Identifier: MIT
"""Control two real programs: start the daemon, run two writers, look, switch off.

No root is needed. `penstock serve` shares 8 MB/s; `penstock run` starts each program
with a small library (in a checkout: `make native`) that delays what exceeds its
grant. Everything happens in a temporary folder, and nothing stays behind.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BANDWIDTH = "8 MB/s"
VOLUME = 80_000_000  # bytes: 10 s for one writer alone, 20 s for two together
WRITER = "open('{file}', 'wb', buffering=0).write(bytes({bytes}))"


def penstock(*arguments: str) -> list[str]:
    """Return the command line of a penstock command."""
    return [sys.executable, "-m", "penstock", *arguments]


def status(folder: Path) -> dict[str, Any] | None:
    """Return what `penstock ctl status` knows; None while no daemon answers."""
    command = penstock("ctl", "status", f"--folder={folder}", "--json", "-")
    done = subprocess.run(command, capture_output=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def wait_for_jobs(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """Wait until exactly these jobs are in an I/O phase; return the status."""
    for _ in range(300):
        now = status(folder)
        if now and {j["job"] for j in now["jobs"] if j["active"]} == set(names):
            return now
        time.sleep(0.1)
    raise TimeoutError(f"no I/O of {names}: see {folder}")


def write(folder: Path, job: str, volume: int) -> subprocess.Popen[bytes]:
    """Start a program that writes `volume` bytes, as a job of this name."""
    program = [sys.executable, "-c", WRITER.format(file=job, bytes=volume)]
    command = penstock("run", f"--folder={folder}", f"--job={job}", "--", *program)
    return subprocess.Popen(command, cwd=folder.parent)


def demonstrate(home: Path) -> None:
    """Run two writers under the daemon, then switch control off."""
    folder = home / "run"
    wait_for_jobs(folder, [])
    writers = [write(folder, job, VOLUME) for job in ("climate", "genome")]
    now = wait_for_jobs(folder, ["climate", "genome"])
    print(f"policy {now['policy']} shares {now['bandwidth'] / 1e6:g} MB/s:")
    for job in sorted(now["jobs"], key=lambda job: str(job["job"])):
        print(f"  {job['job']} may draw {job['granted'] / 1e6:g} MB/s")
    off = penstock("ctl", "off", f"--folder={folder}")
    print(subprocess.check_output(off, text=True).strip())
    print("exit statuses:", [writer.wait() for writer in writers])
    print("written:", [(home / name).stat().st_size for name in ("climate", "genome")])


with tempfile.TemporaryDirectory() as home:
    serve = penstock("serve", f"--folder={home}/run", f"--prefixes={home}")
    serve += ["--bandwidth", BANDWIDTH, "--lend", "no"]  # each keeps all of its share
    daemon = subprocess.Popen(serve, stderr=subprocess.DEVNULL)
    try:
        demonstrate(Path(home))
    finally:
        daemon.terminate()
        daemon.wait()
