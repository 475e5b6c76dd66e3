# SPDX-License-Identifier: MIT
"""The benchmark of two jobs on a mount, with fake end times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.bench.accuracy import shares
from penstock.model import Application, Platform


class FakeTestbed:
    bandwidth_bytes_per_s = 20e6
    program = Path()
    mount = SimpleNamespace(point=Path())

    @contextmanager
    def daemon(self, policy: str, _platform: Platform) -> Iterator[None]:
        assert policy == "fair-share"
        yield


@pytest.mark.parametrize(("slowdown", "reached"), [(1.0, True), (1.1, False)])
def test_both_jobs_write_for_four_seconds_at_their_shares(
    monkeypatch: pytest.MonkeyPatch, slowdown: float, reached: bool
) -> None:
    volumes: list[list[float]] = []

    def run(_place: object, jobs: Sequence[Application]) -> list[list[float]]:
        volumes.append([float(job.volume[0]) for job in jobs])
        return [[0.5, 0.5 + 4.0 * slowdown] for _ in jobs]

    monkeypatch.setattr(shares, "run_applications", run)
    testbed: Any = FakeTestbed()
    results = list(shares.measure_shares(testbed))
    assert len(results) == 8
    # Nodes 2 : 2 share 20 MB/s equally, nodes 1 : 2 as 1 : 2.
    assert volumes[0] == [40e6, 40e6]
    assert volumes[2] == pytest.approx([80e6 / 3, 160e6 / 3], abs=1)
    for measurement in results:
        assert measurement.value == pytest.approx(1.0 / slowdown, rel=1e-6)
        assert measurement.is_reached is reached
