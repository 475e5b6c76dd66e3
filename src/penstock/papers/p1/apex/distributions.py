# SPDX-License-Identifier: MIT
"""The windows of the APEX workloads: how long, how full, how loaded, on each machine.

Bandwidth sharing describes its windows in section 6.3.1 and in section B.2 of its long
version. Which windows there are does not depend on any policy; every window counts
here, whatever its W.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict, over
from penstock.experiments.output.charts import BOXES, footnote, tidy, upright_box
from penstock.papers.declaration import figure
from penstock.papers.p1.apex.bands import EVERY_WINDOW, NERSC, TRACES, TRILAB
from penstock.papers.p1.apex.measures import (
    Table,
    correlation,
    highest_of,
    lowest_of,
    mean_or_nan,
    median_or_nan,
)
from penstock.papers.p1.apex.study import apex_study
from penstock.papers.p1.apex.windows import facts_of, shown
from penstock.workloads.apex.phases import SHORTEST_S
from penstock.workloads.apex.table import (
    JobClass,
    Machine,
    celio_successor,
    job_classes,
)

__all__ = ["windows"]

#: Column -> title of its panel.
_PANELS: Final = {
    "hours": "length of a window (h)",
    "applications": "jobs with I/O in a window",
    "usage": "part of the nodes that they use",
    "pressure": "I/O pressure W",
}
_LOGARITHMIC: Final = ("hours", "applications")
_COLOURS: Final = {NERSC: "#0072B2", TRILAB: "#D55E00"}
#: "Many" windows: at least this share of them.
_MANY: Final = 0.25


def _prepare(tables: Tables) -> Tables:
    """Return one row per window, with its length in hours and the nodes in use."""
    wide = shown(EVERY_WINDOW)(tables).rows
    machines = wide["machine"].unique().to_list()
    nodes = {t: celio_successor(int(t)).nodes for t in machines}
    size = pl.col("machine").replace_strict(nodes, return_dtype=pl.Float64)
    added = wide.with_columns(
        (pl.col("window") / 3600).alias("hours"),
        (pl.col("nodes") / size).alias("usage"),
        (pl.col("operations") / pl.col("applications")).alias("phases"),
    )
    return Tables(added, pl.DataFrame())


def _draw(tables: Tables) -> Figure:
    drawn = Figure(figsize=(12, 7.2))
    drawn.set_layout_engine("constrained")
    axes = drawn.subplots(2, 2, sharex=True)
    for axis, (name, title) in zip(axes.flat, _PANELS.items(), strict=True):
        for number, trace in enumerate(TRACES):
            _boxes(axis, tables, trace, name, 0.4 * number - 0.2)
        if name in _LOGARITHMIC:
            axis.set_yscale("log")
        axis.set_ylabel(title)
        tidy(axis, "y")
    for axis in axes[-1]:
        axis.set_xlabel("machine t")
    axes[0][0].legend(
        handles=[
            axes[0][0].plot([], [], color=colour, lw=5, label=trace)[0]
            for trace, colour in _COLOURS.items()
        ],
        fontsize=9,
    )
    footnote(drawn, BOXES.replace("instances", "windows"))
    return drawn


def _boxes(axis: Any, tables: Tables, trace: str, name: str, offset: float) -> None:
    """Draw a box per machine: quartiles, whiskers at 10 and 90 %, mean."""
    machines = facts_of(tables, trace, "machine")
    values = facts_of(tables, trace, name)
    for machine in np.unique(machines):
        of_machine = values[machines == machine]
        upright_box(axis, machine + offset, of_machine, 0.34, _COLOURS[trace])


def _summary(tables: Tables) -> pl.DataFrame:
    """Return statistics of the windows of a trace on a machine.

    ``mean_capped_nodes`` is the mean over windows of the mean of min(nodes, 167) over
    jobs, as in the table that the authors published.
    """
    limit = celio_successor(0).platform
    most = limit.bandwidth / limit.node_bandwidth
    mean_nodes = pl.col("demand") * most / pl.col("applications")
    return (
        tables.rows.group_by("trace", "machine")
        .agg(
            pl.len().alias("windows"),
            pl.mean("applications", "nodes", "usage", "phases"),
            mean_nodes.mean().alias("mean_capped_nodes"),
            pl.median("hours").alias("median_hours"),
            pl.mean("hours", "pressure"),
            pl.median("pressure").alias("median_pressure"),
            pl.max("pressure").alias("highest_pressure"),
        )
        .sort("trace", "machine")
    )


windows = figure(
    "p1-windows", study=apex_study, prepare=_prepare, draw=_draw, summary=_summary
)


def _on(tables: Tables, trace: str, name: str, machine: int) -> Any:
    values = facts_of(tables, trace, name)
    return values[facts_of(tables, trace, "machine") == machine]


@windows.claim(
    "On Celio both workloads have a small W, about 0.15 on average (0.1 to 0.2).",
    source="bandwidth sharing, section 6.3.1",
)
def _celio_small_pressure(tables: Tables) -> Verdict:
    """Take the mean W of every trace on M_0."""
    means = {t: mean_or_nan(_on(tables, t, "pressure", 0)) for t in TRACES}
    return Verdict(all(0.1 <= mean <= 0.2 for mean in means.values()), means)


@windows.claim(
    "W tends to increase on larger and newer machines (fitted; rank correlation of the "
    "machine and its mean W of at least 0.9, on each workload).",
    source="bandwidth sharing, section 6.3.1",
)
def _pressure_grows(tables: Tables) -> Verdict:
    """Correlate the mean W of each machine with its number.

    NOTE: M_1 has more bandwidth than Celio in both readings, so its W is lower.
    """
    machines = sorted({int(t) for t in facts_of(tables, NERSC, "machine")})
    means: Table = {
        trace: {
            f"M_{t}": mean_or_nan(_on(tables, trace, "pressure", t)) for t in machines
        }
        for trace in TRACES
    }
    for row in means.values():
        values = np.array(list(row.values()))
        row["rank correlation"] = correlation(np.array(machines, float), values)
    ranks = [row["rank correlation"] for row in means.values()]
    return Verdict(all(rank >= 0.9 for rank in ranks), means)


@windows.claim(
    "The machines give a range of W between 0.15 and 1.4 (fitted; the lowest and the "
    "highest W of all windows, each to 0.05).",
    source="bandwidth sharing, section 6.3.1",
    reason="The range is wider: NERSC windows without large jobs have a W down to "
    "0.001 (0.15 is about the mean on Celio), and 1 % of the TRILAB windows, on M_8 to "
    "M_10, have a W of 1.4 to 2.1.",
)
def _pressure_range(tables: Tables) -> Verdict:
    """Take the lowest and the highest W of all windows."""
    pressures = np.concatenate([facts_of(tables, t, "pressure") for t in TRACES])
    numbers = {"lowest W": lowest_of(pressures), "highest W": highest_of(pressures)}
    lowest, highest = numbers.values()
    holds = 0.1 <= lowest <= 0.2 and 1.35 <= highest <= 1.45
    return Verdict(holds, numbers)


@windows.claim(
    "On Celio no NERSC window has a W of 0.5 or more.",
    source="bandwidth sharing, section 6.3.2",
)
def _nersc_celio_under_half(tables: Tables) -> Verdict:
    """Take the highest W of the NERSC windows on M_0."""
    highest = highest_of(_on(tables, NERSC, "pressure", 0))
    return Verdict(highest < 0.5, {"highest W on Celio": highest})


@windows.claim(
    "TRILAB windows are much longer than NERSC windows (at least 5 times).",
    source="bandwidth sharing, section 6.3.2",
)
def _trilab_longer(tables: Tables) -> Verdict:
    """Compare the mean lengths of windows, in hours."""
    hours = {t: mean_or_nan(facts_of(tables, t, "hours")) for t in TRACES}
    holds = hours[TRILAB] >= 5 * hours[NERSC]
    return Verdict(holds, {f"{t} (h)": v for t, v in hours.items()})


@windows.claim(
    "Small jobs are the bulk of many NERSC windows (in a quarter of the windows the "
    "mean job with I/O is smaller than the smallest TRILAB job, of 4,096 cores).",
    source="bandwidth sharing, section 6.3.2",
)
def _nersc_small_jobs(tables: Tables) -> Verdict:
    """Take the share of windows whose mean job has less than 4,096 cores."""
    nodes = facts_of(tables, NERSC, "nodes") / facts_of(tables, NERSC, "applications")
    machines = facts_of(tables, NERSC, "machine").astype(int)
    per_node = np.array([celio_successor(int(t)).cores_per_node for t in machines])
    share = mean_or_nan(nodes * per_node < 4096)
    return Verdict(share >= _MANY, {"share of windows": share})


@windows.claim(
    "NERSC windows are so short that many jobs have at most one phase (a quarter of "
    "the windows have at most one operation per job with I/O).",
    source="bandwidth sharing, section 6.3.3",
)
def _nersc_one_phase(tables: Tables) -> Verdict:
    """Take the share of windows with at most one operation per job."""
    phases = facts_of(tables, NERSC, "phases")
    share = mean_or_nan(phases <= 1.0)
    return Verdict(
        share >= _MANY, {"share of windows": share, "mean": mean_or_nan(phases)}
    )


@windows.claim(
    "In a TRILAB window every job has at least 5 phases (every window lasts 5 times as "
    "long as the mean job of each class takes from one operation to the next; share of "
    "the windows by class).",
    source="bandwidth sharing, section 6.3.4",
    reason="A checkpoint of DakotaA takes less than 1 s, so that several are carried "
    "together, as in the authors' windows: 3 to 11 % of all jobs, nearly all of them "
    "DakotaA, have fewer than 5 operations (80 windows on each of six machines); for "
    "the other classes 0.1 to 1.5 % of the windows are too short.",
)
def _trilab_five_phases(tables: Tables) -> Verdict:
    """Compare the length of every window with the cycle of every class.

    NOTE: the study counts the operations of a window, not those of every job.
    """
    lengths = facts_of(tables, TRILAB, "window")
    machines = facts_of(tables, TRILAB, "machine").astype(int).tolist()
    shares = {}
    for job_class in job_classes(TRILAB):
        cycles = {t: _cycle_s(job_class, celio_successor(t)) for t in set(machines)}
        of_windows = np.array([cycles[t] for t in machines])
        shares[job_class.name] = mean_or_nan(lengths >= 5 * of_windows)
    return Verdict(all(share == 1 for share in shares.values()), shares)


def _cycle_s(job_class: JobClass, machine: Machine) -> float:
    """Return the time from one operation of a mean job to the next, in dedicated mode.

    Checkpoints shorter than 1 s are carried to the next one
    (`penstock.workloads.apex.phases`).
    """
    nodes = math.ceil(job_class.cores / machine.cores_per_node)
    volume = job_class.checkpoint * nodes * machine.memory
    checkpoint_s = volume / machine.platform.cap(nodes)
    carried = math.ceil(SHORTEST_S / checkpoint_s)
    return carried * (job_class.period_s + checkpoint_s)


@windows.claim(
    "TRILAB windows have fewer and larger applications than NERSC windows (median "
    "window of every machine).",
    source="bandwidth sharing, section 6.3.5",
    reason="They are larger on every machine, but from M_6 on there are more of them: "
    "TRILAB jobs with I/O use nearly all nodes of every machine, and a job uses fewer "
    "nodes of a newer one, while those of NERSC use 77 % of Celio and 16 % of M_10.",
)
def _trilab_few_large(tables: Tables) -> Verdict:
    """Compare the median numbers and sizes of applications on each machine.

    A mean would be decided by a few windows with hundreds of applications.
    """
    verdicts = {}
    for machine in np.unique(facts_of(tables, NERSC, "machine")).astype(int).tolist():
        numbers: dict[str, float] = {}
        for trace in TRACES:
            count = _on(tables, trace, "applications", machine)
            size = _on(tables, trace, "nodes", machine) / count
            numbers[f"{trace}: applications"] = median_or_nan(count)
            numbers[f"{trace}: nodes of one"] = median_or_nan(size)
        nersc, nersc_nodes, trilab, trilab_nodes = numbers.values()
        holds = trilab < nersc and trilab_nodes > nersc_nodes
        verdicts[f"M_{machine}"] = Verdict(holds, numbers)
    return over("machine", verdicts)


@windows.claim(
    "NERSC windows use a smaller part of the nodes of the machine than TRILAB windows, "
    "whatever the I/O.",
    source="bandwidth sharing, section 6.3.6",
)
def _nersc_less_used(tables: Tables) -> Verdict:
    """Compare the mean parts of the nodes in use."""
    usage = {t: mean_or_nan(facts_of(tables, t, "usage")) for t in TRACES}
    return Verdict(usage[NERSC] < usage[TRILAB], usage)
