# SPDX-License-Identifier: MIT
"""``penstock bench partition`` on a real MooseFS: a short run of three settings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.bench.moosefs import FOLDER, check_requirements
from penstock.errors import InputError

SETTINGS = ["2a", "3a", "t-cpu+greedy-non-clairvoyant"]


# Most of its minute is sleep: seven runs of applications, four daemons.
@pytest.mark.slow
def test_slowdowns_are_measured_simulated_drawn_and_cleaned_up(tmp_path: Path) -> None:
    try:
        check_requirements()
    except InputError as error:
        pytest.skip(str(error))
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
