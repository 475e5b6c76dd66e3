# SPDX-License-Identifier: MIT
"""What a request scheduler costs: requests per second, and against a bare queue.

``python benchmarks/qos.py [--json FILE] [--rounds N]``: requests of eight applications
arrive, go and complete, 64 of them under way. The baseline does the same with one
`collections.deque`. Every figure is that of the fastest of several interleaved rounds,
in CPU time; exit status 1 if a scheduler handles fewer than 100,000 requests/s.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import deque
from pathlib import Path

from penstock.qos import SCHEDULERS, QosScheduler, Request, Slo, get_scheduler

APPLICATIONS = tuple(f"application{k}" for k in range(8))
SLOS = {name: Slo(1e8 * (k + 1), 0.05 * (k + 1)) for k, name in enumerate(APPLICATIONS)}
UNDER_WAY = 64
REQUESTS = 40_000
#: Time between two requests (s): what a storage of 10 GB/s would take.
GAP = 1e-4
LEAST = 100_000.0


class Bare:
    """A queue and nothing else."""

    def __init__(self) -> None:
        self._waiting: deque[Request] = deque()

    def arrive(self, request: Request, now: float) -> None:  # noqa: ARG002
        """Take a request in."""
        self._waiting.append(request)

    def dispatch(self, now: float) -> list[Request]:  # noqa: ARG002
        """Return all that wait."""
        gone = list(self._waiting)
        self._waiting.clear()
        return gone

    def complete(self, request: Request, moved: int, now: float) -> None:
        """Forget a request."""


def seconds(scheduler: QosScheduler | Bare) -> float:
    """Return what it takes to handle all requests."""
    requests = [
        Request("write", 1_000_000 >> k % 9, APPLICATIONS[k * 5 % 8])
        for k in range(REQUESTS)
    ]
    sent: deque[Request] = deque()
    now = 0.0
    began = time.process_time()
    for number, request in enumerate(requests):
        now += GAP
        scheduler.arrive(request, now)
        sent.extend(scheduler.dispatch(now))
        if number >= UNDER_WAY and sent:
            done = sent.popleft()
            scheduler.complete(done, done.size_bytes, now)
            sent.extend(scheduler.dispatch(now))
    return time.process_time() - began


def main() -> int:
    """Measure all schedulers; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON")
    arguments = parser.parse_args()
    least = dict.fromkeys(("deque", *SCHEDULERS), float("inf"))
    for _ in range(arguments.rounds):
        least["deque"] = min(least["deque"], seconds(Bare()))
        for name in SCHEDULERS:
            scheduler = get_scheduler(name).make(SLOS, 0.0)
            least[name] = min(least[name], seconds(scheduler))
    figures = {}
    for name in SCHEDULERS:
        rate, ratio = REQUESTS / least[name], least[name] / least["deque"]
        figures[name] = {"requests_per_s": rate, "times_deque": ratio}
        print(f"  {name:12} {rate:10,.0f} requests/s  {ratio:5.1f} times a deque")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(figures, indent=1) + "\n")
    slow = [n for n, f in figures.items() if f["requests_per_s"] < LEAST]
    for name in slow:
        print(f"SLOW {name}: fewer than {LEAST:,.0f} requests/s")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
