# SPDX-License-Identifier: MIT
"""Mounts of the benchmark of schedulers: the file of --slo, and the depth recorder."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.bench.slo import mounts
from penstock.bench.slo.mounts import DepthRecorder
from penstock.mount.slo_settings import slo_settings_from
from penstock.qos import Slo
from support.waiting import until


def test_the_slo_file_is_valid_and_has_a_rule_per_application() -> None:
    text = mounts.slo_file("sfq:depth=2", {"a": (40e6, 0.1), "b": (20e6, 0.3)})
    settings = slo_settings_from(tomllib.loads(text))
    assert settings.scheduler.label == "sfq:depth=2"
    assert settings.slos == {"a": Slo(40e6, 0.1), "b": Slo(20e6, 0.3)}
    paths = [(rule.application, rule.path) for rule in settings.rules]
    assert paths == [("a", "/a"), ("b", "/b")]


def test_folders_are_made_for_the_mount_and_for_applications(tmp_path: Path) -> None:
    backing, point = mounts._make_folders(tmp_path, "a", "b")
    assert sorted(path.name for path in backing.iterdir()) == ["a", "b"]
    assert point.is_dir()


def test_the_depth_is_recorded_once_per_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Path] = []

    def statuses(folder: Path) -> list[SimpleNamespace]:
        calls.append(folder)
        depth = None if len(calls) == 2 else float(len(calls))
        return [SimpleNamespace(scheduling=SimpleNamespace(depth=depth))]

    monkeypatch.setattr(mounts, "all_statuses", statuses)
    begin = time.monotonic()
    with DepthRecorder(tmp_path / "mount", begin, 0.02) as recorder:
        until(lambda: len(recorder.depths) >= 3)
    assert recorder.depths[:3] == [1.0, None, 3.0]
    # The third value is taken in the middle of the third window, not before.
    assert time.monotonic() - begin >= 2.5 * 0.02
    assert calls[0] == tmp_path / "run" / "mounts"
