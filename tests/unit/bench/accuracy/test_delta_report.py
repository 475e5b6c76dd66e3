# SPDX-License-Identifier: MIT
"""The report of delta-graphs: JSON, plot, order of the factors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.bench.accuracy.delta_report import Graph, as_ordered, save
from penstock.sim.buffers.delta import DeltaPoint


def point(offset: float, first: float, second: float) -> DeltaPoint:
    return DeltaPoint(offset, (first, second), (first, second), 1.0, first + second)


@pytest.mark.parametrize(
    ("offset", "live", "simulated", "expected"),
    [
        (0.0, (1.5, 1.0), (1.0, 1.6), [1.0, 1.5]),
        (0.0, (1.0, 1.5), (1.6, 1.0), [1.5, 1.0]),
        (0.0, (1.2, 1.0), (1.0, 1.0), [1.0, 1.2]),
        (0.5, (1.5, 1.0), (1.0, 1.6), [1.5, 1.0]),
    ],
)
def test_factors_of_groups_that_start_together_are_sorted_as_simulated(
    offset: float,
    live: tuple[float, float],
    simulated: tuple[float, float],
    expected: list[float],
) -> None:
    ordered = as_ordered(point(offset, *live), point(offset, *simulated))
    assert list(ordered) == expected


@pytest.mark.parametrize("count", [1, 4, 5])
def test_every_graph_is_written_and_plotted(tmp_path: Path, count: int) -> None:
    live = [point(0.0, 1.5, 1.0), point(1.0, 1.0, 1.2)]
    simulated = [point(0.0, 1.0, 1.6), point(1.0, 1.0, 1.3)]
    graphs: dict[str, Graph] = {f"s{n}": (live, simulated) for n in range(count)}
    save(tmp_path / "new" / "folder", graphs, {"rate": 7.0})
    document = json.loads((tmp_path / "new" / "folder" / "delta.json").read_text())
    assert (document["penstock"], document["rate"]) == (1, 7.0)
    assert list(document["graphs"]) == list(graphs)
    assert document["graphs"]["s0"]["live"][1]["factors"] == [1.0, 1.2]
    svg = (tmp_path / "new" / "folder" / "delta.svg").read_text()
    assert svg.startswith("<?xml")
