# SPDX-License-Identifier: MIT
"""SLOs: valid bounds, applications without an SLO, and SLOs that exceed the storage."""

from __future__ import annotations

from math import inf, nan

import pytest

from penstock.errors import InputError
from penstock.qos import Slo, slo_of, unmet


@pytest.mark.parametrize("bad", [0.0, -1.0, inf, nan])
def test_bounds_are_positive_and_finite(bad: float) -> None:
    with pytest.raises(InputError, match="throughput"):
        Slo(bad, 0.1)
    with pytest.raises(InputError, match="latency"):
        Slo(1e6, bad)


def test_an_application_without_an_slo_gets_a_tenth_of_the_lowest() -> None:
    slos = {"a": Slo(40e6, 0.1), "b": Slo(20e6, 0.3)}
    assert slo_of(slos, "a") == slos["a"]
    assert slo_of(slos, "x") == Slo(2e6, 3.0)
    assert slo_of({}, "x") == slo_of({}, "y")


def test_slos_above_the_capacity_are_reported_with_both_numbers() -> None:
    slos = {"a": Slo(40 * 2.0**20, 0.1), "b": Slo(20 * 2.0**20, 0.3)}
    assert unmet(slos, 60 * 2.0**20) is None
    error = unmet(slos, 50 * 2.0**20)
    assert error is not None
    assert "60 MiB/s" in str(error)
    assert "50 MiB/s" in str(error)
    assert "reduce them by 10 MiB/s" in str(error)
