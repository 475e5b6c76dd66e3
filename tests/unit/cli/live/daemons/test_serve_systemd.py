# SPDX-License-Identifier: MIT
"""The systemd unit in ``examples``: systemd and ``penstock serve`` accept it."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cli.live.daemons.serve import setup_parser
from penstock.cli.live.options import live_settings

UNIT = (Path(__file__).parents[5] / "examples" / "penstock.service").read_text()
PROGRAM = "/usr/local/bin/penstock"
#: The drop-in that the unit's comment shows.
AGENT = "".join(
    re.findall(r"^#     (\[Service\]\n|ExecStart=.*\n)", UNIT, re.MULTILINE)
)


def verify(folder: Path) -> subprocess.CompletedProcess[str]:
    """Let systemd verify the unit in a folder."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("needs systemd-analyze")
    command = [tool, "verify", "--man=no", str(folder / "penstock.service")]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("drop_in", ["", AGENT], ids=["controller", "agent"])
def test_systemd_accepts_the_unit(drop_in: str, tmp_path: Path) -> None:
    # systemd requires that the program exists.
    (tmp_path / "penstock.service").write_text(UNIT.replace(PROGRAM, sys.executable))
    more = tmp_path / "penstock.service.d"
    more.mkdir()
    (more / "agent.conf").write_text(drop_in.replace(PROGRAM, sys.executable))
    done = verify(tmp_path)
    assert done.returncode == 0, done.stderr
    # systemd may also report errors in other units of this machine.
    assert str(tmp_path) not in done.stderr


def assignments() -> dict[str, str]:
    """Return the settings of the unit; of a list all parts, with blanks between."""
    found: dict[str, str] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", UNIT, re.MULTILINE):
        found[name] = f"{found[name]} {value}" if name in found else value
    return found


def test_the_unit_takes_away_what_the_daemon_does_not_need() -> None:
    unit = assignments()
    for name in (
        *("NoNewPrivileges", "RestrictNamespaces", "RestrictRealtime"),
        *("LockPersonality", "ProtectKernelModules", "ProtectKernelLogs"),
        "ProtectKernelTunables",
    ):
        assert unit[name] == "yes", name
    needed = "SETUID SETGID CHOWN FOWNER DAC_OVERRIDE DAC_READ_SEARCH KILL SYS_PTRACE"
    expected = {f"CAP_{name}" for name in [*needed.split(), "SYS_NICE"]}
    assert {*unit["CapabilityBoundingSet"].split()} == expected


def test_the_unit_does_not_hide_the_files_and_processes_of_users() -> None:
    """Drainers write to users' files, join cgroups, and keep journals in /dev/shm."""
    hiding = "PrivateTmp ProtectHome ProtectSystem ProtectControlGroups ProtectProc"
    others = "PrivateDevices MemoryDenyWriteExecute RestrictSUIDSGID RuntimeDirectory"
    assert not {*hiding.split(), *others.split()} & assignments().keys()


def test_penstock_serve_accepts_the_options(
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
