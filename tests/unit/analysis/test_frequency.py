# SPDX-License-Identifier: MIT
"""What FTIO is given, and which of its answers count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.analysis import frequency
from penstock.analysis.frequency import dominant_frequency

OPERATIONS = [(10.0, 12.0, 4e6), (20.0, 20.0, 1e3)]


class _Ftio:
    """Stands for the modules of FTIO."""

    def __init__(self, frequencies: list[float], confidence: float) -> None:
        self.found = SimpleNamespace(dominant_freq=frequencies, conf=[confidence])
        self.data: dict[str, Any] = {}

    def parse_args(self, words: list[str], program: str) -> SimpleNamespace:
        return SimpleNamespace(words=words, program=program)

    def core(
        self, data: dict[str, Any], arguments: SimpleNamespace
    ) -> list[SimpleNamespace]:
        self.data = data | {"freq": arguments.freq}
        return [self.found]


@pytest.mark.parametrize(
    ("frequencies", "confidence", "answer"),
    [([0.1], 0.9, 0.1), ([0.1], 0.3, 0.0), ([0.1, 0.2], 0.9, 0.0), ([], 0.0, 0.0)],
)
def test_only_one_clear_frequency_counts(
    monkeypatch: pytest.MonkeyPatch,
    frequencies: list[float],
    confidence: float,
    answer: float,
) -> None:
    stub = _Ftio(frequencies, confidence)
    monkeypatch.setattr(frequency, "import_module", lambda _: stub)
    assert dominant_frequency(OPERATIONS, 30.0) == answer


def test_ftio_sees_the_rates_from_the_first_operation_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stub = _Ftio([0.1], 1.0)
    monkeypatch.setattr(frequency, "import_module", lambda _: stub)
    dominant_frequency(OPERATIONS, 30.0)
    assert stub.data["time"].tolist() == [0.0, 2.0, 10.0, 10.001, 20.0]
    assert stub.data["bandwidth"].tolist() == [2e6, 0.0, 1e6, 0.0, 0.0]
    assert stub.data["total_bytes"] == 4_001_000
    assert stub.data["freq"] == pytest.approx(64 * 2 / 20.0)
