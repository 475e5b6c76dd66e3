# SPDX-License-Identifier: MIT
"""Short runs on a real MooseFS: ``bench partition``, and ``bench delta --cluster``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.bench.moosefs import FOLDER, check_requirements
from penstock.bench.partition import delta
from penstock.cli import main
from penstock.errors import InputError

SETTINGS = ["2a", "3a", "t-cpu+greedy-non-clairvoyant"]


@pytest.fixture(autouse=True)
def moosefs() -> None:
    """Skip a test if a MooseFS cannot be started here."""
    try:
        check_requirements()
    except InputError as error:
        pytest.skip(str(error))


# Most of its minute is sleep: seven runs of applications, four daemons.
@pytest.mark.slow
def test_slowdowns_are_measured_simulated_drawn_and_cleaned_up(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock", "bench", "partition", "--quick"]
    options = ["--policies", *SETTINGS, f"--output={tmp_path}/out", "--json=-"]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, check=False, timeout=400
    )
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)["benchmarks"]["partition"]
    assert all(m["value"] > 0.0 for m in measured[:4])
    rows = json.loads((tmp_path / "out" / "partition.json").read_text())["slowdowns"]
    assert [row["setting"] for row in rows] == ["none", *SETTINGS]
    for row in rows:
        assert set(row["live"]) == set(row["simulated"]) == {"micro", "ior"}
        assert all(slowdown > 0.0 for slowdown in row["live"].values())
    assert (tmp_path / "out" / "partition.svg").stat().st_size > 5_000
    assert not (FOLDER / "client1").exists()


@pytest.mark.slow
def test_a_delta_graph_is_measured_on_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(delta, "_OFFSETS_S", (0.5,))
    monkeypatch.setattr(delta, "_SIZE_BYTES", 2_000_000)
    output, table = tmp_path / "out", tmp_path / "figures.json"
    flags = ["--policies", "2a", f"--output={output}", f"--json={table}"]
    # Whether the goals are reached depends on the machine.
    assert main(["bench", "delta", "--cluster", *flags]) in {0, 1}
    capsys.readouterr()
    none, staged = json.loads(table.read_text())["benchmarks"]["delta"]
    assert none["name"].startswith("none: largest difference")
    assert all(value > 0.5 for value in staged["parts"].values())
    graphs = json.loads((output / "delta.json").read_text())["graphs"]
    assert [graphs[name]["live"][0]["offset"] for name in ("none", "2a")] == [0.5, 0.5]
    assert (output / "delta.svg").stat().st_size > 5_000
    assert not (FOLDER / "client1").exists()
