# SPDX-License-Identifier: MIT
"""Sphinx: Markdown pages, and the docstrings of the policies and of the engine."""

from importlib.metadata import version as installed_version

project = "penstock"
author = "The penstock developers"
copyright = "2026, the penstock developers"
version = release = installed_version("penstock")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"penstock {version}"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
default_role = "code"
nitpicky = False
