# SPDX-License-Identifier: MIT
"""A real Slurm: its own daemons, in namespaces that die with the test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.waiting import LIMIT_S

__all__ = ["NEEDS_SLURM", "on_slurm"]

_TOOLS = ("slurmctld", "slurmd", "sbatch", "unshare", "ip")
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
_MISSING = [tool for tool in _TOOLS if shutil.which(tool, path=_PATH) is None]

NEEDS_SLURM = [
    pytest.mark.skipif(
        bool(_MISSING),
        reason=f"not installed: {', '.join(_MISSING)} (scripts/install-packages.sh)",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and slurmd need root"),
]

#: Without Munge: Slurm drops a message for good, e.g. the one that starts an epilog, if
#: Munge has seen its credential before ("Replayed credential"). That happens where
#: several slurmd ask one munged, and where Slurm asks again because the answer is late.
_CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={home}/state
SlurmctldPidFile={home}/slurmctld.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdPidFile={home}/%n.pid
SlurmdLogFile={home}/%n.log
SlurmdSpoolDir={home}/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmdParameters=config_overrides
MailProg=/bin/true
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=17820-{last_port}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

#: The address looks like that of a machine on a network.
_SETUP = """
set -eu
ip link set lo up
ip address add 192.0.2.10/32 dev lo
ip route add default dev lo src 192.0.2.10
slurmctld
for number in $(seq "$SLURM_TEST_NODES"); do slurmd -N "n$number"; done
for _ in $(seq 1200); do
    [ "$(timeout 10 sinfo -h -t idle -o %D || true)" = "$SLURM_TEST_NODES" ] && break
    sleep 0.1
done
timeout 10 sinfo -h -o '%D %T' >&2
exec timeout --kill-after 5 "$SLURM_LIMIT" "$@"
"""


def _logs(home: Path) -> str:
    """Return the ends of the logs of Slurm."""
    return "\n".join(
        f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}"
        for path in sorted(home.glob("*.log"))
    )


def on_slurm(
    home: Path,
    command: list[str],
    *,
    nodes: int = 4,
    settings: str = "",
    environment: Mapping[str, str] | None = None,
    limit_s: float = 2 * LIMIT_S,
) -> str:
    """Run a command beside a fresh Slurm; return its output.

    Parameters
    ----------
    home
        A new folder for all files of Slurm.
    settings
        Further lines of ``slurm.conf``.
    """
    (home / "state").mkdir(parents=True)
    facts = {"home": home, "host": os.uname().nodename, "nodes": nodes}
    text = _CONF.format(last_port=17819 + nodes, **facts)
    (home / "slurm.conf").write_text(text + settings)
    environment_of_slurm = {
        "PATH": _PATH,
        "PYTHON": sys.executable,
        "SLURM_CONF": str(home / "slurm.conf"),
        "SLURM_HOME": str(home),
        "SLURM_TEST_NODES": str(nodes),
        "SLURM_LIMIT": str(limit_s),
    }
    namespaces = ("--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child")
    done = subprocess.run(
        ["unshare", *namespaces, "bash", "-c", _SETUP, "slurm", *command],
        cwd=home,
        env={**os.environ, **environment_of_slurm, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=limit_s + 60.0,
    )
    assert done.returncode == 0, f"{done.stdout}\n{_logs(home)}"
    return done.stdout
