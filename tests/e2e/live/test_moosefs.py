# SPDX-License-Identifier: MIT
"""Partitions on a real MooseFS: a master and three chunkservers, labels A, B and C."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
_TOOLS = ("mfsmaster", "mfschunkserver", "mfsmount", "mfsscadmin", "unshare", "ip")
_MISSING = [tool for tool in _TOOLS if shutil.which(tool, path=_PATH) is None]

pytestmark = [
    pytest.mark.skipif(
        bool(_MISSING),
        reason=f"not installed: {', '.join(_MISSING)} (scripts/install-packages.sh)",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and mounts need root"),
    pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="no /dev/fuse"),
]

#: Chunkservers refuse 127.0.0.1: every server has an address of its own.
_SETUP = r"""
set -eu
ip link set lo up
cd "$HOME_OF_MOOSEFS"
ip address add 192.0.2.10/32 dev lo
mkdir -p master mnt
printf 'MFSM NEW' >master/metadata.mfs
echo '* / rw,alldirs,admin,maproot=0:0' >exports.cfg
cat >master.cfg <<END
WORKING_USER=root
WORKING_GROUP=root
LOCK_MEMORY=0
DATA_PATH=$PWD/master
EXPORTS_FILENAME=$PWD/exports.cfg
MATOML_LISTEN_HOST=192.0.2.10
MATOCS_LISTEN_HOST=192.0.2.10
MATOCL_LISTEN_HOST=192.0.2.10
END
mfsmaster -c master.cfg start >log 2>&1
number=10
for label in A B C; do
    number=$((number + 1))
    ip address add 192.0.2.$number/32 dev lo
    mkdir -p $label/data $label/var
    echo "$PWD/$label/data" >$label/hdd.cfg
    cat >$label/server.cfg <<END
WORKING_USER=root
WORKING_GROUP=root
LOCK_MEMORY=0
DATA_PATH=$PWD/$label/var
HDD_CONF_FILENAME=$PWD/$label/hdd.cfg
HDD_LEAVE_SPACE_DEFAULT=16MiB
BIND_HOST=192.0.2.$number
CSSERV_LISTEN_HOST=192.0.2.$number
MASTER_HOST=192.0.2.10
LABELS=$label
END
    mfschunkserver -c $label/server.cfg start >>log 2>&1
done
mfsmount mnt -H 192.0.2.10 >>log 2>&1
# A file can be written once the servers have told the master what they are.
for _ in $(seq 150); do
    { echo x >mnt/probe; } 2>/dev/null && break
    sleep 0.2
done
rm mnt/probe
exec timeout --kill-after 5 60 "$@"
"""

_SCRIPT = r"""
import subprocess, sys, time
from pathlib import Path
from penstock.errors import InputError
from penstock.live.staging.drivers import get_driver

root = Path("mnt").resolve()
driver = get_driver("moosefs", root)
servers = {"192.0.2.11": "A", "192.0.2.12": "B", "192.0.2.13": "C"}

def labels(path):
    output = subprocess.run(["mfsfileinfo", path], capture_output=True, text=True,
                          check=True, timeout=120).stdout
    return {servers[a] for a in servers if a + ":" in output}

def written(folder, count):
    found = set()
    for number in range(count):
        path = folder / f"f{number}-{len(list(folder.iterdir()))}"
        path.write_bytes(bytes(1000))
        found |= labels(path)
    return "".join(sorted(found))

def await_server(label):
    folder = root / f"ready-{label}"
    folder.mkdir()
    driver.assign(folder, [label])
    for _ in range(150):
        try:
            return written(folder, 1)
        except OSError:
            time.sleep(0.2)

for label in "ABC":
    await_server(label)
job = root / "job"
job.mkdir()
driver.assign(job, ["A"])
print("first", written(job, 4))
old = sorted(job.iterdir())[0]
driver.assign(job, ["B", "C"])
driver.assign(job, ["C", "B"])
print("then", written(job, 12))
print("old", "".join(labels(old)))
try:
    driver.assign(root / "nowhere", ["A"])
except InputError as error:
    print("error", error)
"""


def test_new_files_follow_the_partition(tmp_path: Path) -> None:
    namespaces = ("--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child")
    command = [sys.executable, "-c", _SCRIPT]
    done = subprocess.run(
        ["unshare", *namespaces, "bash", "-c", _SETUP, "moosefs", *command],
        env={**os.environ, "PATH": _PATH, "HOME_OF_MOOSEFS": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    output = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert output["first"] == "A"
    assert output["then"] == "BC"
    assert output["old"] == "A"
    assert "mfssetsclass" in output["error"]
    assert "nowhere" in output["error"]
