# SPDX-License-Identifier: MIT
"""What the page in a browser costs the daemon, and its own process.

    python benchmarks/web.py [--jobs N] [--agents N] [--browsers N] [--rounds N]

A real ``penstock serve --web`` has N active jobs (default 1000) on N nodes (default
64), whose agents are played by one process: they report the counters of their jobs once
a second. N readers (default 5) read ``/api/events`` as browsers do. Rounds with the
page alternate with rounds in which the process of the page is stopped. The cost of the
page is the difference of the daemon's processor time, in percent of a core.

In each round a controller with 1000 jobs decides in this process, as in ``penstock
bench decisions``. The ratio of the processor time of its events, with the page by
without it, says whether the page disturbs control. Printed are its median and range
over pairs of neighbouring rounds.

With playwright and Chromium, a real browser opens the page: its first paint, and the
memory of its renderer (PSS) less that of an empty page. The exit status is 1
if a goal is missed. Run it on an idle machine.
"""

from __future__ import annotations

import argparse
import http.client
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import zmq

from penstock.bench.cost.decisions import ControlledJobs
from penstock.errors import UnavailableError
from penstock.live.wire.curve import make_keys, prepare_client
from penstock.live.wire.frames import Client
from penstock.live.wire.messages import (
    AgentHello,
    CounterReport,
    GetStatus,
    JobCounters,
    JobJoined,
    Message,
    encode,
)

LISTEN, WEB = "tcp://127.0.0.1:9481", 9480
TIMEOUT_S = 120.0
#: Time of a round, and before it (s).
ROUND_S, PAUSE_S = 10.0, 2.0
#: Bytes that a job moves in a second.
RATE = 1e6
GOAL_PERCENT = 3.0
#: Goals: processor time of decisions, first paint (ms), memory of a browser (MB).
GOAL_RATIO, GOAL_PAINT_MS, GOAL_BROWSER_MB = 1.02, 1000.0, 100.0
#: Events of the controller, and how often they are measured in a part of a round.
EVENTS, REPETITIONS = 1000, 15
CHROMIUM = Path("/usr/bin/chromium")
#: How often the page is opened, and how long the last one stays open (s).
PAGES, OPEN_S = 5, 30.0


# --- The agents -----------------------------------------------------------------------


def play_agents(keys: Path, jobs: int, agents: int) -> None:
    """Report the counters of jobs on all nodes until the process is ended."""
    context = zmq.Context()
    sockets: dict[str, zmq.Socket[bytes]] = {}
    for number in range(agents):
        node = f"n{number}"
        sockets[node] = context.socket(zmq.DEALER)
        prepare_client(sockets[node], keys)
        sockets[node].identity = node.encode()
        sockets[node].connect(LISTEN)
    numbers = {f"n{n}": range(n, jobs, agents) for n in range(agents)}
    begun_s = time.monotonic()
    for node, socket in sockets.items():
        join(socket, [key_of(job) for job in numbers[node]])
    while True:
        moved_bytes = RATE * (time.monotonic() - begun_s)
        for node, socket in sockets.items():
            counters = [
                JobCounters(key_of(job), 1, moved_bytes, 0.0, waiting=True, idle_s=0.0)
                for job in numbers[node]
            ]
            send(socket, CounterReport(counters, len(counters)))
            while socket.poll(0):
                socket.recv_multipart()
            time.sleep(1.0 / agents)


def key_of(job: int) -> str:
    """Return the key of a job; twenty users have jobs."""
    return f"{1000 + job % 20}:job{job}"


def join(socket: zmq.Socket[bytes], keys: list[str]) -> None:
    """Introduce an agent and its jobs."""
    send(socket, AgentHello(keys))
    for key in keys:
        user = int(key.partition(":")[0])
        send(socket, JobJoined(key, user, "1", 0, 1e12))


def send(socket: zmq.Socket[bytes], message: Message) -> None:
    """Send a message to the daemon."""
    socket.send(encode(message))


# --- The daemon and its readers -------------------------------------------------------


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Python command during the block."""
    process = subprocess.Popen([sys.executable, *arguments])
    try:
        yield process
    finally:
        process.terminate()
        process.wait(TIMEOUT_S)


def page_process(daemon: int) -> int:
    """Return the process of the page; 0 if it does not run."""
    children = Path(f"/proc/{daemon}/task/{daemon}/children").read_text().split()
    for child in children:
        if b"web_process" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    return 0


def wait_for_jobs(folder: Path, jobs: int) -> None:
    """Wait until the daemon has all jobs, and the page answers."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline_s:
        time.sleep(0.2)
        with (
            suppress(UnavailableError, OSError),
            Client(folder / "agent.sock", TIMEOUT_S) as client,
        ):
            active = sum(
                line.active for line in client.ask(GetStatus(explains=False)).jobs
            )
            if active == jobs and page_answers():
                return
    sys.exit("the daemon has not got all jobs")


def page_answers() -> bool:
    """Return True if the page can be read."""
    connection = http.client.HTTPConnection("127.0.0.1", WEB, timeout=TIMEOUT_S)
    connection.request("GET", "/api/reader")
    return connection.getresponse().status == 200


class Browser(threading.Thread):
    """Reads events, and counts them."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.events = 0
        self.received_bytes = 0

    def run(self) -> None:
        """Read until the program ends."""
        connection = http.client.HTTPConnection("127.0.0.1", WEB, timeout=TIMEOUT_S)
        connection.request("GET", "/api/events")
        for line in connection.getresponse():
            self.events += line.startswith(b"event: status")
            self.received_bytes += len(line)


def processor_s(pid: int) -> float:
    """Return the processor time that a process has used (s)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Return the memory of a process (MB)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def percents(*pids: int) -> list[float]:
    """Return the processor time of processes in a round, in percent of a core."""
    before, begun_s = [processor_s(pid) for pid in pids], time.monotonic()
    time.sleep(ROUND_S)
    spent_s = [processor_s(pid) - b for pid, b in zip(pids, before, strict=True)]
    return [100.0 * each / (time.monotonic() - begun_s) for each in spent_s]


def event_s(controlled: ControlledJobs) -> float:
    """Return the processor time of an event of a controller, a median (s)."""
    means = []
    for _ in range(REPETITIONS):
        costs = controlled.costs(EVENTS)
        means.append(sum(cost.processor_s for cost in costs) / len(costs))
    return statistics.median(means)


# --- A real browser -------------------------------------------------------------------


def renderer_mb(parent: int) -> float:
    """Return the memory (PSS) of the largest renderer of a browser (MB).

    That is the one of the page: the browser also keeps an empty one for the next page.
    """
    sizes_kb = [0]
    for process in descendants(parent):
        with suppress(OSError):
            if b"--type=renderer" in Path(f"/proc/{process}/cmdline").read_bytes():
                lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
                sizes_kb += [int(x.split()[1]) for x in lines if x[:4] == "Pss:"]
    return max(sizes_kb) * 1024 / 1e6


def descendants(process: int) -> Iterator[int]:
    """Yield the processes that a process has started, and theirs."""
    for tasks in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, tasks.read_text().split()):
                yield child
                yield from descendants(child)


def measure_browser() -> tuple[float, float] | None:
    """Return first paint (ms) and memory (MB) of the page; None: not measured."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        return None
    if not CHROMIUM.exists():
        return None
    paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox"]
        )
        me = os.getpid()
        page = browser.new_page()
        time.sleep(PAUSE_S)
        empty_mb = renderer_mb(me)
        paints = []
        for _ in range(PAGES):
            # A page of its own: what the one before has left does not count.
            page.close()
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{WEB}/")
            page.locator("#jobs tbody tr").first.wait_for()
            paints.append(float(page.evaluate(paint)))
        time.sleep(OPEN_S)
        used_mb = renderer_mb(me) - empty_mb
        browser.close()
    return statistics.median(paints), used_mb


def measure(options: argparse.Namespace) -> bool:
    """Measure, print one line for each figure, and return True if all goals are met."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        keys = folder / "keys"
        make_keys(str(keys))
        flags = [f"--folder={folder}", "--bandwidth=10 GB/s", f"--listen={LISTEN}"]
        flags += [f"--keys={keys}", f"--web=127.0.0.1:{WEB}", "--lease=60 s"]
        daemon = stack.enter_context(running("-m", "penstock", "serve", *flags))
        play = ["--play", str(keys), f"--jobs={options.jobs}"]
        play += [f"--agents={options.agents}"]
        stack.enter_context(running(__file__, *play))
        wait_for_jobs(folder, options.jobs)
        page = page_process(daemon.pid)
        browsers = [Browser() for _ in range(options.browsers)]
        for browser in browsers:
            browser.start()
        with_page, without, own, ratios = [], [], [], []
        controlled = ControlledJobs("greedy-yield", 1000, 0.8)
        event_s(controlled)
        for _ in range(options.rounds):
            time.sleep(PAUSE_S)
            open_s = event_s(controlled)
            both = percents(daemon.pid, page)
            with_page.append(both[0])
            own.append(both[1])
            os.kill(page, signal.SIGSTOP)
            time.sleep(PAUSE_S)
            ratios.append(open_s / event_s(controlled))
            without += percents(daemon.pid)
            os.kill(page, signal.SIGCONT)
        seen = min(browser.events for browser in browsers)
        size = browsers[0].received_bytes / max(browsers[0].events, 1)
        memory_mb = resident_mb(page)
        seen_by_browser = measure_browser()
    rounds = zip(with_page, without, strict=True)
    cost = statistics.median(mine - other for mine, other in rounds)
    print(f"{options.jobs} active jobs, {options.agents} agents")
    print(f"daemon without the page:   {statistics.median(without):6.1f} % of a core")
    print(f"daemon, cost of the page:  {cost:6.1f} % (goal: {GOAL_PERCENT:g} %)")
    print(f"process of the page:       {statistics.median(own):6.1f} %")
    print(f"its memory:                {memory_mb:6.0f} MB")
    print(
        f"events of {options.browsers} browsers:      {seen:6d}, {size:.0f} bytes each"
    )
    ratio = statistics.median(ratios)
    low, high = min(ratios), max(ratios)
    print(
        f"decisions, with / without:  {ratio:6.3f} (from {low:.3f} to {high:.3f}, "
        f"goal: {GOAL_RATIO:g})"
    )
    is_met = cost <= GOAL_PERCENT and ratio <= GOAL_RATIO
    if seen_by_browser is None:
        print("browser: not measured (needs playwright and chromium)")
        return is_met
    paint_ms, browser_mb = seen_by_browser
    print(f"first paint:               {paint_ms:6.0f} ms (goal: {GOAL_PAINT_MS:g} ms)")
    print(
        f"memory of the browser:     {browser_mb:6.0f} MB more than an empty page "
        f"(goal: {GOAL_BROWSER_MB:g} MB)"
    )
    return is_met and paint_ms <= GOAL_PAINT_MS and browser_mb <= GOAL_BROWSER_MB


def main() -> int:
    """Measure; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--agents", type=int, default=64)
    parser.add_argument("--browsers", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--play", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.play:
        play_agents(options.play, options.jobs, options.agents)
    return int(not measure(options))


if __name__ == "__main__":
    sys.exit(main())
