# SPDX-License-Identifier: MIT
"""Job records: sums over bursts, and names that tables can show."""

from __future__ import annotations

import msgspec
import pytest

from penstock.advice.logs.record import Burst, LoggedJob, plain_name


def test_sums_over_bursts() -> None:
    record = LoggedJob(
        name="a",
        source="f",
        detail="heatmap",
        bursts=(Burst(0, 1, 10, 0.5), Burst(2, 3, 20, 0.25, is_exact=False)),
        start_s=0.0,
        run_s=3.0,
    )
    assert (record.volume_bytes, record.io_s) == (30, 0.75)
    assert not record.is_exact


def test_a_record_survives_json() -> None:
    burst = Burst(0.1, 0.2, 3.0, 0.1, is_exact=False)
    record = LoggedJob(
        name="a", source="f", detail="dxt", bursts=(burst,), start_s=1.5, run_s=2.0
    )
    data = msgspec.json.encode(record)
    assert msgspec.json.decode(data, type=LoggedJob) == record


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["ior", 5], "ior-5"),
        ([" ", "x"], "x"),
        ([""], "job"),
        (["a\nb\x1b[1m"], "a?b?[1m"),
    ],
)
def test_names_have_no_control_characters(words: list[object], name: str) -> None:
    assert plain_name(words) == name
