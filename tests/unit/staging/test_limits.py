# SPDX-License-Identifier: MIT
"""Warnings where staging does not help (burst-buffer coordination, section V-D)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.staging import ApplicationStatus, Situation, get_strategy
from penstock.staging.limits import pause_fraction

A = ApplicationStatus("A", phase_began_s=0.0, phase_bytes=48.0, processes=4)
B = ApplicationStatus("B", phase_began_s=5.0, phase_bytes=16.0, processes=4)
PACED = replace(
    B,
    processes=256,
    mean_request_bytes=256.0,
    mean_pause_s=0.75,
    dedicated_bytes_per_s=170.0,
)


def warnings(name: str, *applications: ApplicationStatus) -> list[str]:
    strategy = get_strategy(name)
    situation = Situation(10.0, 8, applications)
    return strategy.warnings(situation, strategy.decide(situation))


def test_flushing_at_once_what_is_paced_is_warned_of() -> None:
    (warning,) = warnings("2a", A, PACED)
    assert "strategy 2a: B: 256 processes" in warning
    assert "pauses of 0.75 s (33% of the time)" in warning


@pytest.mark.parametrize(
    "harmless",
    [
        replace(PACED, mean_pause_s=0.0),
        replace(PACED, mean_pause_s=0.1),
        replace(PACED, processes=1),
        replace(PACED, mean_request_bytes=0.0),
    ],
)
def test_nothing_to_warn_of(harmless: ApplicationStatus) -> None:
    assert warnings("2a", A, harmless) == []


def test_there_is_no_warning_about_applications_that_write_through() -> None:
    assert warnings("none", A, PACED) == []
    assert warnings("1a", A, PACED) == []


def test_the_fraction_is_the_pause_over_pause_and_write() -> None:
    """d / (d + S / b) with d = 0.75 s, S = 256 bytes and b = 170 bytes/s."""
    assert pause_fraction(PACED) == pytest.approx(0.75 / (0.75 + 256 / 170))
    assert pause_fraction(replace(PACED, dedicated_bytes_per_s=float("inf"))) == 1.0
