# SPDX-License-Identifier: MIT
"""``penstock bench advice`` on a real mount, with one scene of a second.

How true advice is depends on the machine. The test checks that the whole loop runs:
real jobs, their archive, the advice, and the jobs again under another policy.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from penstock.bench.accuracy import advice
from penstock.bench.accuracy.advice import AdviceScene
from penstock.cli import main
from support.mounts import why_no_mounts


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.skipif(bool(why_no_mounts()), reason=why_no_mounts() or "there are mounts")
def test_jobs_are_archived_advised_and_run_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    phases = (0.1, 1.0, 0.1, 1.0, 0.1, 1.0, 0.1, 1.0, 0.1)
    scene = AdviceScene("short", "fcfs", ((4, 0.0, phases),))
    monkeypatch.setattr(advice, "_SCENES", (scene,))
    monkeypatch.setattr(advice, "_SCENARIOS", 2)
    # The path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="p") as name:
        folder = Path(name)
        command = ["bench", "advice", "--quick", f"--folder={folder}", "--json=-"]
        assert main(command) == 0
    figures = json.loads(capsys.readouterr().out)["benchmarks"]["advice"]
    names = [figure["name"] for figure in figures]
    assert [name.partition(":")[0] for name in names] == [
        "short, fcfs, with hints",
        "short, soft-deadline, with hints",
        "short",
        "short",
    ]
    assert 'the verdict "keep" is right' in names[-1]
