# SPDX-License-Identifier: MIT
"""The catalogue of figures: complete, without repetition, and cheap to import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.errors import UnknownNameError
from penstock.papers import FIGURES, get_figure
from penstock.papers.catalog import REFERENCES, FigureEntry, figure_entries

#: Imports that take longer than the list of figures may.
HEAVY = ("matplotlib", "numpy", "polars", "numba", "scipy", "penstock.experiments")


def test_the_source_of_a_figure_begins_with_its_paper() -> None:
    rows = {"p0-fig1": ("module", "section 1, Figure 1", "Title")}
    assert figure_entries("papers.p0", "the paper", rows) == {
        "p0-fig1": FigureEntry(
            "papers.p0.module", "the paper, section 1, Figure 1", "Title", "the paper"
        )
    }
    (entry,) = figure_entries("papers.beyond", "", rows).values()
    assert entry.source == "section 1, Figure 1"


def test_no_two_figures_share_a_title_or_a_source_in_a_paper() -> None:
    titles = [entry.title for entry in FIGURES.values()]
    assert len(set(titles)) == len(titles)
    sources = [e.source for e in FIGURES.values() if ".beyond." not in e.module]
    assert len(set(sources)) == len(sources)


def test_the_catalogue_imports_nothing_heavy() -> None:
    code = "import sys, penstock.papers; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = set(done.stdout.split())
    assert "penstock.papers.beyond" in loaded
    assert loaded.isdisjoint(HEAVY)


#: Appendix B of target allocation shows figures and says nothing about them.
WITHOUT_CLAIMS = {f"p2-fig{number}" for number in range(14, 19)}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_declared_with_title_source_and_claims(name: str) -> None:
    figure = get_figure(name)
    entry = FIGURES[name]
    assert (figure.name, figure.title, figure.source) == (
        name,
        entry.title,
        entry.source,
    )
    names = [claim.name for claim in figure.claims]
    assert len(set(names)) == len(names)
    assert bool(names) != (name in WITHOUT_CLAIMS)


def test_an_unknown_figure_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="p1-fig22") as error:
        get_figure("p1-fig22")
    assert "p1-fig2" in str(error.value)


def test_every_paper_has_the_reference_of_the_list_of_papers() -> None:
    page = (Path(__file__).parents[3] / "docs" / "papers.md").read_text()
    assert {entry.paper for entry in FIGURES.values()} == {*REFERENCES, ""}
    for name, reference in REFERENCES.items():
        authors, title = reference.split(": ", 1)
        row = next(r for r in page.splitlines() if r.startswith(f"| {name} | "))
        assert authors in row
        place = title.rsplit(". ", 1)
        assert all(part in row for part in place), place
