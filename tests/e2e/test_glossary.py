# SPDX-License-Identifier: MIT
"""The glossary has every word once, in order, with a meaning."""

import re

from support.sessions import ROOT

ROWS = re.findall(
    r"^\| ([^|]+) \| ([^|]+) \| ([^|]*)\|$",
    (ROOT / "docs" / "glossary.md").read_text(),
    flags=re.MULTILINE,
)[1:]
WORDS = [word.strip() for word, _, _ in ROWS if not word.startswith("--")]


def test_every_word_is_there_once_and_in_order() -> None:
    assert len(WORDS) > 60
    plain = [re.sub(r"[^a-z]", "", word.lower()) for word in WORDS]
    assert plain == sorted(set(plain))


def test_every_meaning_is_a_statement() -> None:
    for word, meaning, _ in ROWS:
        assert meaning.strip()[0] in "$" or meaning.strip()[0].isupper(), word
        assert meaning.strip().endswith("."), word


def test_the_words_of_the_code_are_there() -> None:
    for word in ("cap", "grant", "SLO", "gap", "moved", "held up", "job", "operation"):
        assert word in WORDS
