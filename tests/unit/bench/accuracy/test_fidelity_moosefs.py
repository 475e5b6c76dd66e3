# SPDX-License-Identifier: MIT
"""The jobs of the fidelity benchmark on MooseFS, as an instance and as scripts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from penstock.bench import BenchSettings, moosefs
from penstock.bench.accuracy import fidelity_moosefs
from penstock.bench.accuracy.fidelity_moosefs import (
    _COMMANDS,
    _JOBS,
    _POLICIES,
    _Job,
    _script,
    _yields,
    instance_with,
    measure,
)
from penstock.errors import InputError
from penstock.sim import simulate

START_UPS = {"dd": 0.01, "python": 0.03}


def test_start_up_times_are_work() -> None:
    plain, late = instance_with(dict.fromkeys(START_UPS, 0.0)), instance_with(START_UPS)
    for job, app, later in zip(
        _JOBS, plain.applications, late.applications, strict=True
    ):
        count = len(job.works_s)
        assert app.volume.tolist() == count * [float(job.volume_bytes)]
        # The last entry is the work after the last operation.
        assert later.work[:count] - app.work[:count] == pytest.approx(
            START_UPS[job.program]
        )


def test_jobs_are_released_one_after_the_other() -> None:
    """Live jobs are numbered by arrival: ties are broken as in a simulation."""
    releases = [job.release_s for job in _JOBS]
    assert releases == sorted(set(releases))
    assert {job.program for job in _JOBS} == set(_COMMANDS)


@pytest.mark.parametrize("policy", _POLICIES)
def test_yields_hardly_depend_on_small_delays(policy: str) -> None:
    exact = simulate(instance_with(START_UPS), policy, steady=False).yields
    draw = np.random.default_rng(1)
    for _ in range(10):
        delays = {name: t + draw.uniform(0.0, 0.03) for name, t in START_UPS.items()}
        late = simulate(instance_with(delays), policy, steady=False).yields
        assert late == pytest.approx(exact, rel=0.05)


def test_a_yield_is_the_time_alone_divided_by_the_time() -> None:
    instance = instance_with(START_UPS)
    run = simulate(instance, "fair-share", steady=False)
    ends = [
        app.release + (app.work.sum() + app.volume.sum() / cap) / y
        for (app, cap), y in zip(instance.with_caps(), run.yields, strict=True)
    ]
    assert _yields(instance, ends) == pytest.approx(run.yields)


@pytest.mark.parametrize("program", _COMMANDS)
@pytest.mark.parametrize("volume_bytes", [0, 3_000_001])
def test_a_script_writes_its_volume(
    tmp_path: Path, program: str, volume_bytes: int
) -> None:
    job = _Job("job", program, 0.0, volume_bytes, (0.0, 0.001))
    done = subprocess.run(
        ["/bin/sh", "-c", _script(tmp_path, job)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "job").stat().st_size == volume_bytes


def test_what_is_missing_is_said_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(moosefs, "_TOOLS", ("mfsnothing",))
    with pytest.raises(InputError, match="not installed: mfsnothing"):
        next(measure(BenchSettings(1, tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_policy_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(fidelity_moosefs, "check_requirements", lambda: None)
    with pytest.raises(InputError, match="fair-shar"):
        next(measure(BenchSettings(1, tmp_path, policies=("fair-shar",))))
    assert list(tmp_path.iterdir()) == []
