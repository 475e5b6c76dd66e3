# SPDX-License-Identifier: MIT
"""Figure 4 of two-level scheduling (section 4.2.1): the depth of the EDF queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict, present_values, require_rows
from penstock.experiments.reproduction import Scale
from penstock.papers.declaration import figure
from penstock.papers.p5.charts import SHOWN, first_instance, new_panels, panel_title
from penstock.papers.p5.experiment import (
    DURATION_S,
    PERIOD_S,
    SENDING,
    WINDOW_S,
    depths,
    runs,
)
from penstock.papers.p5.rows import (
    TRANSIENT_S,
    VARIANTS,
    over_memory,
    share,
)

__all__ = ["fig4"]

#: The infinite depth is drawn here, as in the paper.
_INFINITE: Final = 100.0
#: Number of time windows.
_WINDOWS: Final = int(DURATION_S / WINDOW_S)
_NO_OVERLOAD: Final = (
    "A memory that keeps the answers of Figure 5 below 300 ms in the first 200 s takes "
    "all requests at once, so there is no overload then."
)


def _windows(scale: Scale) -> pl.DataFrame:
    return pl.concat([depths(done) for done in runs(scale, VARIANTS)])


def _draw_depths(tables: Tables) -> Figure:
    drawn, panels = new_panels(len(SHOWN), 2.3)
    for panel, shown in zip(panels, SHOWN, strict=True):
        rows = first_instance(tables.rows, *shown)
        values = rows["depth"].fill_null(_INFINITE).clip(upper_bound=_INFINITE)
        panel.plot(rows["time"], values, ".", color="#4477AA", markersize=3)
        panel.set_title(panel_title(*shown), fontsize=10)
        panel.set_ylabel("EDF queue depth")
        panel.set_ylim(0, _INFINITE * 1.05)
        panel.set_yticks([0, 20, 40, 60, 80, 100], ["0", "20", "40", "60", "80", "∞"])
    return drawn


fig4 = figure("p5-fig4", rows=_windows, draw=_draw_depths)


def _over_paper_depths(
    tables: Tables, check: Callable[[pl.DataFrame], Verdict]
) -> Verdict:
    """Check the depths of the scheduler of the paper, with each memory."""
    rows = tables.rows.filter(pl.col("scheduler") == SENDING)
    require_rows(rows)
    return over_memory(Tables(rows, tables.times), check)


@fig4.claim(
    "When App1 comes on, the depth goes from small (below 25) to infinite (within 6 "
    "windows; first 300 s).",
    reason=_NO_OVERLOAD,
)
def _small_to_infinite(tables: Tables) -> Verdict:
    """Count the windows from the start of App1 to the infinite depth."""

    def check(rows: pl.DataFrame) -> Verdict:
        waits, before = [], []
        for start in (100, 200):
            for _, run in rows.group_by("instance", maintain_order=True):
                after = run.filter(
                    (pl.col("time") >= start) & pl.col("depth").is_null()
                )
                windows = after["window"].to_list()
                waits.append(float((windows or [_WINDOWS])[0] - 2 * start))
                calm = run.filter(pl.col("time").is_between(start - 20, start - 1))
                depth = calm["depth"].fill_null(_INFINITE).to_numpy().mean()
                before.append(float(depth))
        numbers = {"depth before": max(before), "windows until ∞": max(waits)}
        return Verdict(max(before) < 25 and max(waits) <= 6, numbers)

    return _over_paper_depths(tables, check)


@fig4.claim(
    "The depth stays infinite while App1 is on, and becomes finite when App1 goes off "
    "(90 % of the windows each, 5 s after the change; first 300 s).",
    reason=_NO_OVERLOAD,
)
def _infinite_to_small(tables: Tables) -> Verdict:
    """Take the shares of windows with finite and infinite depth."""

    def check(rows: pl.DataFrame) -> Verdict:
        early = rows.filter(pl.col("time") < 300)
        off = early.filter(
            ~pl.col("on") & (pl.col("time") % 100 >= PERIOD_S + TRANSIENT_S)
        )
        on = early.filter(pl.col("on") & (pl.col("time") % 100 >= TRANSIENT_S))
        finite = 1 - share(off["depth"].is_null())
        infinite = share(on["depth"].is_null())
        numbers = {"finite while off": finite, "infinite while on": infinite}
        return Verdict(finite >= 0.9 and infinite >= 0.9, numbers)

    return _over_paper_depths(tables, check)


@fig4.claim(
    "With App2 alone the depth is about 15 (median 10 to 20), not its 32 processes.",
    reason="The depth is 300 ms times the throughput: 15 at 50 MB/s, and more than 30 "
    "at the 110 MB/s at which a memory takes requests.",
)
def _about_15_in_steady_state(tables: Tables) -> Verdict:
    """Take the median depth while App1 is off."""

    def check(rows: pl.DataFrame) -> Verdict:
        off = rows.filter(
            ~pl.col("on")
            & (pl.col("time") < 400)
            & (pl.col("time") % 100 >= PERIOD_S + TRANSIENT_S)
        )
        middle = float(np.median(present_values(off["depth"]).to_numpy()))
        return Verdict(10 <= middle <= 20, {"median depth": middle})

    return _over_paper_depths(tables, check)


@fig4.claim(
    "As App2 issues more, the depth stays high more often (second 300 s against the "
    "first).",
    reason="With 32 GB there is no overload at all.",
)
def _high_more_often_later(tables: Tables) -> Verdict:
    """Compare the shares of windows with infinite depth."""

    def check(rows: pl.DataFrame) -> Verdict:
        first = share(rows.filter(pl.col("time") < 300)["depth"].is_null())
        after = share(rows.filter(pl.col("time") >= 300)["depth"].is_null())
        return Verdict(
            after > first, {"infinite, first 300 s": first, "after that": after}
        )

    return _over_paper_depths(tables, check)


@fig4.claim(
    "The depth remains high from the 850th to the 1000th window (425 to 500 s; "
    "infinite in 90 % of the windows).",
    source="two-level scheduling, section 4.2.1",
    contradicted="Section 4.2: App1 is off from 450 to 500 s, and App2 asks for 42 to "
    "45 MB/s of the storage's 50.",
)
def _high_from_425_to_500_s(tables: Tables) -> Verdict:
    """Take the share of windows with infinite depth."""

    def check(rows: pl.DataFrame) -> Verdict:
        part = rows.filter(pl.col("time").is_between(425, 500, closed="left"))
        high = share(part["depth"].is_null())
        return Verdict(high >= 0.9, {"infinite": high})

    return _over_paper_depths(tables, check)
