# SPDX-License-Identifier: MIT
"""papers/5 Figure 1: BTIO beside IOR, with large and with small requests.

Simulated, with what the paper does not say fitted to its bars: IOR has 32 processes
that issue 1 MB as fast as they are answered, large BTIO 16 with 1 MB, small BTIO 4 with
600 bytes; the storage serves one request after the other at 50 MB/s, and each takes 5.1
ms before anything is moved. DSFQ favours BTIO 3 to 2, with 12 requests at the storage.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Claim, Tables, Verdict
from penstock.experiments.output.charts import tidy
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.qos import Slo
from penstock.sim.requests import simulate_requests
from penstock.sim.requests_server import ServerSpec
from penstock.workloads.clients import (
    KB,
    MB,
    Clients,
    btio_large,
    btio_small,
    saturating,
)

__all__ = ["FIGURES"]

_LASTS: Final = {Scale.SMOKE: 60.0, Scale.PAPER: 600.0}
#: Left out at the beginning (s).
_WARM_UP: Final = 10.0
#: 3 to 2, and less than the storage gives with requests of 1 MB: 39.8 MB/s.
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
    """Return BTIO's throughput (bytes/s) in every case, and over that alone."""
    end = _LASTS[scale]
    rows = []
    for size, btio in _SIZES.items():
        found = {
            case: _throughput(btio(end), end, *how) for case, how in _CASES.items()
        }
        rows += [
            {
                "btio": size,
                "case": case,
                "throughput": t,
                "over_alone": t / found["alone"],
            }
            for case, t in found.items()
        ]
    return pl.DataFrame(rows)


def _throughput(btio: Clients, end: float, scheduler: str, disturbed: bool) -> float:  # noqa: FBT001
    clients = [btio, saturating("ior", end)] if disturbed else [btio]
    run = simulate_requests(scheduler, _SLOS, clients, [_SERVER], end)
    counted = run.requests_of("btio") & (run.answered_s >= _WARM_UP)
    return float(run.size_bytes[counted].sum()) / (end - _WARM_UP)


def _draw(tables: Tables) -> Figure:
    figure = Figure(figsize=(8, 4), layout="constrained")
    panel: Any = figure.subplots()
    for number, (case, colour) in enumerate(zip(_CASES, _COLOURS, strict=True)):
        mine = tables.rows.filter(pl.col("case") == case)["over_alone"].to_numpy()
        where = np.arange(len(_SIZES)) + (number - 1.5) * 0.2
        bars = panel.bar(where, mine, 0.18, color=colour, label=case)
        panel.bar_label(bars, [f"{100 * value:.1f} %" for value in mine], fontsize=8)
    panel.set_xticks(range(len(_SIZES)), ["large BTIO (1 MB)", "small BTIO (600 B)"])
    panel.set_ylabel("throughput over that alone")
    panel.legend(frameon=False, fontsize=9)
    tidy(panel, "y")
    return figure


def _share(tables: Tables, size: str, case: str) -> float:
    rows = tables.rows.filter((pl.col("btio") == size) & (pl.col("case") == case))
    return float(rows["over_alone"][0])


def _both(tables: Tables, case: str) -> dict[str, float]:
    return {size: _share(tables, size, case) for size in _SIZES}


def _slowed(tables: Tables) -> Verdict:
    lost = {size: 1 - share for size, share in _both(tables, "with IOR").items()}
    holds = 0.6 <= lost["large"] <= 0.75 and 0.94 <= lost["small"] <= 0.99
    return Verdict(holds, lost)


def _restored(tables: Tables) -> Verdict:
    shares = _both(tables, "with IOR, DSFQ")
    holds = 0.5 <= shares["large"] <= 0.7 and 0.05 <= shares["small"] <= 0.2
    return Verdict(holds, shares)


def _two_level_restores_more(tables: Tables) -> Verdict:
    shares = _both(tables, "with IOR, two-level")
    before = _both(tables, "with IOR, DSFQ")
    numbers = {f"{size}, two-level": share for size, share in shares.items()}
    numbers |= {f"{size}, DSFQ": share for size, share in before.items()}
    return Verdict(shares["small"] > 2 * before["small"], numbers)


_SOURCE: Final = "papers/5 section 2, Figure 1"

FIGURES: Final = {
    "p5-fig1": Reproduction(
        name="p5-fig1",
        title="Slowdown of BTIO beside IOR by the size of its requests (fitted)",
        source=f"{_SOURCE} (concurrency and cost of a request fitted)",
        study=_table,
        draw=_draw,
        claims=[
            Claim(
                "small-slowed-more",
                _SOURCE,
                "IOR slows large BTIO by 68.8 % (60 to 75), small BTIO by 96.9 % (94 "
                "to 99).",
                _slowed,
            ),
            Claim(
                "small-restored-less",
                _SOURCE,
                "DSFQ brings large BTIO back to 58.8 % (50 to 70), small BTIO only to "
                "11.2 % (5 to 20).",
                _restored,
            ),
            Claim(
                "two-level-restores-small",
                "papers/5 section 2 (what the two-level scheduler is for)",
                "With deadlines and an adaptive depth small BTIO has more than twice "
                "what DSFQ gives it.",
                _two_level_restores_more,
            ),
        ],
    ),
}
