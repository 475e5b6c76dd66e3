# SPDX-License-Identifier: MIT
"""Forecasts agree with simulations, and with closed forms."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from penstock.errors import InputError
from penstock.sim import forecast as forecast_module
from penstock.sim.buffers.model import Buffer, Storage
from penstock.sim.forecast import BufferForecast, live_forecast
from penstock.staging import ApplicationStatus, Situation

STORAGE = Storage(100.0, 4)
FORECAST = BufferForecast(STORAGE, Buffer(1e6))
#: Began 2 s ago, and is alone for 10 s.
A = ApplicationStatus(
    "A",
    phase_began_s=8.0,
    phase_bytes=1000.0,
    mean_request_bytes=100.0,
    dedicated_bytes_per_s=100.0,
    written_bytes=200.0,
)
B = replace(A, name="B", phase_began_s=10.0, written_bytes=0.0)
IDLE = replace(A, name="idle", phase_began_s=inf, written_bytes=0.0)


def _slowdowns(
    *applications: ApplicationStatus, strategy: str = "none", horizon_s: float = 60.0
) -> dict[str, float]:
    situation = Situation(10.0, 4, applications)
    return dict(FORECAST(situation, strategy, horizon_s))


def test_alone_there_is_no_slowdown() -> None:
    assert _slowdowns(A) == {"A": pytest.approx(1.0)}


def test_two_share_until_the_first_is_done() -> None:
    # A has 800 bytes left at half the speed: 16 s after the 2 s that are over.
    both = _slowdowns(A, B)
    assert both["A"] == pytest.approx(1.8)
    assert both["B"] == pytest.approx(1.8)


def test_the_second_waits_under_2a_and_the_first_under_1a() -> None:
    second = _slowdowns(A, B, strategy="2a")
    assert second["A"] == pytest.approx(1.0)
    assert second["B"] == pytest.approx(1.8, abs=1e-3)
    first = _slowdowns(A, B, strategy="1a")
    assert first["B"] == pytest.approx(1.0)
    assert first["A"] == pytest.approx(2.0, abs=1e-3)


@pytest.mark.parametrize(
    ("volume", "request_bytes"),
    [
        (inf, 100.0),
        (inf, 0.0),
        (1e300, 100.0),
        (1e300, 1e-200),
        (1e-300, 100.0),
        (5e-324, 0.0),
    ],
)
def test_no_announced_volume_makes_the_forecast_of_others_fail(
    volume: float, request_bytes: float
) -> None:
    odd = replace(
        B, phase_bytes=volume, mean_request_bytes=request_bytes, work_s=5e-324
    )
    for strategy in ("none", "1a", "2a"):
        assert _slowdowns(A, odd, strategy=strategy)["A"] >= 1.0


def test_staged_data_must_be_drained_too() -> None:
    # All is written, and 500 bytes wait in the buffer.
    closing = replace(A, written_bytes=1000.0, staged_bytes=500.0, is_blocked=True)
    assert _slowdowns(closing)["A"] == pytest.approx(0.7)


def test_a_request_under_way_goes_on() -> None:
    whole = replace(
        A, mean_request_bytes=1000.0, under_way_bytes=800.0, open_targets=(0, 1, 2, 3)
    )
    under_1a = _slowdowns(whole, B, strategy="1a")
    assert under_1a == pytest.approx(_slowdowns(whole, B), rel=1e-3)


def test_files_that_stay_are_written_where_they_are() -> None:
    fixed = replace(A, redirects=False, open_targets=(2, 3))
    # 3b gives A the first two targets, but its files are on those of B.
    both = _slowdowns(fixed, B, strategy="3b")
    free = _slowdowns(A, B, strategy="3b")
    assert free["A"] == pytest.approx(1.8)
    assert both["A"] > 2.5
    assert both["B"] > free["B"]


def test_pauses_are_kept_when_requests_are_merged() -> None:
    many = replace(A, written_bytes=0.0, phase_began_s=10.0, mean_request_bytes=1.0)
    paused = replace(many, mean_pause_s=0.01)
    assert _slowdowns(paused)["A"] == pytest.approx(1.0)


@pytest.mark.parametrize("count", [5, 8])
def test_pauses_are_kept_when_many_applications_return(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More than 16 phases in total. Under 1a all wait in the pauses of one: it is worst.
    returning = [
        replace(
            IDLE,
            name=f"app{number}",
            phase_bytes=100.0,
            mean_request_bytes=10.0,
            mean_pause_s=0.2,
            work_s=3.0,
            next_phase_s=10.0 + 0.3 * number,
        )
        for number in range(count)
    ]

    def means() -> dict[str, float]:
        strategies = ("none", "1a", "1b", "2a", "2b")
        slowdowns = {s: _slowdowns(*returning, strategy=s) for s in strategies}
        return {s: sum(each.values()) / count for s, each in slowdowns.items()}

    merged = means()
    monkeypatch.setattr(forecast_module, "_REQUESTS", 3200)
    monkeypatch.setattr(forecast_module, "_MOST_INSTANTS", 100_000)
    whole = means()
    assert max(merged, key=merged.__getitem__) == "1a"
    assert max(whole, key=whole.__getitem__) == "1a"
    best = min(whole, key=whole.__getitem__)
    assert min(merged, key=merged.__getitem__) == best
    assert merged["1a"] / merged[best] > 1.2


def test_a_phase_within_the_horizon_counts() -> None:
    coming = replace(IDLE, next_phase_s=14.0)
    both = _slowdowns(A, coming)
    assert both["A"] == pytest.approx(1.4)
    assert both["idle"] == pytest.approx(1.4)
    assert _slowdowns(A, coming, horizon_s=3.0) == {"A": pytest.approx(1.0)}
    assert _slowdowns(A, replace(IDLE, next_phase_s=9.0)) == {"A": pytest.approx(1.0)}


def test_later_phases_count_if_their_work_is_known() -> None:
    back = replace(A, work_s=5.0)
    # A: 8 s, 5 s of work, 10 s, 5 s, 10 s ...; four phases at most.
    assert _slowdowns(back) == {"A": pytest.approx(1.0)}
    other = replace(IDLE, next_phase_s=18.0)
    # The other one meets the second phase of A only.
    assert _slowdowns(A, other)["idle"] == pytest.approx(1.0)
    assert _slowdowns(back, other)["idle"] > 1.2


def test_an_unknown_volume_is_twice_what_was_written() -> None:
    unknown = replace(A, phase_bytes=0.0, mean_request_bytes=0.0)
    known = replace(A, phase_bytes=400.0, mean_request_bytes=0.0)
    assert _slowdowns(unknown, B) == pytest.approx(_slowdowns(known, B))


def test_a_static_partition_counts_those_that_are_idle() -> None:
    assert _slowdowns(A, IDLE, strategy="3a")["A"] == pytest.approx(1.8)


def test_long_simulations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast_module, "_MOST_INSTANTS", 5)
    with pytest.raises(InputError, match="more than 5 instants"):
        _slowdowns(A, B)


def test_requests_fit_into_small_buffers() -> None:
    small = BufferForecast(STORAGE, Buffer(1e6, 30.0))
    both = small(Situation(10.0, 4, (A, B)), "2a", 60.0)
    assert both["A"] == pytest.approx(1.0)


def test_live_only_bandwidths_are_known() -> None:
    plain = live_forecast(100.0, 4)
    assert plain.storage.profile == ()
    assert plain.can_stage
    assert live_forecast(100.0, 2, (60.0, 100.0)).storage.profile == (60.0, 100.0)
    assert live_forecast(100.0, 4, (60.0, 100.0)).storage.profile == ()
    assert not BufferForecast(STORAGE).can_stage
