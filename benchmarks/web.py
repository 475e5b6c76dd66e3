# SPDX-License-Identifier: MIT
"""What the page in a browser costs the daemon, and its own process.

    python benchmarks/web.py [JOBS] [AGENTS]

A coordinator has JOBS active jobs (default 1000) on AGENTS nodes (default 64). Times
are processor time, the best of several: of the daemon for one poll, which happens once
a second however many browsers watch; of the process of the page for one poll; and for
the first picture of a new browser after ten minutes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from penstock.live.control.controller import Controller
from penstock.live.control.coordinator import Coordinator
from penstock.live.wire.messages import (
    REPLY,
    AgentConfig,
    AgentHello,
    CounterReport,
    JobCounters,
    JobJoined,
    encode,
)
from penstock.web.picture import RecentRates, picture
from penstock.web.readers import OPERATOR
from penstock.web.watch import event_text

_REPEATS = 5


def _site(jobs: int, agents: int) -> Coordinator:
    """Return a coordinator whose jobs all wait for their shares."""
    config = AgentConfig("control", [], 0.1, 0.1, 3.0, 1.0, reads=True)
    coordinator = Coordinator(Controller("fair-share", 1e10, compiled=False), config)
    for agent in range(agents):
        node = f"n{agent}"
        keys = [f"{1000 + job % 20}:job{job}" for job in range(agent, jobs, agents)]
        coordinator.receive(node, AgentHello([]), 0.0)
        for key in keys:
            user = int(key.partition(":")[0])
            coordinator.receive(node, JobJoined(key, user, "1", 0, 0.0), 0.0)
        counters = [
            JobCounters(key, 1, 1e6, 2.5, waiting=True, idle_s=0.0) for key in keys
        ]
        coordinator.receive(node, CounterReport(counters, len(keys)), 1.0)
    coordinator.decide(1.0)
    return coordinator


def _best_ms(act: Callable[[], object], repeats: int = _REPEATS) -> float:
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        act()
        times.append(time.process_time() - begun)
    return 1000.0 * min(times)


def main(jobs: int = 1000, agents: int = 64) -> None:
    """Measure, and print one line for each."""
    site = _site(jobs, agents)
    data = encode(site.status(2.0, explains=False))
    status = REPLY(data)
    recent = RecentRates()
    for number in range(1, 601):
        recent.add(number, float(number), status)
    poll = _best_ms(lambda: encode(site.status(2.0, explains=False)))
    full = _best_ms(lambda: encode(site.status(2.0)), 1)
    page = _best_ms(lambda: event_text("status", REPLY(data).document()))
    first = _best_ms(lambda: picture(recent.after(0), OPERATOR), 1)
    print(f"{jobs} active jobs, {agents} agents")
    print(f"daemon, one poll:        {poll:7.1f} ms = {poll / 10.0:.1f} % of a core")
    print(f"with explanations:       {full:7.1f} ms = {full / poll:.1f} x as much")
    print(f"process of the page:     {page:7.1f} ms = {page / 10.0:.1f} % of a core")
    print(f"first picture, 10 min:   {first:7.1f} ms")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
