# SPDX-License-Identifier: MIT
"""The studies of target allocation, and summaries of their rows by load."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.experiments.placement_study import Contender
from penstock.experiments.reproduction import Scale
from penstock.papers import FIGURES, get_figure
from penstock.papers.p2.study import (
    ALLOCATIONS,
    GC,
    GNC,
    IO_NODES,
    MCKP,
    OSTS,
    PLACEMENTS,
    binned,
    case_study,
    chosen,
    means,
    measured,
    placed,
    relative,
    spread,
    summary,
)
from penstock.workloads.striped import Striped


def _rows(
    values: list[float | None],
    loads: list[float] | float = 0.5,
    name: str = "t-cpu",
    complete: bool = True,
) -> pl.DataFrame:
    """Return a row per value, each of another problem."""
    return pl.DataFrame(
        {
            "case": "io-nodes",
            "point": 0,
            "instance": range(len(values)),
            "allocation": name,
            "placement": GNC,
            "told": "exact",
            "minimum_load": loads if isinstance(loads, list) else [loads] * len(values),
            "complete": complete,
            "value": pl.Series(values, dtype=pl.Float64),
        }
    )


# --- The studies ------------------------------------------------------------------


@pytest.mark.parametrize("case", [IO_NODES, OSTS])
def test_a_study_compares_all_algorithms_of_the_paper(case: str) -> None:
    study = case_study(case)(Scale.PAPER)
    assert study.name == f"p2-{case}"
    for allocation in ALLOCATIONS:
        for placement in PLACEMENTS:
            assert Contender(allocation, placement) in study.contenders
    assert Contender(MCKP, "exclusive") in study.contenders
    assert sum(c.profiles == "classes" for c in study.contenders) == 3
    assert {c.policy for c in study.contenders} == {"fair-share"}
    family = study.points[0].family()
    assert isinstance(family, Striped)
    assert (family.targets, family.compute_nodes, family.applications) == (20, 480, 60)


def test_the_paper_has_over_100_sets_per_load() -> None:
    study = case_study(IO_NODES)(Scale.PAPER)
    assert study.instances > 100
    loads = [float(dict(point.settings)["load"]) for point in study.points]
    assert min(loads) == pytest.approx(0.1)
    assert max(loads) > 1.2
    assert np.diff(loads) == pytest.approx(0.1)


def test_smoke_is_a_part_of_the_paper() -> None:
    smoke, paper = (case_study(OSTS)(scale) for scale in (Scale.SMOKE, Scale.PAPER))
    assert set(smoke.points) <= set(paper.points)
    assert len(smoke.points) * smoke.instances <= 20


def test_all_figures_of_the_paper_share_two_studies() -> None:
    names = [f"p2-fig{n}" for n in (1, 2, *range(5, 19))]
    assert [name for name in FIGURES if name.startswith("p2-fig")] == names
    digests = set()
    for name in names:
        work = get_figure(name).study(Scale.PAPER)
        if not isinstance(work, pl.DataFrame):
            studies = work if isinstance(work, tuple) else (work,)
            digests |= {study.digest() for study in studies}
    assert digests == {case_study(c)(Scale.PAPER).digest() for c in (IO_NODES, OSTS)}


# --- Rows -------------------------------------------------------------------------


def test_intervals_have_fixed_edges() -> None:
    loads = [0.04, 0.05, 0.14, 0.15, 0.45, 0.549, 1.15, 1.249, 1.25, 2.0]
    rows = binned(_rows([0.0] * len(loads), loads))
    assert rows["bin"].to_list() == [0.1, 0.1, 0.2, 0.5, 0.5, 1.2, 1.2]
    wide = binned(_rows([0.0] * 4, [0.09, 0.1, 0.5, 1.29]), 0.2)
    assert wide["bin"].to_list() == [0.2, 0.6, 1.2]


@given(st.floats(0.051, 1.249), st.sampled_from([0.1, 0.2]))
def test_a_load_is_near_the_middle_of_its_interval(load: float, width: float) -> None:
    rows = binned(_rows([0.0], [load]), width)
    if load > 1.001 * width / 2:
        assert abs(rows["bin"][0] - load) <= width / 2 + 1e-9
    else:
        assert rows.is_empty()


def test_the_summary_of_an_interval() -> None:
    values = [float(v) for v in range(11)]
    rows = _rows([*values, None], complete=False).with_columns(
        (pl.col("instance") < 4).alias("complete")
    )
    (line,) = summary(rows, "value", "allocation").iter_rows(named=True)
    assert (line["allocation"], line["bin"], line["metric"]) == ("t-cpu", 0.5, "value")
    assert (line["sets"], line["left_out"], line["complete"]) == (11, 1, 4)
    assert (line["mean"], line["low"], line["high"]) == (5.0, 1.0, 9.0)
    assert line["error"] == pytest.approx(1.96 * np.std(values, ddof=1) / np.sqrt(11))


def test_where_most_are_left_out_there_is_no_line() -> None:
    rows = pl.concat([_rows([1.0, None, None], 0.3), _rows([1.0, None], 0.6)])
    assert measured(summary(rows, "value", "allocation"))["bin"].to_list() == [0.6]
    single = summary(_rows([3.0]), "value", "allocation")
    assert single["error"].to_list() == [0.0]


def test_means_by_name_and_load() -> None:
    rows = pl.concat(
        [_rows([1.0, 3.0], 0.3), _rows([5.0], 0.6), _rows([7.0], 0.3, "n-sys")]
    )
    assert means(rows, "value", "allocation") == {
        "t-cpu": {0.3: 2.0, 0.6: 5.0},
        "n-sys": {0.3: 7.0},
    }


def test_ratios_are_of_the_same_problem() -> None:
    mine = _rows([2.0, 3.0, None, 4.0])
    base = _rows([1.0, 4.0, 1.0, None], name="n-sys", complete=False).reverse()
    found = relative(mine, base, "value")
    assert found["ratio"].to_list() == [1.0, -0.25, None, None]
    assert found["complete"].to_list() == [False] * 4
    assert found["allocation"].to_list() == ["t-cpu"] * 4


def test_ratios_agree_in_more_columns_if_asked() -> None:
    rows = pl.concat([_rows([2.0]), _rows([3.0], name="n-sys")])
    base = pl.concat([_rows([1.0], name="n-sys"), _rows([4.0])])
    found = relative(rows, base, "value", on=["allocation"])
    assert found["ratio"].to_list() == [-0.5, 2.0]


def test_chosen_and_placed() -> None:
    names = ("t-cpu", "n-sys", MCKP)
    rows = pl.concat(
        [
            _rows([1.0], name=name).with_columns(
                pl.lit(place).alias("placement"), pl.lit(told).alias("told")
            )
            for name in names
            for place in (GNC, GC, "exclusive")
            for told in ("exact", "classes")
        ]
    )
    found = chosen(rows, ("t-cpu",), (GC,), "classes")
    assert found.select("allocation", "placement", "told").rows() == [
        ("t-cpu", GC, "classes")
    ]
    assert placed(rows).select("allocation", "placement", "told").rows() == [
        ("t-cpu", GNC, "exact"),
        ("n-sys", GNC, "exact"),
        (MCKP, "exclusive", "exact"),
    ]


def test_the_spread_of_a_claim() -> None:
    values = pl.Series([None, *map(float, range(11))])
    assert spread("a", values) == {"a, mean": 5.0, "a, 10th": 1.0, "a, 90th": 9.0}
    assert spread("a", values[:1]) == {"a, sets": 0.0}
