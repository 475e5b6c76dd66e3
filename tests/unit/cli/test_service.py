# SPDX-License-Identifier: MIT
"""The unit of systemd in ``examples``: systemd takes it, and penstock its options."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.live.options import live_settings
from penstock.cli.live.serve import setup_parser

UNIT = (Path(__file__).parents[3] / "examples" / "penstock.service").read_text()
PROGRAM = "/usr/local/bin/penstock"
#: The drop-in that the unit's comment shows.
AGENT = "".join(
    re.findall(r"^#     (\[Service\]\n|ExecStart=.*\n)", UNIT, re.MULTILINE)
)


def verified(folder: Path) -> subprocess.CompletedProcess[str]:
    """Return what systemd says of the unit in a folder."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("needs systemd-analyze")
    command = [tool, "verify", "--man=no", str(folder / "penstock.service")]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("drop_in", ["", AGENT], ids=["controller", "agent"])
def test_systemd_takes_the_unit(drop_in: str, tmp_path: Path) -> None:
    # It wants programs that are there.
    (tmp_path / "penstock.service").write_text(UNIT.replace(PROGRAM, sys.executable))
    more = tmp_path / "penstock.service.d"
    more.mkdir()
    (more / "agent.conf").write_text(drop_in.replace(PROGRAM, sys.executable))
    done = verified(tmp_path)
    assert done.returncode == 0, done.stderr
    # Units of the machine may have faults of their own.
    assert str(tmp_path) not in done.stderr


def test_penstock_takes_the_options(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    lines = re.findall(
        rf"^(?:#     )?ExecStart={PROGRAM} serve (.+)$", UNIT, re.MULTILINE
    )
    parser = argparse.ArgumentParser(exit_on_error=False)
    setup_parser(parser)
    agent, controller = (parser.parse_args(line.split()) for line in lines)
    assert controller.settings == "/etc/penstock/penstock.toml"
    settings = live_settings(agent)
    assert (settings.users, settings.keys) == ("all", "/etc/penstock/keys")
    assert settings.join == "tcp://controller:7400"
