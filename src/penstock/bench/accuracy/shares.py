# SPDX-License-Identifier: MIT
"""Two jobs on one limited mount: bandwidth achieved divided by the policy's share.

``fair-share`` gives both jobs the same fraction of their caps, so that jobs with one
and two nodes have shares of 1 : 2. Both jobs write for the same time; the limit of the
mount is the sum of their shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.bench import Measurement
from penstock.bench.applications import RunPlace, run_applications
from penstock.bench.testbed import LiveTestbed
from penstock.model import Application, Platform
from penstock.units import format_volume

__all__ = ["measure_shares"]

_RUN_S: Final = 4.0
_WORK_S: Final = 0.5
_ERROR: Final = 0.02
#: Nodes of the two jobs; one node can draw half of the bandwidth.
_NODES: Final = ((2, 2), (1, 2))
_BLOCKS: Final = (64 << 10, 1 << 20)


def measure_shares(testbed: LiveTestbed) -> Iterator[Measurement]:
    """Yield the ratio of each job, for several shares and call sizes."""
    bandwidth = testbed.bandwidth_bytes_per_s
    platform = Platform(bandwidth, bandwidth / 2.0)
    for nodes in _NODES:
        for block in _BLOCKS:
            yield from _measure_pair(testbed, platform, nodes, block)


def _measure_pair(
    testbed: LiveTestbed, platform: Platform, nodes: tuple[int, int], block: int
) -> Iterator[Measurement]:
    caps = [platform.cap(count) for count in nodes]
    shares = [platform.bandwidth * cap / sum(caps) for cap in caps]
    jobs = [
        Application.from_phases(
            f"job{number}", count, [("work", _WORK_S), ("io", round(share * _RUN_S))]
        )
        for number, (count, share) in enumerate(zip(nodes, shares, strict=True), 1)
    ]
    with testbed.daemon("fair-share", platform) as daemon:
        place = RunPlace(testbed.program, daemon, testbed.mount.point, block)
        ends = run_applications(place, jobs)
    for job, share, (begin_s, end_s) in zip(jobs, shares, ends, strict=True):
        achieved = job.volume[0] / (end_s - begin_s)
        name = f"nodes {nodes[0]} : {nodes[1]}, calls of {format_volume(block)}"
        yield Measurement(
            f"two jobs on a mount, {name}, {job.name}: achieved / share",
            float(achieved / share),
            "",
            1.0 - _ERROR,
            1.0 + _ERROR,
        )
