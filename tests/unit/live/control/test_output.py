# SPDX-License-Identifier: MIT
"""What the control loop has to do after a decision."""

from __future__ import annotations

from math import inf

from penstock.live.control.output import CoordinatorOutput


def test_an_output_begins_empty_and_shares_nothing() -> None:
    first, second = CoordinatorOutput(), CoordinatorOutput()
    first.retargeted["a"] = (0,)
    first.ended.add("0:a")
    assert (second.retargeted, second.ended, second.messages) == ({}, set(), [])
    assert second.wake == inf
