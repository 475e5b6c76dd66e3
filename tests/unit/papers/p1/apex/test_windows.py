# SPDX-License-Identifier: MIT
"""APEX windows as one table: bands of W, ratios, empty selections, and verdicts."""

from __future__ import annotations

import math

import polars as pl
import pytest

from penstock.experiments.claims import Tables, Verdict
from penstock.experiments.resampling import resampled
from penstock.papers.p1.apex.bands import (
    BANDS,
    EFFICIENCIES,
    EVERY_WINDOW,
    FIGURES_6_TO_10,
    HIGH,
    LOW,
    NERSC,
    TRILAB,
)
from penstock.papers.p1.apex.verdicts import (
    against_fair_share,
    all_cells_pass,
    all_pass,
    by_weights,
    fcfs_as_set10,
    gain_grows,
    greedy_com_highest,
    trilab_higher,
)
from penstock.papers.p1.apex.windows import (
    facts_of,
    long_rows,
    ratios_of,
    shown,
    values_of,
    windows_of,
)
from penstock.papers.p1.policies import FAIR_SHARE, GREEDY_COM
from support.apex_tables import both_traces, by_band, prepared, tables_of, window


def test_a_figure_has_one_row_per_window_inside_its_range() -> None:
    tables = tables_of(*(window({"fcfs": w / 2}, w) for w in (0.49, 0.5, 1.4, 1.41)))
    rows = shown(FIGURES_6_TO_10)(tables).rows
    assert rows["pressure"].to_list() == [0.5, 1.4]
    assert rows["min_yield fcfs"].to_list() == [0.25, 0.7]
    assert rows["ratio fcfs"].to_list() == [0.5, 1.4]
    assert rows["instance"].to_list() == [0, 0]


def test_the_order_of_the_rows_of_a_study_does_not_matter() -> None:
    tables = tables_of(window({"fcfs": 0.3}, 0.6), window({"fcfs": 0.4}, 1.2))
    turned = Tables(tables.rows.reverse(), tables.times)
    assert (
        shown(EVERY_WINDOW)(turned)
        .rows.sort("point")
        .equals(shown(EVERY_WINDOW)(tables).rows)
    )


def test_resamples_draw_whole_schedules() -> None:
    """Of 20 windows per schedule, those in the range of the figure stay together."""
    of_schedules = [
        window({}, 0.6 + schedule / 10).with_columns(
            pl.lit(20 * schedule + number, pl.Int64).alias("instance")
        )
        for schedule in range(4)
        for number in (3, 17)
    ]
    rows = tables_of(*of_schedules).rows.with_columns(pl.lit(0).alias("point"))
    times = rows.select("point", "instance", "policy", pl.lit(1e-3).alias("seconds"))
    tables = shown(FIGURES_6_TO_10)(Tables(rows, times))
    drawn = [table.rows for table in resampled(tables, 5)]
    assert len(drawn) == 5
    for one in drawn:
        assert one["instance"].to_list() == [
            20 * n + k for n in range(4) for k in (3, 17)
        ]
        schedules = one.group_by(pl.col("instance") // 20).agg(pl.n_unique("pressure"))
        assert schedules["pressure"].to_list() == [1] * 4


def test_long_rows_are_those_of_the_study() -> None:
    tables = tables_of(window({"fcfs": 0.3}, 0.6), window({"fcfs": 0.4}, 1.2))
    names = ["point", "policy", "pressure", "min_yield"]
    back = long_rows(shown(EVERY_WINDOW)(tables).rows, "min_yield").select(names)
    assert back.sort(names).equals(tables.rows.select(names).sort(names))


def test_a_band_includes_its_lower_end_only() -> None:
    tables = prepared(*(window({}, w) for w in (0.74, 0.75, 1.0)))
    found = {
        name: windows_of(tables, NERSC, band)["pressure"].to_list()
        for name, band in BANDS.items()
    }
    assert found == {"W<0.75": [0.74], "0.75<=W<1": [0.75], "W>=1": [1.0]}
    assert windows_of(tables, TRILAB).is_empty()


def test_a_ratio_divides_by_fair_share_in_the_same_window() -> None:
    tables = prepared(
        window({FAIR_SHARE: 0.5, GREEDY_COM: 0.25}, 0.6),
        window({FAIR_SHARE: 0.2, GREEDY_COM: 0.4}, 1.3),
    )
    assert ratios_of(tables, NERSC, GREEDY_COM).tolist() == [0.5, 2.0]
    assert ratios_of(tables, NERSC, GREEDY_COM, HIGH).tolist() == [2.0]
    assert ratios_of(tables, NERSC, FAIR_SHARE).tolist() == [1.0, 1.0]
    assert values_of(tables, NERSC, "min_yield", FAIR_SHARE, LOW).tolist() == [0.5]
    assert facts_of(tables, NERSC, "pressure").tolist() == [0.6, 1.3]


def test_all_numbers_must_pass() -> None:
    numbers = {"a": 1.0, "b": 2.0}
    assert all_pass(numbers, lambda v: v > 0).holds
    assert not all_pass(numbers, lambda v: v > 1).holds
    assert not all_pass({"a": math.nan}, lambda v: v > 0).holds
    assert all_pass(numbers, lambda v: v > 0).numbers == numbers
    table = {"x": numbers, "y": {"a": 3.0}}
    assert all_cells_pass(table, lambda v: v > 0).holds
    assert not all_cells_pass(table, lambda v: v < 3).holds
    assert all_cells_pass(table, lambda v: v > 0).numbers == table


def test_a_check_with_both_weights_says_on_which_it_depends() -> None:
    numbers = {"efficiency": 0.4, "cap_efficiency": 0.6}
    verdict = by_weights(
        EFFICIENCIES, lambda m: Verdict(numbers[m] > 0.5, {"mean": numbers[m]})
    )
    assert not verdict.holds
    assert (verdict.depends_on, verdict.holds_at) == ("weights", ("b_i (figure)",))
    assert verdict.numbers["weights = p_i (text)"] == {"mean": 0.4}


#: One kind of weights.
ONE = {"p_i": "efficiency"}


@pytest.mark.parametrize(
    ("nersc", "trilab", "holds"),
    [(0.6, 0.5, True), (0.4, 0.5, False), (0.6, 0.53, False), (0.6, 0.47, False)],
)
def test_a_policy_against_fair_share_on_both_traces(
    nersc: float, trilab: float, holds: bool
) -> None:
    tables = prepared(
        window({}, 1.0, efficiency={"fcfs": nersc}),
        window({}, 1.0, TRILAB, efficiency={"fcfs": trilab}),
    )
    verdict = against_fair_share(tables, ONE, "fcfs", (-0.02, 0.02))
    assert verdict.holds is holds


def test_a_gain_that_grows_with_the_pressure() -> None:
    tables = prepared(*by_band((GREEDY_COM,), (0.9, 1.0, 1.2), TRILAB))
    assert gain_grows(tables, TRILAB, (GREEDY_COM,)).holds
    assert not gain_grows(tables, TRILAB, (GREEDY_COM, "fcfs")).holds


def test_fcfs_and_set10_are_compared_window_by_window() -> None:
    """Equal means do not suffice: both windows must agree."""
    for other in (0.4, 0.4049):
        alike = prepared(window({"fcfs": 0.4, "set-10": other}, 1.0))
        assert fcfs_as_set10(alike, NERSC).holds
    crossed = prepared(
        window({"fcfs": 0.4, "set-10": 0.6}, 1.0),
        window({"fcfs": 0.6, "set-10": 0.4}, 1.0),
    )
    verdict = fcfs_as_set10(crossed, NERSC)
    assert not verdict.holds
    assert verdict.numbers["share of windows that differ"] == 1.0


def test_a_comparison_of_traces_needs_every_policy() -> None:
    higher = prepared(window({}, 1.0), window({}, 1.0, TRILAB, utilization=0.6))
    utilization = {"p_i": "utilization"}
    assert trilab_higher(higher, utilization, HIGH).holds
    assert not trilab_higher(higher, utilization, LOW).holds
    assert not trilab_higher(higher, ONE, HIGH).holds


def test_traces_are_compared_at_equal_pressure() -> None:
    # NERSC has more windows at low W, where both are better; TRILAB is ahead at both.
    nersc = [window({}, 0.55, efficiency=0.9)] * 9 + [window({}, 1.15, efficiency=0.5)]
    trilab = [
        window({}, w, TRILAB, efficiency=e) for w, e in ((0.55, 0.91), (1.15, 0.51))
    ]
    lonely = window({}, 1.35, TRILAB, efficiency=0.1)
    verdict = trilab_higher(prepared(*nersc, *trilab, lonely), ONE, EVERY_WINDOW)
    assert verdict.holds
    means = [verdict.numbers[f"weights = p_i, {trace}"] for trace in (NERSC, TRILAB)]
    assert [row[FAIR_SHARE] for row in means] == pytest.approx([0.7, 0.71])


def test_greedy_com_must_be_highest_on_every_trace() -> None:
    one = prepared(*both_traces({}, 1.0, efficiency={GREEDY_COM: 0.6}))
    assert greedy_com_highest(one, ONE, (NERSC, TRILAB), HIGH).holds
    half = prepared(
        window({}, 1.0, efficiency={GREEDY_COM: 0.6}), window({}, 1.0, TRILAB)
    )
    assert greedy_com_highest(half, ONE, (NERSC,), HIGH).holds
    assert not greedy_com_highest(half, ONE, (NERSC, TRILAB), HIGH).holds
