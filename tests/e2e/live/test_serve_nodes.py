# SPDX-License-Identifier: MIT
"""A controller and agents of other nodes, under CURVE keys."""

from __future__ import annotations

import socket
import sys
import time
import urllib.request
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from support.daemons import Daemon, resident_bytes
from support.waiting import until

MB = 10**6
#: A program that writes for 1.5 s from a given instant on, and prints when it wrote.
BURST = """
import os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
print("ready", flush=True)
begin = float(sys.stdin.readline())
time.sleep(max(begin - time.monotonic(), 0.0))
written = []
while time.monotonic() < begin + 1.5:
    os.pwrite(file, bytes(65536), 0)
    written.append(time.monotonic())
print(*written)
"""


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """A controller on node n0, and agents on others."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.metrics = f"127.0.0.1:{free_port()}"
        self.keys = str(folder / "keys")
        self.controller = self.node(
            "n0", listen=self.address, keys=self.keys, metrics=self.metrics
        )
        done = self.controller.command("serve", "--make-keys", self.keys)
        assert done.returncode == 0, done.stderr

    def node(self, name: str, **settings: str) -> Daemon:
        made = Daemon(self.folder / name, node=name, **settings)
        return self._stack.enter_context(closing(made))

    def agent(self, name: str, keys: str | None = None) -> Daemon:
        agent = self.node(name, join=self.address, keys=keys or self.keys)
        agent.settings["prefixes"] = ""
        return agent


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Return a controller and two agents, all started."""
    with ExitStack() as stack:
        made = Cluster(tmp_path, stack)
        # All nodes have the same file system.
        made.controller.settings["prefixes"] = str(tmp_path)
        made.controller.start()
        yield made


def test_a_job_on_two_nodes_shares_one_rate(cluster: Cluster) -> None:
    agents = [cluster.agent("n1"), cluster.agent("n2")]
    for agent in agents:
        agent.start()
    until(lambda: agents[0].status()["agents"] == ["n0", "n1", "n2"])
    for agent in agents:
        agent.write("wide")
    cluster.controller.write("narrow")
    until(lambda: agents[1].job("wide").get("nodes") == ["n1", "n2"])
    until(lambda: agents[1].job("wide").get("active"))
    until(lambda: agents[1].job("narrow").get("active"))
    assert agents[0].job("wide")["granted"] == 4 * MB
    assert agents[0].ctl("policy", "fcfs") == "fcfs decides\n"
    assert cluster.controller.status()["policy"] == "fcfs"
    with urllib.request.urlopen(f"http://{cluster.metrics}/metrics") as answer:
        text = answer.read().decode()
    figures = {
        (sample.name, sample.labels.get("name")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert figures["penstock_jobs", None] == 2.0
    assert figures["penstock_job_moved_bytes_total", "wide"] > 0.0
    assert figures["penstock_job_active", "narrow"] == 1.0
    for agent in agents:
        assert agent.process is not None
        assert resident_bytes(agent.process.pid) < 40 * MB


def test_the_controller_is_killed_and_comes_back(cluster: Cluster) -> None:
    agent = cluster.agent("n1")
    agent.start()
    # With control this takes twenty minutes.
    cluster.controller.ctl("bandwidth", "20 kB/s")
    process = agent.write("job", blocks=400)
    until(lambda: agent.job("job").get("active"))
    cluster.controller.kill()
    assert process.wait(100.0) == 0
    assert agent.command("ctl", "status").returncode == 2
    other = agent.write("late", blocks=16)
    assert other.wait(100.0) == 0
    cluster.controller.start()
    agent.write("next")
    until(lambda: cluster.controller.job("next").get("active"))


def test_a_killed_agent_is_noticed(cluster: Cluster) -> None:
    agent = cluster.agent("n1")
    agent.start()
    agent.write("job")
    until(lambda: cluster.controller.job("job"))
    agent.kill()
    until(lambda: not cluster.controller.status()["jobs"])
    assert cluster.controller.status()["agents"] == ["n0"]


def test_agents_with_other_keys_are_ignored(cluster: Cluster) -> None:
    foreign = str(cluster.folder / "foreign")
    assert cluster.controller.command("serve", "--make-keys", foreign).returncode == 0
    stranger = cluster.agent("n9", keys=foreign)
    with (stranger.folder / "serve.log").open("a") as log:
        command = [sys.executable, "-m", "penstock", "serve"]
        flags = [f"--{name}={value}" for name, value in stranger.settings.items()]
        stranger._popen([*command, *flags], stderr=log)
    until((stranger.home / "agent.sock").exists)
    done = stranger.command("ctl", "status")
    assert done.returncode == 2
    assert "the controller does not answer" in done.stderr
    assert cluster.controller.status()["agents"] == ["n0"]


def test_keys_are_checked(cluster: Cluster) -> None:
    done = cluster.controller.command("serve", "--make-keys", cluster.keys)
    assert done.returncode == 2
    assert "already contains keys" in done.stderr
    secret = Path(cluster.keys) / "agent.key_secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    secret.chmod(0o644)
    agent = cluster.agent("n1")
    flags = [f"--{name}={value}" for name, value in agent.settings.items()]
    done = agent.command("serve", *flags)
    assert done.returncode == 2
    assert "other users can read this secret key" in done.stderr
    secret.unlink()
    done = agent.command("serve", *flags)
    assert done.returncode == 2
    assert "create keys with penstock serve --make-keys" in done.stderr


def test_jobs_of_several_nodes_that_begin_together(cluster: Cluster) -> None:
    """They do not draw a multiple of the bandwidth until the decision reaches them."""
    agents = [cluster.agent(f"n{number}") for number in range(1, 5)]
    for agent in agents:
        agent.start()
    cluster.controller.ctl("bandwidth", "50 MB/s")
    programs = [
        agent.run(sys.executable, "-c", BURST, f"{number}", job=f"job{number}")
        for number in range(4)
        for agent in agents
    ]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n", program.communicate()
    begin = time.monotonic() + 1.0
    for program in programs:
        assert program.stdin is not None
        program.stdin.write(f"{begin}\n")
        program.stdin.flush()
    written = sorted(
        float(instant)
        for program in programs
        for instant in program.communicate(timeout=100)[0].split()
    )
    busiest = max(
        bisect_left(written, first + 1.0) - index for index, first in enumerate(written)
    )
    # 1.00 to 1.01 of the bandwidth where decisions take milliseconds.
    assert busiest * 65536 < 1.5 * 50 * MB
