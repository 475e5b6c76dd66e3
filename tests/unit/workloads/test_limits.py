# SPDX-License-Identifier: MIT
"""Workloads that would not fit into memory are refused before it is taken."""

from __future__ import annotations

import tracemalloc

import pytest

from penstock.errors import InputError
from penstock.workloads import get_workload


@pytest.mark.parametrize(
    ("workload", "setting", "message"),
    [
        ("synthetic", "applications=100000000", "applications: 100000000 is out of"),
        ("synthetic", "horizon=1e12", "horizon: 1e+12 s give"),
        # No application has too many iterations: all of them together have.
        (
            "synthetic",
            "horizon=4e9",
            "applications (give a shorter horizon: at most 100,000,000",
        ),
        ("io-sets", "horizon=1e12", "horizon: 1e+12 s give"),
        ("striped", "applications=100000000", "applications: 100000000 is out of"),
        ("striped", "targets=100000000", "targets: 100000000 is out of range"),
        ("microbenchmark", "requests=100000000000", "requests: 100000000000 is out"),
        ("apex", "days=1e12", "days: 1000000000000.0 is out of range"),
    ],
)
def test_refused_at_once(workload: str, setting: str, message: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            get_workload(workload, [setting]).instance(1, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert message in str(caught.value)
    assert peak < 100e6
