# SPDX-License-Identifier: MIT
"""A real MooseFS cluster on this machine: a master, chunk servers, client nodes.

Every chunk server and every client node has its own network namespace and its own link
to a common switch. A link may have a rate, which both of its directions share. Every
client node has the file system mounted. Chunk server 1 has the label A, 2 has B, and so
on; new files below ``mnt/A`` go to chunk server 1 only, those elsewhere to any server,
one copy each. ``mnt/A`` is a mount of its own: requests to one chunk server never wait
for another one.

All of it, and the command that uses it, runs inside network, mount and process
namespaces (``moosefs_start.sh``, ``moosefs.sh``) with all files in memory that only
they see. When the command ends, or the process that started it, for whatever reason,
the kernel ends all processes and removes mounts, links and files. A process that waits
for a mount is helped to end (``moosefs_end.sh``).

``python -m penstock.bench.moosefs COMMAND...`` runs a command in the mounted folder of
client node 1, for example ``penstock bench harmless --storage .``. Daemons of penstock
that it starts keep their files in the memory of the cluster, too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from typing import Any, Final

from penstock.bench.testbed import TIMEOUT_S, clean_environment
from penstock.errors import InputError

__all__ = [
    "FOLDER",
    "SILENT_S",
    "ClusterSpec",
    "check_requirements",
    "client_mount",
    "cluster_command",
    "cluster_environment",
    "label_of",
    "main",
    "node_address",
    "node_command",
    "prioritise_processes",
    "run_module",
]

#: Folder of all files, as the command sees it.
FOLDER: Final = Path("/dev/shm")  # noqa: S108 - a private file system is mounted there
_SCRIPT: Final = Path(__file__).with_name("moosefs_start.sh")
_PATH: Final = ":/usr/sbin:/sbin"
_TOOLS: Final = (
    *("mfsmaster", "mfschunkserver", "mfsmount", "mfssetgoal", "mfssettrashtime"),
    *("mfsscadmin", "mfssetsclass", "unshare", "nsenter", "setpriv", "setsid"),
    *("mountpoint", "ip", "tc"),
)
#: Labels of chunk servers are single letters.
_MOST_SERVERS: Final = 26
_MOST_CLIENTS: Final = 99
_NICENESS: Final = -15
#: A module beside a cluster that prints nothing for this time has failed (s).
SILENT_S: Final = 900.0


@dataclass(frozen=True)
class ClusterSpec:
    """The size and the speed of a cluster."""

    servers: int = 4
    clients: int = 1
    """Number of client nodes."""
    server_bytes_per_s: float = inf
    """Rate of the link of every chunk server, all headers included."""
    client_bytes_per_s: float = inf
    """Rate of the link of every client node, all headers included."""
    mount_options: str = "rw"
    """Options of ``mfsmount``, separated by commas."""

    def __post_init__(self) -> None:
        counts = (
            ("servers", self.servers, _MOST_SERVERS),
            ("clients", self.clients, _MOST_CLIENTS),
        )
        for name, count, most in counts:
            if not 1 <= count <= most:
                raise InputError(
                    f"a cluster cannot have {count} {name}",
                    remedy=f"give 1 to {most}",
                )
        for rate in (self.server_bytes_per_s, self.client_bytes_per_s):
            if not rate >= 1.0:
                raise InputError(
                    f"{rate!r} bytes/s are not the rate of a link",
                    remedy="give at least 1, or inf for no limit",
                )


def check_requirements() -> None:
    """Raise `InputError` if a MooseFS cannot be started here; say what is missing."""
    path = os.environ.get("PATH", "") + _PATH
    missing = [tool for tool in _TOOLS if shutil.which(tool, path=path) is None]
    if missing:
        raise InputError(
            f"the benchmark needs a MooseFS; not installed: {', '.join(missing)}",
            remedy="apt install moosefs-master moosefs-chunkserver moosefs-client "
            "iproute2 util-linux",
        )
    if os.geteuid() != 0:
        raise InputError(
            "the benchmark needs root, for namespaces and mounts",
            remedy="run it with sudo",
        )
    if not Path("/dev/fuse").exists():
        raise InputError(
            "the benchmark needs /dev/fuse", remedy="load the kernel module fuse"
        )


def cluster_command(spec: ClusterSpec, command: Sequence[str]) -> list[str]:
    """Return a command that starts a cluster and runs `command` beside it.

    `command` runs at the switch, from where it reaches all nodes, in `FOLDER`. This
    process must start it: the cluster ends with its parent.
    """
    facts = (
        *(str(FOLDER), str(spec.servers), _bits(spec.server_bytes_per_s)),
        *(str(spec.clients), _bits(spec.client_bytes_per_s), spec.mount_options),
    )
    # `setpriv`: also if this process is killed.
    spaces = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount")
    return [*spaces, "bash", str(_SCRIPT), str(os.getpid()), *facts, *command]


def cluster_environment() -> dict[str, str]:
    """Return the environment of `cluster_command`."""
    environment = clean_environment()
    return {**environment, "PATH": environment.get("PATH", "") + _PATH}


def _bits(bytes_per_s: float) -> str:
    """Return a rate in bits/s; 0: no limit."""
    return "0" if bytes_per_s == inf else str(round(8 * bytes_per_s))


def label_of(server: int) -> str:
    """Return the label of a chunk server: 1 is A."""
    return chr(ord("A") + server - 1)


def client_mount(client: int = 1) -> Path:
    """Return the folder in which a client node has the file system mounted."""
    return FOLDER / f"client{client}" / "mnt"


def node_address(client: int) -> str:
    """Return the network address of a client node."""
    return f"192.0.2.{100 + client}"


def node_command(client: int, command: Sequence[str]) -> list[str]:
    """Return a command that runs `command` in the network of a client node.

    The tools of MooseFS (``mfssetsclass`` and others) need that, because they talk to
    the process of the mount.
    """
    return ["nsenter", f"--net={FOLDER}/client{client}/net", "--", *command]


def prioritise_processes() -> None:
    """Let all processes in this namespace go before others of the machine.

    With autogroups, priorities count only within a session, and every server and every
    mount has a session of its own.
    """
    for path in Path("/proc").glob("[0-9]*/autogroup"):
        with suppress(OSError):  # it has ended, or there are no autogroups
            path.write_text(str(_NICENESS))


def run_module(
    spec: ClusterSpec, module: str, words: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Run a Python module beside a cluster; yield its output, JSON lines.

    Raise `InputError` with its last line of error output if it fails, or if it is
    silent for `SILENT_S`.
    """
    with TemporaryFile("w+") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own program
            cluster_command(spec, [sys.executable, "-m", module, *words]),
            env=cluster_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            # Ctrl-C must reach only this process, which then ends the other.
            start_new_session=True,
        )
        try:
            for line in _lines_of(process):
                yield json.loads(line)
            if process.wait(TIMEOUT_S) != 0:
                errors.seek(0)
                reason = errors.read().strip().rpartition("\n")[2]
                raise InputError(
                    f"the benchmark on MooseFS failed: {reason or 'no message'}"
                )
        finally:
            # The processes in the namespaces end with it.
            process.kill()
            process.communicate(timeout=TIMEOUT_S)


def _lines_of(process: subprocess.Popen[str]) -> Iterator[str]:
    """Yield the lines that a process prints; kill it if it is silent for too long."""
    assert process.stdout is not None  # noqa: S101 - for the type checker
    while True:
        silent_until = time.monotonic() + SILENT_S
        killer = Timer(SILENT_S, process.kill)
        # Ctrl-C may come before it can be cancelled: it must not keep this process.
        killer.daemon = True
        try:
            killer.start()
            line = process.stdout.readline()
        finally:
            killer.cancel()
        if line:
            yield line
        elif time.monotonic() >= silent_until:
            raise InputError(f"the benchmark on MooseFS was silent for {SILENT_S:g} s")
        else:
            return


def main(words: Sequence[str]) -> int:
    """Run a command in the mounted folder of client node 1; return its status."""
    if not words or words[0].startswith("-"):
        raise InputError(
            "there is no command to run",
            remedy="python -m penstock.bench.moosefs COMMAND, such as ls -l",
        )
    check_requirements()
    inside = ["sh", "-c", 'cd "$0" && exec "$@"', str(client_mount()), *words]
    command = cluster_command(ClusterSpec(), node_command(1, inside))
    # A daemon on this machine keeps its own folder and archive.
    environment = {"PENSTOCK_FOLDER": str(FOLDER / "penstock")} | cluster_environment()
    return subprocess.call(command, env=environment)  # noqa: S603


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except InputError as mistake:
        sys.stderr.write(f"penstock: {mistake}\n")
        sys.exit(2)
