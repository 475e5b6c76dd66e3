# SPDX-License-Identifier: MIT
"""Counts and loads of targets while applications come and go."""

from __future__ import annotations

from penstock.placement.target_use import TargetUse


def test_targets_are_counted_and_loaded() -> None:
    use = TargetUse.none(3)
    use.add((1, 2), 0.5)
    use.add((2, 0), 0.25)
    assert use.counts == [1, 1, 2]
    assert use.loads == [0.25, 0.5, 0.75]
    assert use.turn == 1


def test_targets_are_freed() -> None:
    use = TargetUse.none(2)
    for load in (0.1, 0.2, 0.3):
        use.add((0, 1), load)
    for load in (0.2, 0.1, 0.3):
        use.remove((0, 1), load)
    # No rounding is left.
    assert (use.counts, use.loads) == ([0, 0], [0.0, 0.0])
