# SPDX-License-Identifier: MIT
"""The tables of the APEX workload: job classes, and the machines M_t.

Source: ``data/apex.csv`` and ``data/platform.csv``, the encoding of the APEX Workflows
report by the authors of bandwidth sharing (lucasperotin/stochasticIO).

Machines (bandwidth sharing, section 6.3.1, alpha = 10): M_t has 2^(t/10) times the
cores of Celio and 2^(t/10) / t times its storage bandwidth; M_0 is Celio. Readings: the
number of nodes grows, rounded up; a node keeps its cores, memory and network.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from penstock.model import Platform

__all__ = ["JobClass", "Machine", "job_classes", "scaled_celio"]


@dataclass(frozen=True, slots=True)
class JobClass:
    """One line of the APEX table."""

    name: str
    share: float
    """Fraction of the core-hours of the machine."""
    walltime: float
    """Mean length of a job (s)."""
    cores: int
    """Mean number of cores of a job."""
    input: float
    """Volume read at the begin, as a fraction of the memory of the job."""
    output: float
    """Volume written at the end, as a fraction of the memory of the job."""
    checkpoint: float
    """Volume of a checkpoint, as a fraction of the memory; 0: no checkpoints."""
    period: float
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
            walltime=float(row["walltime_h"]) * 3600.0,
            cores=int(row["cores"]),
            input=float(row["input_ratio_mem"]),
            output=float(row["output_ratio_mem"]),
            checkpoint=float(row["ckpt_ratio_mem"]),
            period=float(row["ckpt_period_s"]),
        )
        for row in _rows("apex.csv")
        if row["workload"] == trace
    )


@cache
def scaled_celio(age: int) -> Machine:
    """Return M_t for t = `age`."""
    (celio,) = _rows("platform.csv")
    growth = 2.0 ** (age / 10)
    return Machine(
        nodes=math.ceil(int(celio["nodes"]) * growth),
        cores_per_node=int(celio["cores_per_node"]),
        memory=float(celio["ram_per_node_bytes"]),
        platform=Platform(
            bandwidth=float(celio["system_bw_bytes_s"]) * growth / max(age, 1),
            node_bandwidth=float(celio["node_bw_bytes_s"]),
        ),
    )


def _rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of this package, without comments."""
    text = (files("penstock.workloads") / "data" / name).read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))
