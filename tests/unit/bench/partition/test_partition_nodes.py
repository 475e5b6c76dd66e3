# SPDX-License-Identifier: MIT
"""The scripts of the applications of ``penstock bench partition``."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from penstock.bench.partition.nodes import script_of
from penstock.bench.partition.scenes import CALL_BYTES, PartitionApp


@pytest.mark.parametrize("targets", [1, 3, 4])
def test_a_script_writes_two_files_on_each_target_in_every_phase(
    tmp_path: Path, targets: int
) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    for slot in range(4):
        (folder / str(slot)).symlink_to(tmp_path / f"target{slot % targets}")
    app = PartitionApp("a", 3, 7000, 0.25, start_s=0.0, work_s=0.01)
    script = tmp_path / "a.sh"
    script.write_text(script_of(app, 123, Path("/bin/echo"), folder))
    done = subprocess.run(
        ["/bin/sh", str(script)], capture_output=True, text=True, check=True, timeout=30
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    # The first phase begins at a given time, the second one after the work.
    assert [line[0] for line in lines] == ["123", "0"]
    for phase, line in enumerate(lines):
        expected = [3, 7000, CALL_BYTES, 250_000_000, 2 * targets]
        assert [int(word) for word in line[1:6]] == expected
        paths = [Path(word) for word in line[6:]]
        assert {path.name for path in paths} == {
            f"a-{phase}-{part}" for part in range(2 * targets)
        }
        places = [path.parent.readlink().name for path in paths]
        assert sorted(places) == sorted(2 * [f"target{k}" for k in range(targets)])


def test_targets_are_counted_when_the_first_phase_begins(tmp_path: Path) -> None:
    """A strategy may change them while the script waits."""
    folder = tmp_path / "a"
    folder.mkdir()
    for slot in range(4):
        (folder / str(slot)).symlink_to(tmp_path / f"target{slot}")
    app = PartitionApp("a", 1, 7000, 0.0, start_s=0.0, work_s=0.0, phases=1)
    script = tmp_path / "a.sh"
    start_ns = time.monotonic_ns() + 2_000_000_000
    script.write_text(script_of(app, start_ns, Path("/bin/echo"), folder))
    with subprocess.Popen(
        ["/bin/sh", str(script)], stdout=subprocess.PIPE, text=True
    ) as process:
        for slot in range(4):
            (folder / str(slot)).unlink()
            (folder / str(slot)).symlink_to(tmp_path / "target0")
        output, _ = process.communicate(timeout=30)
    assert time.monotonic_ns() > start_ns - 100_000_000
    assert output.split()[5] == "2"
