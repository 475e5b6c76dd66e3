# SPDX-License-Identifier: MIT
"""The studies of target allocation, and summaries of their rows by load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.experiments.claims import NoRowsError, Tables, Verdict
from penstock.experiments.placement_study import Contender
from penstock.experiments.reproduction import Scale
from penstock.papers import FIGURES, get_figure
from penstock.papers.p2.study import (
    ALLOCATIONS,
    BEST_BANDWIDTH,
    GC,
    GNC,
    IO_NODES,
    MCKP,
    N_SYS,
    NUMBERS,
    OSTS,
    PLACEMENTS,
    T_CPU,
    Problems,
    at_every_number,
    case_study,
    label,
    per_problem,
    problems_by_number,
    summary,
)
from penstock.workloads.striped import Striped


def _rows(
    values: Sequence[float | None],
    loads: Sequence[float] | float = 0.5,
    name: str = T_CPU,
    **columns: Any,
) -> pl.DataFrame:
    """Return a row of a study per value, each of another problem."""
    return pl.DataFrame(
        {
            "case": IO_NODES,
            "applications": 60,
            "point": 0,
            "instance": range(len(values)),
            "allocation": name,
            "placement": GNC,
            "profile_information": "exact",
            "policy": "fair-share",
            "minimum_load": [loads] * len(values)
            if isinstance(loads, float)
            else loads,
            "complete": True,
            "value": pl.Series(values, dtype=pl.Float64),
        }
    ).with_columns(**{name: pl.lit(value) for name, value in columns.items()})


def _prepared(*parts: pl.DataFrame, width: float = 0.1) -> Tables:
    """Return one row per set of some rows of a study."""
    names = [label(a, p) for a in (*ALLOCATIONS, MCKP) for p in PLACEMENTS]
    names.append(label(T_CPU, GNC, "class"))
    prepare = per_problem(("value",), names, width)
    return prepare(Tables(pl.concat(parts), pl.DataFrame()))


def _sets(*parts: pl.DataFrame) -> Problems:
    return Problems(_prepared(*parts).rows)


# --- The studies ------------------------------------------------------------------


@pytest.mark.parametrize("case", [IO_NODES, OSTS])
def test_a_study_compares_all_algorithms_of_the_paper(case: str) -> None:
    study = case_study(case)(Scale.PAPER)
    assert study.name == f"p2-{case}"
    for allocation in ALLOCATIONS:
        for placement in PLACEMENTS:
            assert Contender(allocation, placement) in study.contenders
    assert Contender(MCKP, "exclusive") in study.contenders
    by_class = [c for c in study.contenders if c.profile_information == "class"]
    assert len(by_class) == (3 if case == IO_NODES else 0)
    assert {c.policy for c in study.contenders} == {"fair-share"}
    for point in study.points:
        family = point.family()
        assert isinstance(family, Striped)
        assert (family.targets, family.compute_nodes) == (20, 480)
        assert family.applications in NUMBERS


@pytest.mark.parametrize(("applications", "highest"), [(20, 0.9), (40, 1.3), (60, 1.3)])
def test_the_paper_has_over_100_sets_per_load(
    applications: int, highest: float
) -> None:
    study = case_study(IO_NODES)(Scale.PAPER)
    assert study.instances > 100
    settings = [dict(point.settings) for point in study.points]
    loads = [float(s["load"]) for s in settings if s["applications"] == applications]
    assert (min(loads), max(loads)) == (0.1, highest)
    assert np.diff(loads) == pytest.approx(0.1)


def test_smoke_is_a_part_of_the_paper() -> None:
    smoke, paper = (case_study(OSTS)(scale) for scale in (Scale.SMOKE, Scale.PAPER))
    assert set(smoke.points) <= set(paper.points)
    assert len(smoke.points) * smoke.instances <= 50


def test_all_figures_of_the_paper_share_two_studies() -> None:
    names = [f"p2-fig{n}" for n in (1, 2, *range(5, 19))]
    assert [name for name in FIGURES if name.startswith("p2-fig")] == names
    digests = set()
    for name in names:
        work = get_figure(name).study(Scale.PAPER)
        studies = work if isinstance(work, tuple) else (work,)
        # Figures without points simulate nothing.
        digests |= {study.digest() for study in studies if study.points}
    assert digests == {case_study(c)(Scale.PAPER).digest() for c in (IO_NODES, OSTS)}


# --- Rows -------------------------------------------------------------------------


def test_names_of_contenders() -> None:
    assert label(T_CPU) == f"{T_CPU} + {GNC}"
    assert label(T_CPU, GC, "class") == f"{T_CPU} + {GC} + class"
    assert label(MCKP) == label(MCKP, GC) == "mckp + exclusive"


def test_intervals_have_fixed_edges() -> None:
    loads = [0.04, 0.05, 0.14, 0.15, 0.45, 0.549, 1.15, 1.249, 1.25, 2.0]
    rows = _prepared(_rows([0.0] * len(loads), loads)).rows
    assert rows["bin"].to_list() == [0.1, 0.1, 0.2, 0.5, 0.5, 1.2, 1.2]
    wide = _prepared(_rows([0.0] * 4, [0.09, 0.1, 0.5, 1.29]), width=0.2).rows
    assert wide["bin"].to_list() == [0.2, 0.6, 1.2]


@given(st.floats(0.051, 1.249), st.sampled_from([0.1, 0.2]))
def test_a_load_is_near_the_middle_of_its_interval(load: float, width: float) -> None:
    rows = _prepared(_rows([0.0], [load]), width=width).rows
    if load > 1.001 * width / 2:
        assert abs(rows["bin"][0] - load) <= width / 2 + 1e-9
    else:
        assert rows.is_empty()


def test_a_set_has_a_column_per_contender() -> None:
    sets = _sets(
        _rows([1.0, 2.0]),
        _rows([3.0, None], name=N_SYS),
        _rows([5.0, 6.0], profile_information="class"),
        _rows([7.0, 8.0], policy="fcfs"),  # not among the contenders of the figure
    )
    assert sets.rows.height == 2
    assert sets.values("value", label(T_CPU)).tolist() == [1.0, 2.0]
    assert sets.values("value", label(T_CPU, GNC, "class")).tolist() == [5.0, 6.0]
    assert sets.values("complete", label(T_CPU)).tolist() == [1.0, 1.0]
    assert np.isnan(sets.values("value", label(N_SYS))[1])
    assert not [name for name in sets.rows.columns if "fcfs" in name]


def test_ratios_are_of_the_same_set_whatever_the_order_of_the_rows() -> None:
    base = _rows([1.0, 4.0, 1.0, None], name=N_SYS).reverse()
    sets = _sets(_rows([2.0, 3.0, None, 4.0]), base)
    ratios = sets.ratios("value", label(T_CPU), label(N_SYS))
    assert ratios[:2].tolist() == [1.0, -0.25]
    assert np.isnan(ratios[2:]).all()


def test_means_by_load_leave_out_loads_that_are_mostly_not_measured() -> None:
    values = [1.0, 3.0, None, None, 5.0, 7.0, None]
    sets = _sets(_rows(values, [0.3] * 4 + [0.6] * 2 + [0.9]))
    assert sets.means("value", label(T_CPU)) == {0.3: 2.0, 0.6: 6.0}
    sets = _sets(_rows([1.0, None, None], 0.3))
    assert sets.means("value", label(T_CPU)) == {}


def test_the_mean_between_two_loads() -> None:
    sets = _sets(_rows([1.0, 3.0, None, 8.0], [0.3, 0.3, 0.6, 0.9]))
    values = sets.values("value", label(T_CPU))
    assert sets.mean(values) == 4.0
    assert sets.mean(values, high=0.35) == 2.0
    assert sets.mean(values, low=0.35) == 8.0
    with pytest.raises(NoRowsError):
        sets.mean(values, 0.6, 0.6)


def test_the_summary_of_an_interval() -> None:
    values = [float(v) for v in range(11)]
    rows = _rows([*values, None]).with_columns(complete=pl.col("instance") < 4)
    (line,) = summary(_prepared(rows), "value", label(T_CPU)).iter_rows(named=True)
    assert (line["contender"], line["metric"]) == (label(T_CPU), "value")
    assert (line["K"], line["bin"]) == (60, 0.5)
    assert (line["sets"], line["left_out"], line["complete"]) == (11, 1, 4)
    assert (line["mean"], line["low"], line["high"]) == (5.0, 1.0, 9.0)
    assert line["error"] == pytest.approx(1.96 * np.std(values, ddof=1) / np.sqrt(11))


def test_the_summary_of_one_set_and_of_none() -> None:
    (line,) = summary(_prepared(_rows([3.0])), "value", label(T_CPU)).to_dicts()
    assert (line["mean"], line["error"]) == (3.0, 0.0)
    (line,) = summary(_prepared(_rows([None])), "value", label(T_CPU)).to_dicts()
    assert (line["sets"], line["left_out"], line["mean"]) == (0, 1, None)


def test_the_summary_of_other_numbers_than_the_metric() -> None:
    tables = _prepared(_rows([2.0]), _rows([1.0], name=BEST_BANDWIDTH))
    (line,) = summary(
        tables,
        "a ratio",
        label(T_CPU),
        lambda sets: sets.ratios("value", label(T_CPU), label(BEST_BANDWIDTH)),
    ).to_dicts()
    assert (line["metric"], line["mean"]) == ("a ratio", 1.0)


# --- Over K -----------------------------------------------------------------------


def _two_numbers(few: float | None, many: float) -> Tables:
    return _prepared(
        _rows([few], point=1, applications=20), _rows([many], point=2, applications=60)
    )


@at_every_number
def _positive(sets: Problems, least: float = 0.0) -> Verdict:
    mean = sets.mean(sets.values("value", label(T_CPU)))
    return Verdict(mean > least, {"mean": mean})


def test_a_claim_is_checked_at_every_number_of_applications() -> None:
    verdict = _positive(_two_numbers(-1.0, 2.0))
    assert not verdict.holds
    assert (verdict.depends_on, verdict.holds_at) == ("K", ("60",))
    assert verdict.numbers == {"K = 20": {"mean": -1.0}, "K = 60": {"mean": 2.0}}
    assert _positive(_two_numbers(1.0, 2.0)).holds
    assert not _positive(_two_numbers(1.0, 2.0), least=3.0).depends_on


def test_a_check_may_take_the_problems_of_several_cases() -> None:
    def higher(one: Problems, other: Problems) -> Verdict:
        values = [s.mean(s.values("value", label(T_CPU))) for s in (one, other)]
        return Verdict(values[0] > values[1], {"gap": values[0] - values[1]})

    tables = _prepared(
        _rows([1.0], point=1),
        _rows([3.0], point=2, case=OSTS),
        _rows([9.0], point=3, case=OSTS, applications=20),
    )
    verdict = at_every_number(higher, cases=(OSTS, IO_NODES))(tables)
    assert verdict.holds
    assert verdict.numbers == {"K = 60": {"gap": 2.0}}


def test_a_number_of_applications_without_sets_does_not_count() -> None:
    verdict = _positive(_two_numbers(None, 2.0))
    assert verdict.holds
    assert list(verdict.numbers) == ["K = 60"]
    with pytest.raises(NoRowsError):
        _positive(_prepared(_rows([None])))


def test_sets_by_number_may_be_of_one_case() -> None:
    tables = _prepared(_rows([1.0]), _rows([2.0], case=OSTS, applications=40))
    assert list(problems_by_number(tables)) == [40, 60]
    (only,) = problems_by_number(tables, OSTS).values()
    assert only.values("value", label(T_CPU)).tolist() == [2.0]
