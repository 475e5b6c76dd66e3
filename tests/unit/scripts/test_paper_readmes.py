# SPDX-License-Identifier: MIT
"""The READMEs of the papers list what is declared, and keep measured verdicts."""

from __future__ import annotations

from pathlib import Path

import paper_readmes
import pytest
from paper_readmes import paper_folders, read_verdicts, updated

from penstock.papers import FIGURES, get_figure

FOLDERS = paper_folders()


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_a_readme_lists_the_figures_and_claims_that_are_declared(folder: Path) -> None:
    text = (folder / "README.md").read_text()
    assert text == updated(folder, {}), "run python scripts/paper_readmes.py"


def test_every_folder_of_figures_has_a_readme() -> None:
    modules = {entry.module.split(".")[2] for entry in FIGURES.values()}
    assert {folder.name for folder in FOLDERS} == modules


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_a_readme_has_a_row_per_claim(folder: Path) -> None:
    package = f"penstock.papers.{folder.name}."
    names = [name for name, e in FIGURES.items() if e.module.startswith(package)]
    claims = {(name, claim.name) for name in names for claim in get_figure(name).claims}
    verdicts = read_verdicts((folder / "README.md").read_text())
    assert set(verdicts) == claims
    assert set(verdicts.values()) <= {"yes", "no", "not measured"}


def _readme(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "README.md").write_text(text)
    return folder


EMPTY = """# Title
<!-- figures -->
<!-- end of figures -->
Between.
<!-- claims -->
<!-- end of claims -->
End.
"""


def test_tables_are_written_between_the_marks(tmp_path: Path) -> None:
    text = updated(_readme(tmp_path / "p3", EMPTY), {})
    assert text.startswith("# Title\n<!-- figures -->\n| figure |")
    assert "\nBetween.\n" in text
    assert text.endswith("<!-- end of claims -->\nEnd.\n")
    assert "| `p3-fig1a` | " in text
    assert set(read_verdicts(text).values()) == {"not measured"}


def test_measured_verdicts_replace_and_others_stay(tmp_path: Path) -> None:
    (first, second, *_) = [
        ("p3-fig1a", claim.name) for claim in get_figure("p3-fig1a").claims
    ]
    folder = _readme(tmp_path / "p3", EMPTY)
    once = updated(folder, {first: "yes", second: "no"})
    (folder / "README.md").write_text(once)
    verdicts = read_verdicts(updated(folder, {second: "yes"}))
    assert (verdicts[first], verdicts[second]) == ("yes", "yes")


def test_a_readme_without_marks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="README without <!-- figures -->"):
        updated(_readme(tmp_path / "p3", "# Title\n"), {})


def test_verdicts_of_smoke_scale_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p3-fig1a").mkdir()
    (tmp_path / "p3-fig1a" / "claims.json").write_text(
        '{"name": "p3-fig1a", "provenance": {"scale": "smoke"}, "claims": []}'
    )
    monkeypatch.setattr("sys.argv", ["paper_readmes.py", "--verdicts", str(tmp_path)])
    with pytest.raises(SystemExit, match="is not of paper scale"):
        paper_readmes.main()
