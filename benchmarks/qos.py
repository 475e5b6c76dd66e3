# SPDX-License-Identifier: MIT
"""Cost of the request schedulers: requests per second, compared with a plain queue.

``python benchmarks/qos.py [--json FILE] [--rounds N]``: requests of eight applications
arrive, are sent and complete, with 64 under way. The baseline does the same with one
`collections.deque`. Each measurement is the fastest of several interleaved rounds, in
processor time. The exit status is 1 if a scheduler handles fewer than 100,000
requests/s.
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
#: Time between two requests (s), as on a storage of 10 GB/s.
GAP_S = 1e-4
MIN_REQUESTS_PER_S = 100_000.0


class PlainQueue:
    """A queue without any decision."""

    def __init__(self) -> None:
        self._waiting: deque[Request] = deque()

    def arrive(self, request: Request, now: float) -> None:  # noqa: ARG002
        """Queue a request."""
        self._waiting.append(request)

    def dispatch(self, now: float) -> list[Request]:  # noqa: ARG002
        """Return all queued requests."""
        to_send = list(self._waiting)
        self._waiting.clear()
        return to_send

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:
        """Do nothing."""


def seconds(scheduler: QosScheduler | PlainQueue) -> float:
    """Return the processor time for all requests (s)."""
    requests = [
        Request("write", 1_000_000 >> k % 9, APPLICATIONS[k * 5 % 8])
        for k in range(REQUESTS)
    ]
    sent: deque[Request] = deque()
    now = 0.0
    begin_s = time.process_time()
    for number, request in enumerate(requests):
        now += GAP_S
        scheduler.arrive(request, now)
        sent.extend(scheduler.dispatch(now))
        if number >= UNDER_WAY and sent:
            done = sent.popleft()
            scheduler.complete(done, done.size_bytes, now)
            sent.extend(scheduler.dispatch(now))
    return time.process_time() - begin_s


def main() -> int:
    """Measure all schedulers; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds")
    parser.add_argument("--json", metavar="FILE", help="write the measurements as JSON")
    arguments = parser.parse_args()
    best_s = dict.fromkeys(("deque", *SCHEDULERS), float("inf"))
    for _ in range(arguments.rounds):
        best_s["deque"] = min(best_s["deque"], seconds(PlainQueue()))
        for name in SCHEDULERS:
            scheduler = get_scheduler(name).make(SLOS, 0.0)
            best_s[name] = min(best_s[name], seconds(scheduler))
    results = {}
    for name in SCHEDULERS:
        rate, ratio = REQUESTS / best_s[name], best_s[name] / best_s["deque"]
        results[name] = {"requests_per_s": rate, "times_deque": ratio}
        print(f"  {name:12} {rate:10,.0f} requests/s  {ratio:5.1f} times a deque")
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")
    slow = [n for n, f in results.items() if f["requests_per_s"] < MIN_REQUESTS_PER_S]
    for name in slow:
        print(f"SLOW {name}: fewer than {MIN_REQUESTS_PER_S:,.0f} requests/s")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
