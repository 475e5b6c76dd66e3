# SPDX-License-Identifier: MIT
"""Partitions on a real MooseFS: a master and three chunkservers, labels A, B and C."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.bench.moosefs import (
    ClusterSpec,
    check_requirements,
    cluster_command,
    cluster_environment,
    node_command,
)
from penstock.errors import InputError

_SCRIPT = r"""
import subprocess
from pathlib import Path
from penstock.errors import InputError
from penstock.live.staging.drivers import get_driver
from penstock.mount.striping import targets_of

root = Path("client1/mnt").resolve()
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

job = root / "job"
job.mkdir()
driver.assign(job, ["A"])
print("first", written(job, 4))
print("targets", targets_of(job))
old = sorted(job.iterdir())[0]
driver.assign(job, ["B", "C"])
driver.assign(job, ["C", "B"])
print("then", written(job, 12))
print("more", targets_of(job))
print("old", "".join(labels(old)))
try:
    driver.assign(root / "nowhere", ["A"])
except InputError as error:
    print("error", error)
"""


def test_new_files_follow_the_partition() -> None:
    try:
        check_requirements()
    except InputError as error:
        pytest.skip(str(error))
    command = node_command(1, [sys.executable, "-c", _SCRIPT])
    done = subprocess.run(
        cluster_command(ClusterSpec(servers=3), command),
        env=cluster_environment(),
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
    assert (output["targets"], output["more"]) == ("1", "3")
    assert "mfssetsclass" in output["error"]
    assert "nowhere" in output["error"]
