# SPDX-License-Identifier: MIT
"""The figures of a scene, from times written by hand."""

from __future__ import annotations

import pytest

from penstock.bench.slo.cluster.results import figures_of, result_of
from penstock.bench.slo.cluster.scenes import (
    SIZE_BYTES,
    AppGroup,
    ClusterScene,
    Promise,
)
from penstock.bench.slo.windows import AnsweredRequest

SCENE = ClusterScene(
    "scene",
    "alone",
    {"a": Promise(0.6, 0.1), "b": Promise(0.2, 0.3)},
    (AppGroup("a", 1, 4), AppGroup("b", 1, 4)),
    *(1.0, 3.0),
)
ANSWERS = {
    "a": [AnsweredRequest(0.5, 0.9)]  # before the measured time
    + [AnsweredRequest(1.0 + n / 10, 1.2 + n / 10) for n in range(6)]
    + [AnsweredRequest(2.5, 3.1)],  # after it
    "b": [AnsweredRequest(0.8, 1.5), AnsweredRequest(2.0, 2.1)],
}


def test_only_answers_in_the_measured_time_count() -> None:
    run = figures_of(SCENE, 10.0 * SIZE_BYTES, ANSWERS)
    assert run.applications["a"].bytes_per_s == pytest.approx(3 * SIZE_BYTES)
    assert run.applications["a"].p95_s == pytest.approx(0.2)
    assert run.applications["b"].bytes_per_s == pytest.approx(SIZE_BYTES)
    assert run.applications["b"].p95_s == pytest.approx(0.7)
    assert run.share("a") == pytest.approx(0.75)
    assert [window.groups["a"].answered for window in run.windows] == [6, 0]
    assert not any(window.overloaded for window in run.windows)


def test_an_application_without_answers_has_no_p95() -> None:
    run = figures_of(SCENE, 10.0 * SIZE_BYTES, {"a": [], "b": []})
    assert run.applications["a"].p95_s is None
    assert run.share("a") == 0.0


def test_promises_are_shares_of_the_capacity() -> None:
    result = result_of(SCENE, 1e6, ANSWERS, [ANSWERS])
    assert result.promised("a") == pytest.approx(0.6e6)
    assert result.agreed_share("a") == pytest.approx(0.75)
    assert result.live == result.simulated


def test_the_median_of_the_simulations_counts() -> None:
    def run(count: int, response_s: float) -> dict[str, list[AnsweredRequest]]:
        return {"a": [AnsweredRequest(2.0 - response_s, 2.0)] * count, "b": []}

    runs = [run(2, 0.5), run(6, 0.1), run(4, 0.9)]
    result = result_of(SCENE, 1e6, ANSWERS, runs)
    simulated = result.simulated.applications
    assert simulated["a"].bytes_per_s == pytest.approx(2 * SIZE_BYTES)
    assert simulated["a"].p95_s == pytest.approx(0.5)
    assert simulated["b"].p95_s is None
    assert [w.groups["a"].answered for w in result.simulated.windows] == [0, 2]
