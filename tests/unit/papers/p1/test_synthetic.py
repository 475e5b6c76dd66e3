# SPDX-License-Identifier: MIT
"""The study of the synthetic workload has the numbers of the paper."""

from __future__ import annotations

from penstock.experiments.reproduction import Scale
from penstock.papers.p1.policies import ALL_POLICIES
from penstock.papers.p1.pressure import fig2
from penstock.papers.p1.ranks import fig3, fig4
from penstock.papers.p1.synthetic import HORIZON_S, PRESSURES, pressure_study


def test_the_paper_has_200_instances_of_2_000_000_s_at_six_pressures() -> None:
    study = pressure_study(Scale.PAPER)
    assert study.instances == 200
    assert study.policies == ALL_POLICIES
    assert study.yields
    parameters = [dict(point.settings) for point in study.points]
    assert [p["pressure"] for p in parameters] == list(PRESSURES)
    assert {p["horizon"] for p in parameters} == {HORIZON_S[Scale.PAPER]} == {2e6}


def test_smoke_scale_is_a_small_part_of_it() -> None:
    smoke, paper = pressure_study(Scale.SMOKE), pressure_study(Scale.PAPER)
    assert smoke.instances < paper.instances
    assert HORIZON_S[Scale.SMOKE] < HORIZON_S[Scale.PAPER]
    assert len(smoke.points) == len(paper.points)


def test_figures_2_to_4_share_the_study() -> None:
    assert fig2.study is fig3.study is fig4.study is pressure_study
