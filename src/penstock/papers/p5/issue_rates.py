# SPDX-License-Identifier: MIT
"""Figure 3 of two-level scheduling (section 4.2): the issue rates of two IORs."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.reproduction import Scale
from penstock.papers.declaration import TableStudy, figure
from penstock.papers.p5.charts import SHOWN, first_instance, new_panels, panel_title
from penstock.papers.p5.experiment import (
    APPLICATIONS,
    CAPACITY,
    COLOURS,
    DURATION_S,
    HOLDING,
    PERIOD_S,
    SENDING,
)
from penstock.papers.p5.rows import (
    TRANSIENT_S,
    VARIANTS,
    column_mean,
    over_memory,
    select,
    without_memory,
)

__all__ = ["fig3"]


def _study(scale: Scale) -> TableStudy:
    """Return the study of Figure 5: its rows have the issue rates, too."""
    return TableStudy.of("p5-fig5", scale)


def _only_variants(tables: Tables) -> Tables:
    """Leave out the schedulers that only Figure 5 shows."""
    rows = tables.rows.filter(pl.col("scheduler").is_in(VARIANTS))
    return Tables(rows, tables.times)


def _draw_rates(tables: Tables) -> Figure:
    drawn, panels = new_panels(len(SHOWN), 2.3)
    for panel, shown in zip(panels, SHOWN, strict=True):
        rows = first_instance(tables.rows, *shown)
        for name in APPLICATIONS:
            own = rows.filter(pl.col("application") == name)
            smooth = own["issued"].rolling_mean(5, min_samples=1, center=True) / 1e6
            panel.plot(own["second"], smooth, color=COLOURS[name], label=name)
        panel.axhline(CAPACITY / 1e6, color="#444444", linewidth=0.8, linestyle=":")
        panel.set_title(panel_title(*shown), fontsize=10)
        panel.set_ylabel("issue rate (MB/s)")
        panel.set_ylim(0, 60)
    panels[0].legend(frameon=False, ncols=2, loc="upper left")
    return drawn


fig3 = figure("p5-fig3", study=_study, prepare=_only_variants, draw=_draw_rates)


@fig3.claim(
    "In the fifth on period (400 to 450 s) the storage is saturated: together the "
    "applications issue what it can serve (50 MB/s, within 5 %), since a process "
    "issues its next request after the last one is answered.",
    source="two-level scheduling, section 4.2.1",
    reason="A memory takes part of it: 2 GB, which drain while App1 is off, until "
    "about 415 s, and 32 GB all that is issued in 600 s.",
)
def _saturated_when_both_are_on(tables: Tables) -> Verdict:
    """Take the mean of both issue rates together (MB/s)."""

    def check(rows: pl.DataFrame) -> Verdict:
        fifth = rows.filter(pl.col("second").is_between(400 + TRANSIENT_S, 449))
        issued = sum(
            column_mean(select(fifth, SENDING, name), "issued") / 1e6
            for name in APPLICATIONS
        )
        return Verdict(47.5 <= issued <= 52.5, {"issued (MB/s)": issued})

    return over_memory(tables, check)


def _of_its_rate(rows: pl.DataFrame, begin_s: float, end_s: float) -> float:
    """Return the issue rate of App2 over its aim, while App1 is off (SENDING)."""
    second = pl.col("second")
    own = select(
        rows.filter(
            ~pl.col("on")
            & second.is_between(begin_s, end_s, closed="left")
            & (second % 100 >= PERIOD_S + TRANSIENT_S)
        ),
        SENDING,
        "App2",
    )
    aimed = 20e6 + 30e6 * column_mean(own, "second") / DURATION_S
    return column_mean(own, "issued") / aimed


@fig3.claim(
    "While App1 is off the system handles App2's issue rate (97 % of it, until 350 s).",
    source="two-level scheduling, section 4.2.2",
)
def _alone_gets_its_rate(tables: Tables) -> Verdict:
    """Compare the mean issue rate of App2 with the aimed one."""

    def check(rows: pl.DataFrame) -> Verdict:
        share = _of_its_rate(rows, 0.0, 350.0)
        return Verdict(share >= 0.97, {"issued / aimed": share})

    return over_memory(tables, check)


@fig3.claim(
    "From 350 s on App2's issue rate alone exceeds the storage (less than 97 % of it "
    "is issued while App1 is off).",
    source="two-level scheduling, section 4.2.2",
    contradicted="Section 4.2: App2 grows from 20 to 50 MB/s in the 600 s of Figure 3, "
    "so it asks for 37.5 MB/s at 350 s, and the storage serves 50.",
)
def _too_much_alone_after_350_s(tables: Tables) -> Verdict:
    """Compare the mean issue rate of App2 with the aimed one."""

    def check(rows: pl.DataFrame) -> Verdict:
        share = _of_its_rate(rows, 350.0, DURATION_S)
        return Verdict(share < 0.97, {"issued / aimed": share})

    return over_memory(tables, check)


def _while_both_are_on(
    rows: pl.DataFrame, scheduler: str, column: str
) -> tuple[float, float]:
    """Return the mean of a column for App1 and App2 while both are on."""
    on = rows.filter(pl.col("on") & (pl.col("second") % 100 >= TRANSIENT_S))
    first, second = (
        column_mean(select(on, scheduler, name), column) for name in APPLICATIONS
    )
    return first, second


@fig3.claim(
    "Under overload throughputs are equal to the issue rates (within 5 %), not in the "
    "agreed proportion (2 to 1, within 10 %).",
    source="two-level scheduling, section 4.2.2, Figure 5",
)
def _not_proportional_under_overload(tables: Tables) -> Verdict:
    """Compare the throughputs under the scheduler of the paper."""

    def check(rows: pl.DataFrame) -> Verdict:
        moved = _while_both_are_on(rows, SENDING, "moved")
        issued = _while_both_are_on(rows, SENDING, "issued")
        numbers = {
            f"{name}, moved / issued": out / asked
            for name, out, asked in zip(APPLICATIONS, moved, issued, strict=True)
        }
        equal = all(0.95 <= share <= 1.05 for share in numbers.values())
        ratio = moved[0] / moved[1]
        agreed = 1.8 <= ratio <= 2.2
        return Verdict(equal and not agreed, {**numbers, "App1 / App2": ratio})

    return over_memory(tables, check)


@fig3.claim(
    "If requests are held back instead, shares are those agreed, 2 to 1 (within 10 %).",
    source="not in the paper (overload=hold)",
    beyond=True,
)
def _held_back_shares_hold(tables: Tables) -> Verdict:
    """Compare the throughputs under our scheduler."""
    first, second = _while_both_are_on(without_memory(tables), HOLDING, "moved")
    ratio = first / second
    return Verdict(1.8 <= ratio <= 2.2, {"App1 over App2, agreed: 2": ratio})
