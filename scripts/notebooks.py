# SPDX-License-Identifier: MIT
"""Notebooks of the documentation: run their cells, and write them for Jupyter.

A notebook is a page in Markdown (MyST) whose cells are blocks ``{code-cell} python``.
The directive `CodeCell` runs the cells of a page one after the other while Sphinx reads
it, and shows their real output: printed text, and the value of the last expression as
Jupyter shows it. A cell that fails is a warning, which fails the build. No kernel and
no other package is needed.
"""

from __future__ import annotations

import ast
import io
import json
import re
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

__all__ = [
    "CellOutput",
    "CodeCell",
    "code_cells",
    "jupyter_notebook",
    "run_cell",
    "write_notebooks",
]

#: The link from a page to its notebook: the notebook does not need it.
_DOWNLOAD: Final = re.compile(r"\s*\{download\}`[^`]*`\.")
_CELL: Final = re.compile(r"^```\{code-cell\} python\n(.*?)^```$", re.S | re.M)
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class CellOutput:
    """What a cell prints, and its last value as text or as HTML."""

    printed: str
    text: str = ""
    html: str = ""


def code_cells(page: str) -> list[str]:
    """Return the code of the cells of a page."""
    return _CELL.findall(page)


def run_cell(code: str, namespace: dict[str, Any]) -> CellOutput:
    """Run one cell; the names that it defines are kept in `namespace`."""
    tree = ast.parse(code)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body[-1].value)
        tree.body.pop()
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), namespace)  # noqa: S102 - our own pages
        value = eval(compile(last, "<cell>", "eval"), namespace) if last else None  # noqa: S307
    if value is None:
        return CellOutput(printed.getvalue())
    for method in ("_repr_html_", "_repr_svg_"):
        # Figures of matplotlib have a `_repr_html_` that returns None.
        if html := getattr(value, method, lambda: None)():
            return CellOutput(printed.getvalue(), html=html)
    return CellOutput(printed.getvalue(), text=f"{value!r}\n")


def jupyter_notebook(page: str) -> str:
    """Return a page as a notebook for Jupyter (format 4.5), without output."""
    # `re.split` with one group: texts at even places, the code of cells at odd ones.
    parts = _CELL.split(_DOWNLOAD.sub("", page))
    cells = []
    for number, part in enumerate(parts):
        if not part.strip():
            continue
        cell: dict[str, Any] = {
            "id": f"cell-{number}",
            "metadata": {},
            "source": part.strip("\n").splitlines(keepends=True),
        }
        if number % 2:
            cell |= {"cell_type": "code", "execution_count": None, "outputs": []}
        else:
            cell |= {"cell_type": "markdown"}
        cells.append(cell)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps(
        {
            "cells": cells,
            "metadata": {"kernelspec": kernel},
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        indent=1,
    )


class CodeCell(SphinxDirective):
    """The directive ``code-cell``: runs its content and shows the output."""

    has_content = True
    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Return the code and its output."""
        code = "\n".join(self.content)
        shown: list[nodes.Node] = [nodes.literal_block(code, code, language="python")]
        data: Any = self.env.temp_data
        namespace = data.setdefault("penstock-notebook", {"__name__": "__main__"})
        try:
            output = run_cell(f"{code}\n", namespace)
        except Exception as error:  # noqa: BLE001 - a cell may raise anything
            where = (self.env.docname, self.lineno)
            _LOG.warning("cell failed: %r", error, location=where)
            return shown
        shown += [
            nodes.literal_block(text, text, language="text", classes=["output"])
            for text in (output.printed, output.text)
            if text
        ]
        if output.html:
            html = f'<div class="cell-output">{output.html}</div>'
            shown.append(nodes.raw("", html, format="html"))
        return shown


def write_notebooks(source: Path, target: Path) -> None:
    """Write every page in `source` as a notebook for Jupyter into `target`."""
    target.mkdir(parents=True, exist_ok=True)
    for page in sorted(source.glob("*.md")):
        text = jupyter_notebook(page.read_text())
        (target / f"{page.stem}.ipynb").write_text(f"{text}\n")
