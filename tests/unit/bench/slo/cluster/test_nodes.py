# SPDX-License-Identifier: MIT
"""The mounts and processes of a scene: settings files and plans."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.bench.slo.clients import file_of
from penstock.bench.slo.cluster import nodes
from penstock.bench.slo.cluster.nodes import slo_text
from penstock.bench.slo.cluster.scenes import (
    CAPACITY_SCENE,
    FULL,
    SIZE_BYTES,
    scenes,
)
from penstock.bench.slo.windows import AnsweredRequest
from penstock.errors import InputError
from penstock.live.wire.curve import make_keys
from penstock.mount.slo_settings import slo_settings_from
from penstock.qos import Slo

SCENES = {scene.name: scene for scene in scenes(FULL)}


def test_every_node_has_all_promises_and_the_controller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "_KEYS", tmp_path / "keys")
    make_keys(str(tmp_path / "keys"))
    scene = SCENES["4 KiB reader and 32 writers, different nodes"]
    settings = slo_settings_from(tomllib.loads(slo_text(scene, 10e6, 2)))
    assert settings.slos == {"reader": Slo(5e4, 0.05), "writers": Slo(9e6, 2.0)}
    assert settings.exchange is not None
    assert settings.exchange.controller == "tcp://192.0.2.101:4713"
    assert settings.exchange.storage == "B"


@pytest.mark.parametrize(
    "name",
    [
        "4 KiB reader and 32 writers, same node, fifo",
        "3 : 1, 16 and 16 processes, different nodes, mounts alone",
    ],
)
def test_mounts_alone_exchange_nothing(name: str) -> None:
    text = slo_text(SCENES[name], 10e6, 1)
    assert slo_settings_from(tomllib.loads(text)).exchange is None


def test_processes_of_one_application_have_files_of_their_own() -> None:
    scene = SCENES["1 : 10, 1 and 64 processes, different nodes"]
    files = []
    for group in scene.groups:
        plan = nodes._plan(group, Path("/mnt"), 5.0, 10.0, 1e6)
        assert (plan.begin, plan.end) == (5.0, 15.0)
        files += [file_of(plan, number) for number in range(group.processes)]
    assert len(set(files)) == 65
    on_server_c = [path for path in files if path.parent.parent.name == "C"]
    assert len(on_server_c) == 16


def test_rates_are_scaled_to_the_capacity() -> None:
    reader = SCENES["4 KiB reader and 32 writers, same node"].groups[0]
    plan = nodes._plan(reader, Path("/mnt"), 0.0, 1.0, 10e6)
    assert {rate for _, rate in plan.rates} == {5e4}
    # More positions than reads, so that no cache has them.
    assert plan.span / plan.size > FULL.run_s * 5e4 / plan.size


def test_the_capacity_is_what_was_answered_in_the_measured_time() -> None:
    times = [AnsweredRequest(0.0, 0.5 + number) for number in range(4)]
    scene = replace(CAPACITY_SCENE, warm_s=1.0, end_s=3.0)
    assert nodes._throughput(scene, {"all": times}) == pytest.approx(SIZE_BYTES)
    with pytest.raises(InputError, match="answered no request"):
        nodes._throughput(scene, {"all": []})
