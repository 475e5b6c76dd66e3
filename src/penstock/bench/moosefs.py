# SPDX-License-Identifier: MIT
"""A real MooseFS for a benchmark: a master, four chunk servers, a mount, one link.

All of it runs inside network, mount and process namespaces of its own, on the loopback
interface, which a token bucket filter limits. When the first process in the namespaces
ends, for whatever reason, the kernel ends all others and removes the mounts and the
interface. Only the folder of the files remains; its owner removes it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from penstock.bench.testbed import clean_environment
from penstock.errors import InputError

__all__ = ["MOUNT", "check_requirements", "namespace_command", "namespace_environment"]

#: The mounted file system, relative to the folder of the files.
MOUNT: Final = "mnt"
#: Longest time that a command may take inside the namespaces (s).
_LONGEST_S: Final = 1800
_PATH: Final = ":/usr/sbin:/sbin"
_TOOLS: Final = (
    *("mfsmaster", "mfschunkserver", "mfsmount", "mfssetgoal", "mfssettrashtime"),
    *("unshare", "ip", "tc", "dd"),
)
#: Chunk servers refuse 127.0.0.1: every server has an address of its own. By default
#: the master begins after a minute to move files between servers, over the same link.
_SETUP: Final = r"""
set -eu
cd "$1"; bits=$2; shift 2
# The servers must be on time, whatever else the machine does.
renice -n -15 -p $$ >/dev/null 2>&1 || true
echo -15 >/proc/self/autogroup 2>/dev/null || true
ip link set lo mtu 1500 up
ip address add 192.0.2.10/32 dev lo
mkdir -p master mnt
printf 'MFSM NEW' >master/metadata.mfs
echo '* / rw,alldirs,admin,maproot=0:0' >exports.cfg
common="WORKING_USER=root
WORKING_GROUP=root
LOCK_MEMORY=0"
cat >master.cfg <<END
$common
DATA_PATH=$PWD/master
EXPORTS_FILENAME=$PWD/exports.cfg
REPLICATIONS_DELAY_INIT=86400
MATOML_LISTEN_HOST=192.0.2.10
MATOCS_LISTEN_HOST=192.0.2.10
MATOCL_LISTEN_HOST=192.0.2.10
END
mfsmaster -c master.cfg start >log 2>&1
for number in 11 12 13 14; do
    ip address add 192.0.2.$number/32 dev lo
    mkdir -p $number/data $number/var
    echo "$PWD/$number/data" >$number/hdd.cfg
    cat >$number/server.cfg <<END
$common
DATA_PATH=$PWD/$number/var
HDD_CONF_FILENAME=$PWD/$number/hdd.cfg
HDD_LEAVE_SPACE_DEFAULT=16MiB
BIND_HOST=192.0.2.$number
CSSERV_LISTEN_HOST=192.0.2.$number
MASTER_HOST=192.0.2.10
END
    mfschunkserver -c $number/server.cfg start >>log 2>&1
done
mfsmount mnt -H 192.0.2.10 >>log 2>&1
# A file can be written once the servers have told the master what they are.
for _ in $(seq 150); do
    { echo x >mnt/probe; } 2>/dev/null && break
    sleep 0.2
done
rm mnt/probe
# One copy of each file, and no waste bin: what is removed frees its space.
mfssetgoal 1 mnt >>log
mfssettrashtime 0 mnt >>log
tc qdisc add dev lo root tbf rate ${bits}bit burst 256kb latency 50ms
"""


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


def namespace_command(
    root: Path, bytes_per_s: float, command: Sequence[str]
) -> list[str]:
    """Return a command that runs `command` where MooseFS is mounted.

    Parameters
    ----------
    root
        Folder of the files; the mount is `MOUNT` below it.
    bytes_per_s
        Limit of the network (bytes/s).
    """
    spaces = ("--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child")
    # Not `exec`: the shell is the first process, and all others end with it.
    run = f'{_SETUP}timeout --kill-after 5 {_LONGEST_S} "$@"'
    facts = [str(root), str(round(8 * bytes_per_s))]
    return ["unshare", *spaces, "bash", "-c", run, "moosefs", *facts, *command]


def namespace_environment() -> dict[str, str]:
    """Return the environment of `namespace_command`."""
    environment = clean_environment()
    return {**environment, "PATH": environment.get("PATH", "") + _PATH}
