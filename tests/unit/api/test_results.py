# SPDX-License-Identifier: MIT
"""Results in a notebook: HTML without markup of names, figures, and the best policy."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.cli import main
from penstock.model import write_instance
from unit.samples import app, make, pair, steady_three


def test_the_frame_has_all_objectives() -> None:
    result = ps.compare(pair(), ["fcfs"])
    (row,) = result.frame().iter_rows(named=True)
    (expected,) = result.rows
    assert list(row) == [
        *("instance", "policy", "min_yield", "efficiency", "utilization", "stretch"),
        *("bound", "set_utilization", "io_slowdown", "pressure"),
    ]
    for name in ("set_utilization", "io_slowdown", "pressure"):
        assert row[name] == expected[name]


def test_names_are_escaped() -> None:
    instance = make(app("<b>", ("work", 1.0), ("io", 2.0), ("work", 20.0)))
    assert "&lt;b&gt;" in ps.simulate(instance, "fcfs")._repr_html_()


def test_a_comparison_lists_the_best_policy_first() -> None:
    result = ps.compare(steady_three(), ["fcfs", "fair-share", "greedy-yield"])
    reached = dict(result.frame().select("policy", "min_yield").iter_rows())
    assert len(set(reached.values())) == 3
    page = result._repr_html_()
    best_first = sorted(reached, key=lambda policy: -reached[policy])
    assert sorted(reached, key=page.index) == best_first
    assert result.recommended == best_first[0]


def test_the_recommended_policy_is_preferred() -> None:
    assert ps.compare(pair(), ["fcfs", "soft-deadline"]).recommended == "soft-deadline"


def test_figures_are_drawn() -> None:
    result = ps.compare(pair(), ["fcfs", "fair-share"])
    assert len(result.timeline().axes) == 2
    assert result.plot().axes
    assert ps.simulate(pair(), "fcfs").timeline().axes


def test_advice_in_a_notebook_is_its_words() -> None:
    advice = ps.advise(pair(), scenarios=2)
    page = advice._repr_html_()
    assert page.count("<p>") == 1 + len(advice.reasons)
    assert str(advice).splitlines()[1 : 1 + len(advice.reasons)] == advice.reasons
    assert repr(advice) == f"<AdviceResult {advice.verdict}: {advice.policy}>"


def test_a_printed_result_is_the_text_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "pair.json")
    write_instance(pair(), path)
    policies = ["fcfs", "soft-deadline"]
    words = ["--policy", "fcfs", "--policy", "soft-deadline"]
    assert main(["compare", path, *words]) == 0
    result = ps.compare(pair(), policies)
    assert str(result) == capsys.readouterr().out
    assert repr(result) == (
        "<ComparisonResult 2 policies, 1 instance, recommended: soft-deadline>"
    )
    small = ["--instances", "2", "--set", "horizon=9000"]
    assert main(["compare", *small, *words]) == 0
    drawn = ps.compare(2, policies, horizon=9000)
    assert str(drawn) == capsys.readouterr().out
    assert main(["advise", path, "--now", "fcfs", "--scenarios", "2"]) == 0
    advice = ps.advise(pair(), now="fcfs", scenarios=2)
    assert str(advice) == capsys.readouterr().out


def test_a_printed_simulation_lists_yields_and_ends() -> None:
    result = ps.simulate(make(app("a", ("work", 2.0))), "fcfs")
    assert str(result).splitlines() == [
        "fcfs: MinYield 1.0000, Efficiency 1.0000",
        "application   yield",
        "a            1.0000",
        "",
        "a ended at 2 s, inside the window",
    ]
    assert repr(result) == (
        "<SimulationResult fcfs: MinYield 1.0000, Efficiency 1.0000>"
    )
    assert "<p>a ended at 2 s, inside the window</p>" in result._repr_html_()


def test_a_comparison_shows_the_bound_and_the_recommendation() -> None:
    page = ps.compare([pair(), steady_three()], ["fcfs", "soft-deadline"])._repr_html_()
    assert page.startswith("<p>Mean of 2 instances</p><")
    assert "<td>bound</td>" in page
    assert "<td>soft-deadline (recommended)</td>" in page
    page = ps.compare(pair(), ["fcfs"])._repr_html_()
    assert "<td>fcfs (best)</td>" in page
    assert "recommended" not in page


def test_a_simulation_shows_its_objectives() -> None:
    result = ps.simulate(pair(), "fcfs")
    assert f"MinYield {result.min_yield:.4f}, Efficiency" in result._repr_html_()


def test_imported_jobs_are_a_table() -> None:
    source = Path(__file__).parents[3] / "examples" / "logs" / "sacct.txt"
    page = ps.import_logs(str(source), bandwidth="10 GB/s")._repr_html_()
    assert "<th>operations</th>" in page
    assert "accounting" in page
