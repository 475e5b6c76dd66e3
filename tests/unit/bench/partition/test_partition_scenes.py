# SPDX-License-Identifier: MIT
"""The scenes of ``penstock bench partition``."""

from __future__ import annotations

from penstock.bench.partition.scenes import scenes


def test_two_and_four_applications() -> None:
    full = scenes(quick=False)
    assert {name: len(apps) for name, apps in full.items()} == {"two": 2, "four": 4}
    for apps in full.values():
        assert len({app.name for app in apps}) == len(apps)


def test_a_static_partition_of_two_gives_each_a_half() -> None:
    """Live, the first to join gets its part before the second is known."""
    for quick in (False, True):
        first, second = scenes(quick=quick)["two"]
        assert first.volume_bytes == second.volume_bytes


def test_a_quick_run_writes_a_quarter() -> None:
    full, quick = (scenes(quick=short)["two"] for short in (False, True))
    for long, short in zip(full, quick, strict=True):
        assert 4 * short.volume_bytes == long.volume_bytes
        assert short.work_s < long.work_s
