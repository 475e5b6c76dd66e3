# SPDX-License-Identifier: MIT
"""Drawings of two-level scheduling: titles of panels, and where App1 is on."""

from __future__ import annotations

import polars as pl

from penstock.papers.p5.charts import SHOWN, first_instance, new_panels, panel_title
from penstock.papers.p5.experiment import DURATION_S, PERIOD_S
from support.two_iors import made_up


def test_every_panel_has_its_own_title() -> None:
    titles = [panel_title(*shown) for shown in SHOWN]
    assert len(set(titles)) == len(SHOWN)
    assert panel_title("fifo", 0) == "fifo, no memory"
    assert panel_title("edf", 2) == "edf (depth 8), 2 GB of memory"


def test_panels_are_grey_while_app1_is_on() -> None:
    drawn, panels = new_panels(2, 1.0)
    assert drawn.axes == list(panels)
    for panel in panels:
        begins = [span.get_x() for span in panel.patches]
        assert begins == [start * 2 * PERIOD_S for start in range(len(begins))]
        assert {span.get_width() for span in panel.patches} == {PERIOD_S}
        assert begins[-1] + 2 * PERIOD_S == DURATION_S


def test_one_run_is_drawn() -> None:
    rows = made_up().rows
    both = pl.concat([rows, rows.with_columns(instance=pl.lit(2, pl.Int64))])
    drawn = first_instance(both, "fifo", 0)
    assert drawn.height == first_instance(rows, "fifo", 0).height > 0
    assert set(drawn["scheduler"]) == {"fifo"}
    assert first_instance(both, "fifo", 2).height == 0
