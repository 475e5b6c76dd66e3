# SPDX-License-Identifier: MIT
"""Scenes beside a real Slurm, in its namespaces: ``-m support.slurm_scenes``.

Four nodes with an agent each, the first of them with the controller. The jobs are those
of another user, who may read neither Python nor this file: they use the shell and dd.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec

from support.daemons import Daemon
from support.waiting import LIMIT_S, until

NOBODY = 65534
MB = 10**6
NODES = ("n1", "n2", "n3", "n4")


class Cluster:
    """The agents of four nodes, and the user's folder."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.data.mkdir()
        os.chown(self.data, NOBODY, NOBODY)
        keys = str(folder / "keys")
        shared = {"users": "all", "keys": keys, "prefixes": str(self.data)}
        self.agents = {
            name: stack.enter_context(
                closing(Daemon(folder / name, node=name, **shared))
            )
            for name in NODES
        }
        controller = self.agents["n1"]
        assert controller.command("serve", "--make-keys", keys).returncode == 0
        address = "tcp://127.0.0.1:7400"
        controller.settings |= {"bandwidth": "20 MB/s", "node_bandwidth": "3 MB/s"}
        controller.settings["listen"] = address
        for name in NODES[1:]:
            self.agents[name].settings["join"] = address
        with ThreadPoolExecutor() as pool:
            list(pool.map(Daemon.start, self.agents.values()))
        until(lambda: len(self.controller.status()["agents"]) == len(NODES))

    @property
    def controller(self) -> Daemon:
        """The daemon that holds the controller."""
        return self.agents["n1"]

    def nodes(self) -> int:
        """Return the number of nodes that know the first job."""
        jobs = self.controller.status()["jobs"]
        return len(jobs[0]["nodes"]) if jobs else 0

    def traces(self) -> list[str]:
        """Return the files that jobs have left on all nodes."""
        kept = ("pages", "slurm")
        return [
            str(path)
            for agent in self.agents.values()
            for part in kept
            for path in (agent.home / part).glob("*")
        ]

    def log(self, node: str) -> str:
        """Return the log of the prolog on a node."""
        path = self.agents[node].home / "slurm.log"
        return path.read_text() if path.exists() else ""


def srun(cluster: Cluster, script: str, *options: str) -> subprocess.Popen[str]:
    """Start a job of one task per node, of another user.

    srun belongs to this user, too: Slurm may answer an srun of root (``--uid``) so that
    only the user of the job can read it. It says nothing if the job has to wait for
    nodes on which an epilog still runs.
    """
    own = ("--quiet", "-N4", "-n4", "--account=physics", *options)
    return subprocess.Popen(
        # Quiet: if it has to wait for nodes, it says nothing of that.
        ["srun", "--quiet", *own, "sh", "-c", script],
        user=NOBODY,
        group=NOBODY,
        extra_groups=(),
        cwd=cluster.data,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def output_lines(job: subprocess.Popen[str]) -> list[str]:
    """Return the lines of a job that must succeed, sorted."""
    text, _ = job.communicate(timeout=LIMIT_S)
    assert job.returncode == 0, text
    return sorted(text.splitlines())


def a_wide_job(cluster: Cluster) -> None:
    """One job on four nodes: registered once, paced as one, gone at its end."""
    write = "dd if=/dev/zero of=file$SLURM_PROCID bs=64k count=100 2>/dev/null"
    ready = "while [ ! -e go ]; do sleep 0.1; done"
    job = srun(cluster, f"{ready}; {write}; echo done $SLURM_PROCID")
    until(lambda: cluster.nodes() == len(NODES))
    (line,) = cluster.controller.status()["jobs"]
    # Four times what a node can draw.
    assert (line["user"], line["cap"]) == (NOBODY, 12 * MB), line
    for agent in cluster.agents.values():
        (note,) = (agent.home / "pages").glob("*.note")
        kept = msgspec.json.decode(note.read_bytes())
        facts = [kept[key] for key in ("user", "account", "nodes", "registered")]
        assert facts == [NOBODY, "physics", 4, True], kept
        (page,) = (agent.home / "pages").glob("*.page")
        assert (page.stat().st_uid, page.stat().st_mode & 0o777) == (NOBODY, 0o600)
    began = time.monotonic()
    (cluster.data / "go").touch()
    assert output_lines(job) == [f"done {rank}" for rank in range(4)]
    # 4 x 6.55 MB at 12 MB/s, less what may pass at once.
    assert time.monotonic() - began > 1.9
    until(lambda: not cluster.controller.status()["jobs"])
    until(lambda: not cluster.traces())
    assert not any(map(cluster.log, NODES))


def other_libraries_are_kept(cluster: Cluster) -> None:
    """Keep other preloaded libraries, and preload none twice."""
    other = next(Path("/usr/lib").glob("*/libm.so.6"))
    script = "echo $LD_PRELOAD; srun --overlap -N1 -n1 -w n2 sh -c 'echo $LD_PRELOAD'"
    batch = cluster.folder / "batch"
    batch.write_text(f"#!/bin/sh\n{script}\n")
    os.environ["LD_PRELOAD"] = str(other)
    command = ["sbatch", "-W", "-N2", f"--uid={NOBODY}", "-o", "out", str(batch)]
    subprocess.run(command, cwd=cluster.data, check=True, timeout=LIMIT_S)
    del os.environ["LD_PRELOAD"]
    library = cluster.folder / "slurm-scripts" / "libpenstock.so"
    assert (cluster.data / "out").read_text() == f"{library}:{other}\n" * 2


def dead_agents(cluster: Cluster) -> None:
    """Kill one agent and stop another: the job runs and prints only its own output."""
    hung = cluster.agents["n4"].process
    assert hung is not None
    cluster.agents["n3"].kill()
    hung.send_signal(signal.SIGSTOP)
    lines = output_lines(
        srun(cluster, "echo ${PENSTOCK_PAGE:+controlled} $SLURMD_NODENAME")
    )
    assert lines == ["controlled n1", "controlled n2", "n3", "n4"], lines
    assert "runs without control: " in cluster.log("n3")
    assert "no penstock answers" in cluster.log("n3")
    assert "penstock does not answer: timed out" in cluster.log("n4")
    hung.send_signal(signal.SIGCONT)
    # A stopped agent drops the registration later, or its next start does.
    cluster.agents["n3"].start()
    assert output_lines(srun(cluster, "exit 0")) == []


def no_trace_of_penstock(cluster: Cluster) -> None:
    """No folder of any agent: the job runs."""
    for agent in cluster.agents.values():
        agent.kill()
        agent.home.rename(agent.home.with_name("gone"))
    lines = output_lines(srun(cluster, "echo done"))
    assert lines == ["done"] * 4, lines


def an_agent_restarts(cluster: Cluster) -> None:
    """Control a registered job again, but not one that has ended meanwhile."""
    job = srun(cluster, "sleep 1000")
    until(lambda: cluster.nodes() == len(NODES))
    agent = cluster.agents["n2"]
    agent.kill()
    agent.start()
    until(lambda: "continues" in agent.log)
    until(lambda: cluster.nodes() == len(NODES))
    agent.kill()
    subprocess.run(["scancel", f"--user={NOBODY}"], check=True, timeout=LIMIT_S)
    job.communicate(timeout=LIMIT_S)
    until(lambda: not list((agent.home / "slurm").glob("*")))
    agent.start()
    until(lambda: cluster.nodes() == 0)
    until(lambda: not cluster.traces())


SCENES: dict[str, Callable[[Cluster], None]] = {
    scene.__name__: scene
    for scene in (
        a_wide_job,
        other_libraries_are_kept,
        an_agent_restarts,
        dead_agents,
        no_trace_of_penstock,
    )
}


def main(folder: Path) -> None:
    """Play all scenes on one cluster."""
    with ExitStack() as stack:
        began = time.monotonic()
        cluster = Cluster(folder, stack)
        print(f"start: {time.monotonic() - began:.1f} s", flush=True)
        for name, scene in SCENES.items():
            began = time.monotonic()
            scene(cluster)
            print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
    print("all scenes", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
