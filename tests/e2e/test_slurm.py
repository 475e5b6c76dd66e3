# SPDX-License-Identifier: MIT
"""Campaigns on a real Slurm: its own daemons, in namespaces that die with the test."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from support.campaigns import PIECES, Bench

_TOOLS = ("munged", "slurmctld", "slurmd", "sbatch", "unshare", "ip")
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
_MISSING = [tool for tool in _TOOLS if shutil.which(tool, path=_PATH) is None]

pytestmark = [
    # Not importorskip: dask_jobqueue changes what Ctrl-C does when it is imported.
    pytest.mark.skipif(
        find_spec("dask_jobqueue") is None, reason="the extra `dask` is not installed"
    ),
    pytest.mark.skipif(
        bool(_MISSING),
        reason=f"not installed: {', '.join(_MISSING)} (scripts/install-packages.sh)",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and slurmd need root"),
]

_CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
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
NodeName=n[1-2] NodeHostname={host} NodeAddr=127.0.0.1 Port=17820-17821
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

#: The address and the route are what a machine on a network has: penstock must
#: need no setting on such a one.
_SETUP = """
set -eu
ip link set lo up
ip address add 192.0.2.10/32 dev lo
ip route add default dev lo src 192.0.2.10
munged --force --socket "$HOME_OF_SLURM/munge.socket" --num-threads 2 \
    --key-file "$HOME_OF_SLURM/munge.key" --pid-file "$HOME_OF_SLURM/munged.pid" \
    --log-file "$HOME_OF_SLURM/munged.log" --seed-file "$HOME_OF_SLURM/munge.seed"
slurmctld
slurmd -N n1
slurmd -N n2
for _ in $(seq 300); do
    [ "$(timeout 10 sinfo -h -t idle -o %D || true)" = 2 ] && break
    sleep 0.1
done
timeout 10 sinfo -h -o '%D %T' >&2
exec timeout --kill-after 5 100 "$@"
"""


def _on_slurm(bench: Bench, script: str) -> str:
    """Run a shell script beside a fresh Slurm of two nodes; return what it said."""
    home = bench.folder.parent / "slurm"
    home.mkdir()
    (home / "state").mkdir()
    host = os.uname().nodename
    (home / "slurm.conf").write_text(_CONF.format(home=home, host=host))
    (home / "munge.key").write_bytes(os.urandom(128))
    (home / "munge.key").chmod(0o400)
    environment = {
        **os.environ,
        "PATH": _PATH,
        "PYTHON": sys.executable,
        "DASK_TEMPORARY_DIRECTORY": str(home),
        "SLURM_CONF": str(home / "slurm.conf"),
        "HOME_OF_SLURM": str(home),
    }
    namespaces = ("--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child")
    done = subprocess.run(
        ["unshare", *namespaces, "bash", "-c", _SETUP, "slurm", "bash", "-c", script],
        cwd=bench.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "Traceback" not in done.stdout, done.stdout
    return " ".join(done.stdout.split())


def test_two_workers_and_no_setting(bench: Bench, expected: bytes) -> None:
    bench.tell("die")
    said = _on_slurm(
        bench,
        """
        "$PYTHON" command.py --dask slurm --jobs 2
        echo "status $?"
        squeue -h
        """,
    )
    # The two idle nodes at the beginning, and no job left in the queue at the end.
    assert said.startswith("2 idle "), said
    assert re.search(r"worker tcp://192\.0\.2\.10:\d+ died while computing piece", said)
    assert "trying again" in said
    assert said.endswith(" status 0"), said
    assert len(list(bench.folder.glob("slurm-*.out"))) == 2
    assert len(bench.pieces()) == PIECES
    assert bench.table() == expected


def test_a_job_that_ends_is_replaced_and_ctrl_c_leaves_none(bench: Bench) -> None:
    bench.tell("slow")
    settings = bench.folder / "settings"
    settings.mkdir()
    ours = "jobqueue: {slurm: {name: penstock-test, walltime: '00:10:00'}}"
    (settings / "jobqueue.yaml").write_text(ours)
    said = _on_slurm(
        bench,
        """
        export DASK_CONFIG="$PWD/settings"
        export DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT=1s
        pieces() { find out -name '0*.parquet' 2>/dev/null | wc -l; }
        # A shell has what runs in the background ignore Ctrl-C.
        env --default-signal=INT "$PYTHON" command.py --dask slurm --jobs 1 &
        while [ "$(pieces)" -lt 1 ]; do sleep 0.1; done
        squeue -h -o '%j %l'
        scancel --name penstock-test
        sleep 1
        before=$(pieces)
        while [ "$(pieces)" -le "$before" ]; do sleep 0.1; done
        kill -INT %1
        wait %1
        echo "status $?"
        squeue -h
        """,
    )
    # What the configuration file says is what Slurm was asked for.
    assert said.startswith("2 idle penstock-test 10:00 "), said
    assert f"of {PIECES} pieces are kept in out/studies/small" in said
    assert said.endswith("penstock: stopped status 130"), said
    assert len(list(bench.folder.glob("slurm-*.out"))) == 2
