# SPDX-License-Identifier: MIT
"""The pacing benchmark with fake writers: volumes, grants, ratios."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.bench.accuracy import pacing


class FakeWriters:
    """Writers that move exactly a share of the granted bandwidth."""

    def __init__(self, share: float) -> None:
        self.share = share
        self.rate = 0.0
        self.volume = 0
        self.page = self

    def grant(self, rate: float) -> None:
        self.rate = rate

    def renew(self) -> None:
        """Nothing to renew."""

    def start(self, size: int, calls: int) -> FakeWriters:
        self.volume += size * calls
        return self

    def begin_at(self, start_ns: int) -> None:
        self.start_ns = start_ns

    def finish(self) -> tuple[float, int]:
        took_s = self.volume / (self.rate * self.share)
        return 0.0, self.start_ns + round(took_s * 1e9)


@pytest.mark.parametrize("size", [4 << 10, 1 << 20, 64 << 20])
@pytest.mark.parametrize("processes", [1, 64])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_ratio_is_achieved_over_granted(
    size: int, processes: int, share: float
) -> None:
    writers: Any = FakeWriters(share)
    ratio = pacing._ratio(writers, size, processes, 2.0)
    assert ratio == pytest.approx(share, rel=1e-6)
    # At the granted rate no run takes longer than 8 s.
    assert writers.volume / writers.rate <= 8.0 + 1e-9
    assert writers.volume >= size * processes


def test_a_measurement_is_the_median_with_a_goal_of_two_percent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ratios = iter([0.5, 0.99, 1.5])
    monkeypatch.setattr(pacing, "_ratio", lambda *_: next(ratios))
    writers: Any = None
    measurement = pacing._measurement(writers, 4096, 4, 3)
    assert (measurement.value, measurement.is_reached) == (0.99, True)
    assert measurement.name == "calls of 4 KiB by 4: achieved / granted"
