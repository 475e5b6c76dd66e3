# SPDX-License-Identifier: MIT
"""Options of the live commands: flags, environment and file make the settings."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from penstock.cli.live.options import WHERE, add_live_options, live_settings
from penstock.errors import InputError
from penstock.live.settings import settings_table


def parser_with(only: tuple[str, ...] | None = None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    add_live_options(parser, only)
    return parser


def test_every_setting_has_a_flag_with_its_meaning() -> None:
    text = " ".join(parser_with().format_help().split())
    for name, _, _, _ in settings_table():
        assert f"--{name.replace('_', '-')} " in text


def test_only_the_named_settings_have_flags() -> None:
    parser = parser_with(WHERE)
    assert parser.parse_args(["--folder", "x"]).setting_folder == "x"
    with pytest.raises(SystemExit):
        parser.parse_args(["--policy", "fcfs"])


def test_a_flag_wins_over_the_environment_and_that_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('policy = "fcfs"\nbandwidth = "1 MB/s"\ngap = "1 s"\n')
    monkeypatch.setenv("PENSTOCK_BANDWIDTH", "2 MB/s")
    monkeypatch.setenv("PENSTOCK_GAP", "2 s")
    words = ["--settings", str(file), "--gap", "3 s"]
    settings = live_settings(parser_with().parse_args(words))
    assert settings.policy == "fcfs"
    assert settings.bandwidth == 2e6
    assert settings.gap == 3.0


def test_a_wrong_value_names_its_setting() -> None:
    arguments = parser_with().parse_args(["--gap", "soon"])
    with pytest.raises(InputError, match="gap"):
        live_settings(arguments)


@pytest.mark.parametrize("quiet", [False, True])
def test_a_misspelt_variable_is_reported_once(
    quiet: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_BANDWITH", "2 MB/s")
    monkeypatch.setenv("PENSTOCK_ROOT", "/opt/penstock")
    arguments = parser_with().parse_args(["--settings", "/dev/null"])
    live_settings(argparse.Namespace(**vars(arguments), quiet=quiet))
    line = "penstock: PENSTOCK_BANDWITH is ignored; did you mean PENSTOCK_BANDWIDTH?\n"
    assert capsys.readouterr().err == ("" if quiet else line)
