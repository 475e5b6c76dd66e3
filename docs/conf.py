# SPDX-License-Identifier: MIT
"""Sphinx: Markdown pages, docstrings, and files that are made from the code."""

import json
import logging
import sys
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from penstock.cli.simulation.schema import FORMATS, schema_of

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
from notebooks import CodeCell, write_notebooks

# The reader of Darshan logs switches on the messages of all libraries.
logging.getLogger("fontTools").setLevel(logging.WARNING)

project = "penstock"
author = "The penstock developers"
copyright = "2026, the penstock developers"
version = release = installed_version("penstock")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_generated"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["notebooks.css"]
html_title = f"penstock {version}"
autodoc_member_order = "bysource"
add_module_names = False
autodoc_typehints = "none"
default_role = "code"
nitpicky = False


def write_schemas(app: Any) -> None:
    """Write the JSON Schema of every file format, which the pages offer."""
    folder = Path(app.srcdir) / "_generated" / "schemas"
    folder.mkdir(parents=True, exist_ok=True)
    for name in FORMATS:
        text = json.dumps(schema_of(name), indent=2)
        (folder / f"{name}.json").write_text(f"{text}\n")


def write_downloads(app: Any) -> None:
    """Write the notebooks of the documentation for Jupyter."""
    folder = Path(app.srcdir)
    write_notebooks(folder / "notebooks", folder / "_generated" / "notebooks")


def setup(app: Any) -> None:
    app.add_directive("code-cell", CodeCell)
    app.connect("builder-inited", write_schemas)
    app.connect("builder-inited", write_downloads)
