# SPDX-License-Identifier: MIT
"""How fast a folder is written, unless somebody else uses it."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.daemon import measure
from penstock.live.daemon.measure import measure_bandwidth, write_bandwidth


def test_a_folder(tmp_path: Path) -> None:
    assert write_bandwidth(tmp_path, 0.05) > 0.0
    assert list(tmp_path.iterdir()) == []


def test_not_a_folder() -> None:
    with pytest.raises(InputError, match=r"^/no/where: .*\(give --bandwidth\)$"):
        measure_bandwidth(Path("/no/where"))


@pytest.mark.parametrize(
    ("rates", "result"),
    [
        ((40e6, 40e6), 40e6),
        ((40e6, 35e6), 40e6),
        ((1e6, 3e6), None),
        ((40e6, 1e6), None),
    ],
)
def test_two_measurements_that_differ_say_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rates: tuple[float, float],
    result: float | None,
) -> None:
    rate = cycle(rates)
    monkeypatch.setattr(measure, "_others_use", lambda _: False)
    monkeypatch.setattr(measure, "write_bandwidth", lambda *_: next(rate))
    assert measure_bandwidth(tmp_path) == result


@pytest.mark.parametrize(("sectors", "result"), [(10_000, None), (10, 7.0)])
def test_nothing_is_measured_while_others_use_the_device(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sectors: int,
    result: float | None,
) -> None:
    readings = iter([1000, 1000 + sectors])
    monkeypatch.setattr(measure, "_sectors", lambda *_: next(readings))
    monkeypatch.setattr(measure, "write_bandwidth", lambda *_: 7.0)
    assert measure_bandwidth(tmp_path) == result


def test_the_sectors_of_a_device(tmp_path: Path) -> None:
    table = tmp_path / "diskstats"
    table.write_text("   8   1 sda1 10 0 300 5 20 0 4000 9 0 0 0 0\n 8 2 sda2 short\n")
    assert measure._sectors(0x801, table) == 4300
    assert measure._sectors(0x802, table) is None
    assert measure._sectors(0x900, table) is None
    assert measure._sectors(0x801, tmp_path / "none") is None
