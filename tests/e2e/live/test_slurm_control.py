# SPDX-License-Identifier: MIT
"""Jobs of a real Slurm with four nodes, registered and put under control."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.slurm import NEEDS_SLURM, on_slurm
from support.users import open_for_all

pytestmark = NEEDS_SLURM

_TESTS = Path(__file__).parents[2]
_LINES = """
Prolog={scripts}/prolog
Epilog={scripts}/epilog
TaskProlog={scripts}/task-prolog
PrologFlags=Alloc
"""


def make(scripts: Path, home: str) -> subprocess.CompletedProcess[str]:
    """Make the scripts of a site."""
    command = ["serve", f"--make-slurm={scripts}", f"--folder={home}"]
    return subprocess.run(
        [sys.executable, "-m", "penstock", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_jobs_of_four_nodes(tmp_path: Path) -> None:
    open_for_all(tmp_path)
    scripts = tmp_path / "slurm-scripts"
    done = make(scripts, str(tmp_path / "%n" / "run"))
    assert done.returncode == 0, done.stderr
    output = on_slurm(
        tmp_path / "slurm",
        [sys.executable, "-m", "support.slurm_scenes", str(tmp_path)],
        settings=_LINES.format(scripts=scripts),
        environment={"PYTHONPATH": str(_TESTS)},
    )
    assert "all scenes" in output


def test_a_job_that_ended_has_its_io_in_the_admin_comment(tmp_path: Path) -> None:
    open_for_all(tmp_path)
    scripts = tmp_path / "slurm-scripts"
    assert make(scripts, str(tmp_path / "%n" / "run")).returncode == 0
    lines = _LINES.replace("/epilog", "/epilog*")
    output = on_slurm(
        tmp_path / "slurm",
        [sys.executable, "-m", "support.slurm_comment", str(tmp_path)],
        nodes=1,
        settings=lines.format(scripts=scripts),
        environment={"PYTHONPATH": str(_TESTS)},
    )
    assert "admincomment=I/O: moved 4 MiB in " in output
    assert "policy fair-share" in output


def test_jobs_of_two_nodes_are_placed_by_their_names_and_their_past(
    tmp_path: Path,
) -> None:
    open_for_all(tmp_path)
    scripts = tmp_path / "slurm-scripts"
    assert make(scripts, str(tmp_path / "%n" / "run")).returncode == 0
    slow = tmp_path / "slow-prolog"
    slow.write_text(
        f'#!/bin/sh\n[ "$SLURMD_NODENAME" = n2 ] || sleep 2\nexec {scripts}/prolog\n'
    )
    slow.chmod(0o755)
    lines = _LINES.format(scripts=scripts)
    output = on_slurm(
        tmp_path / "slurm",
        [sys.executable, "-m", "support.slurm_placement", str(tmp_path)],
        nodes=2,
        settings=lines.replace(f"Prolog={scripts}/prolog", f"Prolog={slow}"),
        environment={"PYTHONPATH": str(_TESTS)},
    )
    assert "all jobs placed" in output
