# SPDX-License-Identifier: MIT
"""The settings file is one that `penstock serve` accepts."""

from __future__ import annotations

from pathlib import Path

from penstock.advice.settings import settings_text
from penstock.live.settings import load_settings
from unit.samples import pair

ADVICE = {
    "summary": "Switch.",
    "policy": "soft-deadline:weight=2",
    "provenance": {"version": "1", "command": "penstock advise 'a b.json'"},
}


def test_the_settings_are_accepted_and_mean_what_was_advised(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text(settings_text(ADVICE, pair()))
    settings = load_settings({}, {}, str(file))
    assert settings.policy == ADVICE["policy"]
    assert settings.bandwidth == pair().platform.bandwidth
    assert settings.mode == "dry-run"


def test_a_name_with_a_line_break_stays_in_the_comment(tmp_path: Path) -> None:
    facts = {"version": "1", "command": "penstock advise 'a\nmode = 1'"}
    file = tmp_path / "site.toml"
    file.write_text(settings_text(ADVICE | {"provenance": facts}, pair()))
    assert load_settings({}, {}, str(file)).mode == "dry-run"
