# SPDX-License-Identifier: MIT
"""Markdown: tables, and blocks between marks."""

from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.experiments.output.markdown import markdown_table, replaced_block


def test_a_table_has_a_rule_below_its_titles() -> None:
    assert markdown_table(("a", "b"), [("1", "2")]) == (
        "| a | b |\n| --- | --- |\n| 1 | 2 |"
    )
    right = markdown_table(("a", "b", "c"), [], right=True)
    assert right == "| a | b | c |\n| --- | ---: | ---: |"


def test_a_bar_in_a_cell_is_escaped() -> None:
    assert markdown_table(("|x|",), []).startswith("| \\|x\\| |")


def test_a_block_is_replaced_and_the_rest_stays() -> None:
    text = "a\n<!-- t -->\nold\n<!-- end of t -->\nb\n"
    expected = "a\n<!-- t -->\nnew\n<!-- end of t -->\nb\n"
    assert replaced_block(text, "t", "new") == expected


@pytest.mark.parametrize("text", ["", "<!-- t -->", "<!-- end of t --> <!-- t -->"])
def test_a_block_needs_both_marks_in_their_order(text: str) -> None:
    with pytest.raises(InputError, match="no <!-- t --> and <!-- end of t -->"):
        replaced_block(text, "t", "new")
