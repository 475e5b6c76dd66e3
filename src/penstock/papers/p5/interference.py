# SPDX-License-Identifier: MIT
"""Figure 1 of two-level scheduling (section 2): BTIO beside IOR.

BTIO has large requests (1 MB) or small ones (600 bytes). The paper does not give all
parameters; we fitted the missing ones to its bars. IOR has 32 processes that issue
requests of 1 MB as fast as they are answered. Large BTIO has 16 processes, small BTIO
has 4. The storage serves one request after the other at 50 MB/s, and each request takes
5.1 ms before its data moves. DSFQ favours BTIO 3 to 2, with 12 requests at the storage.
The storage has no memory; one of 32 GB that takes 110 MB/s changes no bar but the last
by more than half a percentage point, because IOR then fills the network.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.output.charts import tidy
from penstock.experiments.reproduction import Scale
from penstock.papers.declaration import figure
from penstock.qos import Slo
from penstock.sim.requests.server import ServerSpec
from penstock.sim.requests.simulation import simulate_requests
from penstock.workloads.clients import (
    KB,
    MB,
    Clients,
    btio_large,
    btio_small,
    saturating,
)

__all__ = ["fig1"]

_DURATION_S: Final = {Scale.SMOKE: 60.0, Scale.PAPER: 600.0}
#: Requests answered before this time are not counted (s).
_WARM_UP_S: Final = 10.0
#: Shares of 3 to 2; together less than the 39.8 MB/s that the storage reaches with
#: requests of 1 MB.
_SLOS: Final = {"btio": Slo(21.0 * MB, 0.05), "ior": Slo(14.0 * MB, 1.0)}
_SERVER: Final = ServerSpec(50.0 * MB, overhead_bytes=256.0 * KB)
#: Case -> scheduler, and whether IOR runs.
_CASES: Final = {
    "alone": ("fifo", False),
    "with IOR": ("fifo", True),
    "with IOR, DSFQ": ("sfq:depth=12", True),
    "with IOR, two-level": ("two-level", True),
}
_COLOURS: Final = ("#4477AA", "#EE6677", "#CCBB44", "#228833")
_SIZES: Final = {"large": btio_large, "small": btio_small}


def _table(scale: Scale) -> pl.DataFrame:
    """Return BTIO's throughput (bytes/s), and over that alone, by size and case."""
    end = _DURATION_S[scale]
    rows = []
    for size, btio in _SIZES.items():
        throughputs = {
            case: _throughput(btio(end), end, *how) for case, how in _CASES.items()
        }
        rows += [
            {
                "btio": size,
                "case": case,
                "throughput": t,
                "over_alone": t / throughputs["alone"],
            }
            for case, t in throughputs.items()
        ]
    return pl.DataFrame(rows)


def _throughput(btio: Clients, end: float, scheduler: str, disturbed: bool) -> float:  # noqa: FBT001
    clients = [btio, saturating("ior", end)] if disturbed else [btio]
    run = simulate_requests(scheduler, _SLOS, clients, [_SERVER], end)
    counted = run.requests_of("btio") & (run.answered_s >= _WARM_UP_S)
    return float(run.size_bytes[counted].sum()) / (end - _WARM_UP_S)


def _draw(tables: Tables) -> Figure:
    drawn = Figure(figsize=(8, 4), layout="constrained")
    panel: Any = drawn.subplots()
    for number, (case, colour) in enumerate(zip(_CASES, _COLOURS, strict=True)):
        shares = tables.rows.filter(pl.col("case") == case)["over_alone"].to_numpy()
        where = np.arange(len(_SIZES)) + (number - 1.5) * 0.2
        bars = panel.bar(where, shares, 0.18, color=colour, label=case)
        panel.bar_label(bars, [f"{100 * value:.1f} %" for value in shares], fontsize=8)
    panel.set_xticks(range(len(_SIZES)), ["large BTIO (1 MB)", "small BTIO (600 B)"])
    panel.set_ylabel("throughput over that alone")
    drawn.legend(loc="outside upper center", ncols=len(_CASES), frameon=False)
    tidy(panel, "y")
    return drawn


fig1 = figure("p5-fig1", rows=_table, draw=_draw)


def _shares(tables: Tables, case: str) -> dict[str, float]:
    """Return the throughput over that alone, by the size of the requests."""
    rows = tables.rows.filter(pl.col("case") == case)
    by_size = dict(rows.select("btio", "over_alone").iter_rows())
    return {size: by_size[size] for size in _SIZES}


@fig1.claim(
    "IOR slows large BTIO by 68.8 % (60 to 75), small BTIO by 96.9 % (94 to 99)."
)
def _small_slowed_more(tables: Tables) -> Verdict:
    """Compare the throughputs beside IOR with those alone."""
    lost = {size: 1 - share for size, share in _shares(tables, "with IOR").items()}
    holds = 0.6 <= lost["large"] <= 0.75 and 0.94 <= lost["small"] <= 0.99
    return Verdict(holds, lost)


@fig1.claim(
    "DSFQ brings large BTIO back to 58.8 % (50 to 70), small BTIO only to 11.2 % (5 to "
    "20)."
)
def _small_restored_less(tables: Tables) -> Verdict:
    """Compare the throughputs with DSFQ with those alone."""
    shares = _shares(tables, "with IOR, DSFQ")
    holds = 0.5 <= shares["large"] <= 0.7 and 0.05 <= shares["small"] <= 0.2
    return Verdict(holds, shares)


@fig1.claim(
    "With deadlines and an adaptive depth small BTIO has more than twice the "
    "throughput that DSFQ gives it.",
    source="not in the paper (two-level on the set-up of section 2)",
    beyond=True,
)
def _two_level_restores_small(tables: Tables) -> Verdict:
    """Compare two-level with DSFQ for small requests."""
    shares = _shares(tables, "with IOR, two-level")
    before = _shares(tables, "with IOR, DSFQ")
    numbers = {
        size: {"two-level": shares[size], "DSFQ": before[size]} for size in _SIZES
    }
    return Verdict(shares["small"] > 2 * before["small"], numbers)
