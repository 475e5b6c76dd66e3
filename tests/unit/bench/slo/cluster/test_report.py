# SPDX-License-Identifier: MIT
"""The report of the cluster benchmark: JSON, table and plot."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.bench import Measurement
from penstock.bench.slo.cluster.report import goal_table, save, table
from penstock.bench.slo.cluster.results import SceneResult, result_of
from penstock.bench.slo.cluster.scenes import (
    SIZE_BYTES,
    AppGroup,
    ClusterScene,
    Promise,
)
from penstock.bench.slo.windows import AnsweredRequest


def result(name: str) -> SceneResult:
    scene = ClusterScene(
        name,
        "alone",
        {"a": Promise(0.8, 0.1), "b": Promise(0.4, 0.3)},
        (AppGroup("a", 1, 4), AppGroup("b", 2, 4)),
        *(0.0, 2.0),
    )
    live = {"a": [AnsweredRequest(0.1, 0.2)] * 4, "b": []}
    simulated = {"a": [AnsweredRequest(0.1, 0.3)] * 2, "b": []}
    return result_of(scene, 1e6, live, [simulated])


def test_scenes_are_written_and_plotted(tmp_path: Path) -> None:
    results = [result("one"), result("two")]
    taken = [Measurement("shares", 1.5, "", 0.97)]
    save(tmp_path / "out", results, taken, {"version": "1"})
    document = json.loads((tmp_path / "out" / "slo-cluster.json").read_text())
    one, two = document["scenes"]
    assert (one["name"], two["name"]) == ("one", "two")
    assert one["promises"]["b"] == {"bytes_per_s": 4e5, "latency_s": 0.3}
    assert one["live"]["applications"]["a"]["bytes_per_s"] == 2 * SIZE_BYTES
    assert one["simulated"]["windows"][0]["groups"]["a"]["answered"] == 2
    assert [group["node"] for group in one["groups"]] == [1, 2]
    svg = (tmp_path / "out" / "slo-cluster.svg").read_text()
    assert svg.startswith("<?xml")
    text = (tmp_path / "out" / "slo-cluster.md").read_text()
    assert text.count("| one |") == 2
    assert text.endswith("\n1 of 1 goals are reached.\n")


def test_goals_are_reached_or_missed() -> None:
    taken = [
        Measurement("shares", 0.9, "", 0.97, 1.03),
        Measurement("windows", 96.0, "%", 95.0),
        Measurement("without a goal", 1.0, "s"),
    ]
    lines = goal_table(taken).splitlines()
    assert lines[2] == "| shares | 0.9 | 0.97 to 1.03 | missed |"
    assert lines[3] == "| windows | 96 % | at least 95 | reached |"
    assert lines[4:] == ["", "1 of 2 goals are reached."]
    assert goal_table(taken[2:]) == ""


def test_the_table_has_a_row_per_application_in_megabytes_and_milliseconds() -> None:
    lines = table([result("one")]).splitlines()
    assert lines[2] == "| one | a | 0.80 | 0.13 | 0.07 | 100 | 200 |"
    assert lines[3] == "| one | b | 0.40 | 0.00 | 0.00 | - | - |"
    assert len({line.count("|") for line in lines}) == 1
