# SPDX-License-Identifier: MIT
"""The scripts of the applications of ``penstock bench partition``."""

from __future__ import annotations

from pathlib import Path

from penstock.bench.partition.nodes import script_of
from penstock.bench.partition.scenes import PartitionApp


def test_a_script_starts_the_program_once_per_phase() -> None:
    app = PartitionApp("a", 3, 7000, 0.25, start_s=0.0, work_s=1.5)
    lines = script_of(app, 123, Path("/bin/program"), Path("/jobs/a")).splitlines()
    assert lines[:2] == ["#!/bin/sh", "set -e"]
    first, sleep, second = lines[2:]
    assert first.startswith("/bin/program 123 3 7000 250000000 8 /jobs/a/0/a-0-0 ")
    # Parts 0 to 7 are spread over four slots.
    assert first.endswith(" /jobs/a/3/a-0-7")
    assert sleep == "sleep 1.5"
    # It begins at once, and writes other files.
    assert second.startswith("/bin/program 0 3 7000 250000000 8 /jobs/a/0/a-1-0 ")
