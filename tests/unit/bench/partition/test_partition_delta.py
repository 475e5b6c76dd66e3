# SPDX-License-Identifier: MIT
"""Delta-graphs on a MooseFS: what is planned, compared and drawn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.bench import BenchSettings
from penstock.bench.accuracy.delta import measure
from penstock.bench.partition import delta
from penstock.bench.partition.scenes import PartitionPlan

_PROFILE = [4.7e6, 9.4e6, 14.1e6, 18.8e6]
#: Alone: 4 requests of 0.5 s and 3 pauses of 0.5 s.
_ALONE_S = 3.5


def _lines(plan: PartitionPlan) -> Iterator[dict[str, Any]]:
    """Answer as `nodes`: the first application is never slowed down."""
    yield {"profile": _PROFILE}
    yield {"alone": {"A": _ALONE_S, "B": _ALONE_S}}
    for scene, (_, second) in plan.scenes.items():
        for setting in plan.settings:
            phases_s = {
                "A": [(0.0, _ALONE_S)],
                "B": [(second.start_s, second.start_s + 2 * _ALONE_S)],
            }
            yield {"scene": scene, "setting": setting, "phases_s": phases_s}


def test_factors_are_compared_and_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(delta, "run_plan", _lines)
    settings = BenchSettings(1, tmp_path, ("2a",), tmp_path / "out", cluster=True)
    none, staged = measure(settings)
    assert none.name.startswith("none: largest difference")
    assert staged.parts["D=4s:A"] == pytest.approx(1.0)
    assert staged.parts["D=4s:B"] == pytest.approx(2.0)
    # B stages its data beside A and drains it in 2 s when A is done: 5.5 s.
    assert staged.parts["D=0s:A:simulated"] == pytest.approx(1.0)
    assert staged.parts["D=0s:B:simulated"] == pytest.approx(5.5 / 3.5, rel=1e-3)
    # At D = 4 s, A is done.
    assert staged.parts["D=4s:B:simulated"] == pytest.approx(1.0)
    assert staged.value == pytest.approx(1.0)
    document = json.loads((tmp_path / "out" / "delta.json").read_text())
    assert document["storage"] == "MooseFS"
    assert [len(graph["live"]) for graph in document["graphs"].values()] == [4, 4]
    assert (tmp_path / "out" / "delta.svg").stat().st_size > 5_000


def test_every_offset_is_a_scene_of_two_equal_applications(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plans: list[PartitionPlan] = []

    def noted(plan: PartitionPlan) -> Iterator[dict[str, Any]]:
        plans.append(plan)
        return _lines(plan)

    monkeypatch.setattr(delta, "run_plan", noted)
    list(measure(BenchSettings(1, tmp_path, cluster=True)))
    (plan,) = plans
    assert plan.settings[0] == "none"
    offsets_s = [
        second.start_s - first.start_s for first, second in plan.scenes.values()
    ]
    assert offsets_s == [0.0, 0.75, 1.75, 4.0]
    for first, second in plan.scenes.values():
        assert first.volume_bytes == second.volume_bytes
