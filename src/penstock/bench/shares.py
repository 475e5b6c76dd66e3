# SPDX-License-Identifier: MIT
"""Two jobs on one limited mount: bandwidth achieved over the share of the policy.

``fair-share`` gives both the same fraction of their caps, so that jobs of one and two
nodes have shares of 1 : 2. Both write for the same time; the mount moves what both
together may draw and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.bench import Figure
from penstock.bench.applications import Place, run_applications
from penstock.bench.stage import BenchStage
from penstock.model import Application, Platform
from penstock.units import format_volume

__all__ = ["measure_shares"]

_RUN_S: Final = 4.0
_WORK_S: Final = 0.5
_ERROR: Final = 0.02
#: Nodes of the two jobs; one node can draw half of the bandwidth.
_NODES: Final = ((2, 2), (1, 2))
_BLOCKS: Final = (64 << 10, 1 << 20)


def measure_shares(stage: BenchStage) -> Iterator[Figure]:
    """Yield a ratio for each job, for several shares and sizes of calls."""
    bandwidth = stage.bandwidth
    platform = Platform(bandwidth, bandwidth / 2.0)
    for nodes in _NODES:
        for block in _BLOCKS:
            yield from _of(stage, platform, nodes, block)


def _of(
    stage: BenchStage, platform: Platform, nodes: tuple[int, int], block: int
) -> Iterator[Figure]:
    caps = [platform.cap(count) for count in nodes]
    shares = [platform.bandwidth * cap / sum(caps) for cap in caps]
    jobs = [
        Application.from_phases(
            f"job{number}", count, [("work", _WORK_S), ("io", round(share * _RUN_S))]
        )
        for number, (count, share) in enumerate(zip(nodes, shares, strict=True), 1)
    ]
    with stage.served("fair-share", platform) as daemon:
        place = Place(stage.program, daemon, stage.mount.point, block)
        ends = run_applications(place, jobs)
    for job, share, (begun, ended) in zip(jobs, shares, ends, strict=True):
        achieved = job.volume[0] / (ended - begun)
        name = f"nodes {nodes[0]} : {nodes[1]}, calls of {format_volume(block)}"
        yield Figure(
            f"two jobs on a mount, {name}, {job.name}: achieved / share",
            float(achieved / share),
            "",
            1.0 - _ERROR,
            1.0 + _ERROR,
        )
