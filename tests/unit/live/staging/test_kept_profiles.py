# SPDX-License-Identifier: MIT
"""Measured bandwidths survive in a file, which is whole or refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.staging.kept_profiles import keep_profile, kept_profile

TARGETS = "moosefs:/mnt/mfs:A,B"


def test_what_was_kept_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "state" / "targets.json"
    assert kept_profile(path, TARGETS) == ()
    keep_profile(path, TARGETS, [1e8, 1.9e8])
    keep_profile(path, "moosefs:/other:A", [7.0])
    assert kept_profile(path, TARGETS) == (1e8, 1.9e8)
    keep_profile(path, TARGETS, [2e8, 2e8])
    assert kept_profile(path, TARGETS) == (2e8, 2e8)
    assert [file.name for file in path.parent.iterdir()] == ["targets.json"]


def test_the_order_of_the_targets_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "targets.json"
    keep_profile(path, TARGETS, [1.0, 2.0])
    assert kept_profile(path, "moosefs:/mnt/mfs:B,A") == (1.0, 2.0)
    assert kept_profile(path, "moosefs:/mnt/mfs:A,B,C") == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 1}',
        '{"version": 2, "profiles": {}}',
        json.dumps({"version": 1, "profiles": {TARGETS: [1.0, -1.0]}}),
        json.dumps({"version": 1, "profiles": {TARGETS: "fast"}}),
        "\0" * 100,
        '{"version": 1, "profiles": {"\udcff": []}}',
    ],
)
def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "targets.json"
    data = os.fsencode(text)
    path.write_bytes(data)
    for use in (
        lambda: kept_profile(path, TARGETS),
        lambda: keep_profile(path, TARGETS, [1.0]),
    ):
        with pytest.raises(InputError, match=r"targets\.json.*measure again"):
            use()
    assert path.read_bytes() == data
