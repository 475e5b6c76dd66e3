# SPDX-License-Identifier: MIT
"""Campaigns on a real Slurm: its own daemons, in namespaces that die with the test."""

from __future__ import annotations

import re
from importlib.util import find_spec

import pytest

from support.campaigns import PIECES, Bench
from support.slurm import NEEDS_SLURM, on_slurm

pytestmark = [
    # Not importorskip: dask_jobqueue changes what Ctrl-C does when it is imported.
    pytest.mark.skipif(
        find_spec("dask_jobqueue") is None, reason="the extra `dask` is not installed"
    ),
    *NEEDS_SLURM,
]


def _on_slurm(bench: Bench, script: str) -> str:
    """Run a shell script beside a fresh Slurm of two nodes; return its output."""
    home = bench.folder.parent / "slurm"
    output = on_slurm(
        home,
        ["bash", "-c", f'cd "{bench.folder}"; {script}'],
        nodes=2,
        environment={"DASK_TEMPORARY_DIRECTORY": str(home)},
    )
    assert "Traceback" not in output, output
    return " ".join(output.split())


def test_two_workers_and_no_setting(bench: Bench, expected: bytes) -> None:
    bench.tell("die")
    output = _on_slurm(
        bench,
        """
        "$PYTHON" command.py --dask slurm --jobs 2
        echo "status $?"
        squeue -h
        """,
    )
    # The two idle nodes at the beginning, and no job left in the queue at the end.
    assert output.startswith("2 idle "), output
    assert re.search(
        r"worker tcp://192\.0\.2\.10:\d+ died while computing piece", output
    )
    assert "trying again" in output
    assert output.endswith(" status 0"), output
    assert len(list(bench.folder.glob("slurm-*.out"))) == 2
    assert len(bench.pieces()) == PIECES
    assert bench.table() == expected


def test_a_job_that_ends_is_replaced_and_ctrl_c_leaves_none(bench: Bench) -> None:
    bench.tell("slow")
    settings = bench.folder / "settings"
    settings.mkdir()
    configuration = "jobqueue: {slurm: {name: penstock-test, walltime: '00:10:00'}}"
    (settings / "jobqueue.yaml").write_text(configuration)
    output = _on_slurm(
        bench,
        """
        export DASK_CONFIG="$PWD/settings"
        export DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT=1s
        pieces() { find out -name '0*.parquet' 2>/dev/null | wc -l; }
        # A shell has what runs in the background ignore Ctrl-C.
        env --default-signal=INT "$PYTHON" command.py --dask slurm --jobs 1 &
        while [ "$(pieces)" -lt 1 ]; do sleep 0.1; done
        squeue -h -o '%j %l'
        scancel --name penstock-test
        sleep 1
        before=$(pieces)
        while [ "$(pieces)" -le "$before" ]; do sleep 0.1; done
        kill -INT %1
        wait %1
        echo "status $?"
        squeue -h
        """,
    )
    # On a slow machine the first worker takes longer than the first check.
    output = output.replace(
        "there is no Dask worker: waiting for one (Ctrl-C to stop) ", ""
    )
    # Slurm has got the name and the time limit of the configuration file.
    assert output.startswith("2 idle penstock-test 10:00 "), output
    assert f"of {PIECES} pieces are kept in out/studies/small" in output
    assert output.endswith("penstock: stopped status 130"), output
    assert len(list(bench.folder.glob("slurm-*.out"))) == 2
