# SPDX-License-Identifier: MIT
"""Notebooks of the documentation: cells, their output, and the files for Jupyter.

The documentation build runs the cells of all pages; a cell that fails breaks it.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sphinx", reason="the notebooks are pages of Sphinx")

from notebooks import (
    CellOutput,
    code_cells,
    jupyter_notebook,
    run_cell,
    write_notebooks,
)

DOCS = Path(__file__).parents[3] / "docs"
PAGES = sorted((DOCS / "notebooks").glob("*.md"))
PAGE = """# Title

Text.

```{code-cell} python
x = 3
print(x)
```

```text
no cell
```

```{code-cell} python
x + 1
```
"""


class _Shown:
    def __init__(self, html: str | None) -> None:
        self._html = html

    def _repr_html_(self) -> str | None:
        return self._html


class _Drawn(_Shown):
    def _repr_svg_(self) -> str:
        return "<svg/>"


def test_cells_share_their_names() -> None:
    names: dict[str, Any] = {}
    first, second = code_cells(PAGE)
    assert run_cell(first, names) == CellOutput("3\n")
    assert run_cell(second, names) == CellOutput("", text="4\n")


def test_values_are_shown_as_jupyter_shows_them() -> None:
    names = {"Shown": _Shown, "Drawn": _Drawn}
    assert run_cell("Shown('<p>')", names) == CellOutput("", html="<p>")
    assert run_cell("Drawn(None)", names) == CellOutput("", html="<svg/>")
    assert run_cell("None", names) == CellOutput("")
    assert run_cell("", names) == CellOutput("")


def test_a_cell_that_fails_raises() -> None:
    with pytest.raises(ZeroDivisionError):
        run_cell("1 / 0", {})


def test_a_page_becomes_a_notebook(tmp_path: Path) -> None:
    document = json.loads(jupyter_notebook(PAGE))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    kinds = [cell["cell_type"] for cell in document["cells"]]
    assert kinds == ["markdown", "code", "markdown", "code"]
    assert document["cells"][1]["source"] == ["x = 3\n", "print(x)"]
    assert len({cell["id"] for cell in document["cells"]}) == 4
    write_notebooks(DOCS / "notebooks", tmp_path / "out")
    names = sorted(path.stem for path in (tmp_path / "out").iterdir())
    assert names == [page.stem for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_have_cells_and_offer_their_notebook(page: Path) -> None:
    text = page.read_text()
    assert len(code_cells(text)) >= 3
    for code in code_cells(text):
        ast.parse(code)
    assert f"<../_generated/notebooks/{page.stem}.ipynb>" in text
    assert f"notebooks/{page.stem}\n" in (DOCS / "index.md").read_text()


def test_a_notebook_has_no_link_to_itself() -> None:
    page = "# A\n\nAll is real.\n{download}`Get it <../x.ipynb>`.\n\nMore.\n"
    (cell,) = json.loads(jupyter_notebook(page))["cells"]
    assert "".join(cell["source"]) == "# A\n\nAll is real.\n\nMore."
