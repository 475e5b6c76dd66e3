# SPDX-License-Identifier: MIT
"""The tables of the APEX workload: job classes, and the machines M_t.

Source: ``data/apex.csv`` and ``data/platform.csv``, the encoding of the APEX Workflows
report by the authors of bandwidth sharing (lucasperotin/stochasticIO).

Machines: M_0 is Celio, and M_t has ceil(8894 x 2^(t/10)) nodes of 32 GiB (bandwidth
sharing, section 6.3.1, alpha = 10). There are two readings of the rest:

``inferred``
    What the windows that the authors published say. A node has ceil(16 x 5^(t/10))
    cores, so the cores of the machine grow 10^(t/10) times. The storage and the network
    of a node both have 2^(t/10) / (0.57 t) times the bandwidth that they have on Celio
    (t >= 1): a job saturates the storage from 167 nodes on, on every machine. The
    factor 0.57 (+- 0.03) is fitted: with it the pressures of Figure 5 come out.
``literal``
    What the text of section 6.3.1 says. A node keeps its 16 cores and its bandwidth,
    and the storage has 2^(t/10) / t times the bandwidth that it has on Celio.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from penstock.model import Platform

__all__ = [
    "INFERRED",
    "LITERAL",
    "READINGS",
    "JobClass",
    "Machine",
    "celio_successor",
    "job_classes",
]

INFERRED: Final = "inferred"
LITERAL: Final = "literal"
READINGS: Final = (INFERRED, LITERAL)

#: Fitted: the bandwidth of M_t is 2^(t/10) / (0.57 t) times that of Celio.
_BANDWIDTH_FIT: Final = 0.57


@dataclass(frozen=True, slots=True)
class JobClass:
    """One line of the APEX table."""

    name: str
    share: float
    """Fraction of the core-hours of the machine."""
    walltime_s: float
    """Mean length of a job (s)."""
    cores: int
    """Mean number of cores of a job."""
    input: float
    """Volume read at the begin, as a fraction of the memory of the job."""
    output: float
    """Volume written at the end, as a fraction of the memory of the job."""
    checkpoint: float
    """Volume of a checkpoint, as a fraction of the memory; 0: no checkpoints."""
    period_s: float
    """Work between two checkpoints (s)."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine on which the jobs run."""

    nodes: int
    cores_per_node: int
    memory: float
    """Memory of one node (bytes)."""
    platform: Platform


@cache
def job_classes(trace: str) -> tuple[JobClass, ...]:
    """Return the classes of "NERSC" or "TRILAB", in the order of the table."""
    return tuple(
        JobClass(
            name=row["app"],
            share=float(row["corehour_ratio"]),
            walltime_s=float(row["walltime_h"]) * 3600.0,
            cores=int(row["cores"]),
            input=float(row["input_ratio_mem"]),
            output=float(row["output_ratio_mem"]),
            checkpoint=float(row["ckpt_ratio_mem"]),
            period_s=float(row["ckpt_period_s"]),
        )
        for row in _rows("apex.csv")
        if row["workload"] == trace
    )


@cache
def celio_successor(t: int, reading: str = INFERRED) -> Machine:
    """Return M_t, the successor of Celio after `t` units of time.

    `reading` is one of the `READINGS`; M_0 is Celio itself.
    """
    (celio,) = _rows("platform.csv")
    growth = 2.0 ** (t / 10)
    cores = int(celio["cores_per_node"])
    bandwidth = float(celio["system_bw_bytes_s"])
    node_bandwidth = float(celio["node_bw_bytes_s"])
    if reading == LITERAL:
        bandwidth = bandwidth * growth / max(t, 1)
    elif t > 0:
        cores = math.ceil(cores * 5.0 ** (t / 10))
        bandwidth *= growth / (_BANDWIDTH_FIT * t)
        node_bandwidth *= growth / (_BANDWIDTH_FIT * t)
    return Machine(
        nodes=math.ceil(int(celio["nodes"]) * growth),
        cores_per_node=cores,
        memory=float(celio["ram_per_node_bytes"]),
        platform=Platform(bandwidth, node_bandwidth),
    )


def _rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of this package, without comments."""
    text = (files("penstock.workloads") / "data" / name).read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))
