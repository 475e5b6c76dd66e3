# SPDX-License-Identifier: MIT
"""``penstock bench slo --cluster`` on a real MooseFS: a short run, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.bench.moosefs import FOLDER, check_requirements
from penstock.errors import InputError
from support.mounts import why_no_mounts
from support.namespaces import are_gone, processes_in
from support.waiting import LIMIT_S, until

COMMAND = [sys.executable, "-m", "penstock", "bench", "slo", "--cluster", "--quick"]


@pytest.fixture(autouse=True)
def _needs_a_cluster() -> None:
    if reason := why_no_mounts():
        pytest.skip(reason)
    try:
        check_requirements()
    except InputError as error:
        pytest.skip(str(error))


def namespaces_of(pid: int) -> set[str]:
    """Return the process namespaces of all descendants of a process."""
    parents: dict[int, int] = {}
    spaces: dict[int, str] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (path / "stat").read_text().rpartition(")")[2].split()
            parents[int(path.name)] = int(words[1])
            spaces[int(path.name)] = str((path / "ns" / "pid").readlink())
    below = {pid}
    for _ in parents:
        below |= {child for child, parent in parents.items() if parent in below}
    return {spaces[child] for child in below if child in spaces}


def test_all_scenes_are_measured_simulated_drawn_and_cleaned_up(tmp_path: Path) -> None:
    output = tmp_path / "out"
    done = subprocess.run(
        [*COMMAND, "--output", str(output), "--json", "-"],
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)["benchmarks"]["slo"]
    assert measured[0]["name"] == "capacity of the cluster"
    assert measured[0]["value"] > 0.0
    scenes = json.loads((output / "slo-cluster.json").read_text())["scenes"]
    assert len(scenes) == 4
    for scene in scenes:
        for run in (scene["live"], scene["simulated"]):
            for figures in run["applications"].values():
                assert figures["bytes_per_s"] > 0.0
    assert (output / "slo-cluster.svg").stat().st_size > 10_000
    lines = (output / "slo-cluster.md").read_text().splitlines()
    assert sum(line.startswith("| ") for line in lines) == 1 + 2 * 4
    assert not (FOLDER / "client1").exists()


def test_ctrl_c_ends_the_cluster() -> None:
    # A test that runs in the background ignores Ctrl-C, and so would its children.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        COMMAND,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    signal.signal(signal.SIGINT, before)
    try:
        assert process.stdout is not None
        assert "capacity of the cluster" in process.stdout.readline()
        own = str(Path("/proc/self/ns/pid").readlink())
        (namespace,) = namespaces_of(process.pid) - {own}
        processes = processes_in(namespace)
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=LIMIT_S)
    finally:
        process.kill()
    assert process.returncode == 130
    until(lambda: are_gone(processes))
    assert not (FOLDER / "client1").exists()
