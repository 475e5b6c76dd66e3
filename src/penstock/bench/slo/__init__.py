# SPDX-License-Identifier: MIT
"""Benchmark ``slo``: throughput and latency of applications at a mount, by scheduler.

`schedulers` measures, with `clients` (processes that issue requests) on the mounts of
`mounts` and `plain`. `windows` computes the figures and `report` writes them. `cluster`
measures on a real parallel file system with several client nodes instead.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from penstock.bench import BenchSettings, Measurement

__all__ = ["measure"]


def measure(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield all measurements of the benchmark."""
    # Imported late: `clients` and `plain` are programs of this package, which must
    # start fast, and Python warns if their package has already imported them.
    if settings.cluster:
        module = importlib.import_module(f"{__name__}.cluster.measurements")
        yield from module.measure_cluster(settings)
    else:
        module = importlib.import_module(f"{__name__}.schedulers")
        yield from module.measure_schedulers(settings)
