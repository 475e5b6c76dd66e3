# SPDX-License-Identifier: MIT
"""A pair of figures: two studies, one drawing, the same claims."""

from __future__ import annotations

import polars as pl
import pytest
from matplotlib.figure import Figure

from penstock.experiments.claims import Tables, Verdict, case
from penstock.experiments.placement_study import PlacementStudy
from penstock.experiments.reproduction import Scale
from penstock.papers import FIGURES
from penstock.papers.catalog import FigureEntry
from penstock.papers.p2 import allocation, placement
from penstock.papers.p2.pairs import FigurePair, figure_pair
from penstock.papers.p2.study import GENERATED

TABLES = Tables(pl.DataFrame({"ratio": [1.0, 2.0]}), pl.DataFrame())
PAIRS = {
    ("p2-fig5", "p2-fig14"): placement.slowdown,
    ("p2-fig6", "p2-fig15"): placement.balance,
    ("p2-fig7", "p2-fig16"): placement.balance_by_load,
    ("p2-fig8", "p2-fig17"): allocation.slowdown,
    ("p2-fig9", "p2-fig18"): allocation.idletime,
}


def _draw(_tables: Tables, note: str) -> Figure:
    drawn = Figure()
    drawn.suptitle(note)
    return drawn


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> FigurePair:
    """Return a pair of figures that is not in the paper."""
    for name in ("p0-fig1", "p0-fig2"):
        monkeypatch.setitem(FIGURES, name, FigureEntry("a.module", name, "Title"))
    return figure_pair("p0-fig1", "p0-fig2", _draw, lambda tables: tables.rows.head(1))


def _names(pair: FigurePair) -> list[list[str]]:
    return [[claim.name for claim in f.claims] for f in (pair.io_nodes, pair.osts)]


def test_each_figure_has_the_study_of_its_profiles(pair: FigurePair) -> None:
    studies = [f.study(Scale.SMOKE) for f in (pair.io_nodes, pair.osts)]
    assert [s.name for s in studies if isinstance(s, PlacementStudy)] == [
        "p2-io-nodes",
        "p2-osts",
    ]


def test_only_the_drawing_of_osts_says_that_profiles_are_generated(
    pair: FigurePair,
) -> None:
    drawn = [f.draw(TABLES) for f in (pair.io_nodes, pair.osts)]
    assert [d.get_suptitle() for d in drawn] == ["", GENERATED]


def test_both_keep_the_same_table(pair: FigurePair) -> None:
    assert pair.io_nodes.summary(TABLES).height == 1
    assert pair.osts.summary(TABLES).height == 1


def test_a_claim_is_declared_for_both_with_the_source_of_each(
    pair: FigurePair,
) -> None:
    @pair.claim("It holds.", reason="because")
    def _it_holds(_tables: Tables) -> Verdict:
        return Verdict(holds=True, numbers={})

    assert _it_holds(TABLES).holds
    assert _names(pair) == [["it-holds"], ["it-holds"]]
    first, second = pair.io_nodes.claims[0], pair.osts.claims[0]
    assert (first.source, second.source) == ("p0-fig1", "p0-fig2")
    assert first.reason == second.reason == "because"


def test_a_claim_may_have_its_own_name_and_source(pair: FigurePair) -> None:
    pair.claim("It holds.", name="other", source="section 8")(
        lambda _tables: Verdict(holds=True, numbers={})
    )
    assert _names(pair) == [["other"], ["other"]]
    assert {f.claims[0].source for f in (pair.io_nodes, pair.osts)} == {"section 8"}


def test_cases_are_declared_for_both_with_their_arguments(pair: FigurePair) -> None:
    @pair.claim_cases(case("one", "One.", number=1), case("two", "Two.", number=2))
    def _check(_tables: Tables, number: int) -> Verdict:
        return Verdict(number == 1, {"number": number})

    assert _names(pair) == [["one", "two"], ["one", "two"]]
    verdicts = [claim.check(TABLES).holds for claim in pair.osts.claims]
    assert verdicts == [True, False]


@pytest.mark.parametrize(("names", "declared"), PAIRS.items())
def test_osts_have_the_claims_of_the_io_nodes(
    names: tuple[str, str], declared: FigurePair
) -> None:
    assert (declared.io_nodes.name, declared.osts.name) == names
    ours, twins = declared.io_nodes.claims, declared.osts.claims
    assert [c.sentence for c in ours] == [c.sentence for c in twins]
    assert [c.check for c in ours if not hasattr(c.check, "func")] == [
        c.check for c in twins if not hasattr(c.check, "func")
    ]
