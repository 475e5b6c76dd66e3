# SPDX-License-Identifier: MIT
"""Periods that ``period=given`` asks for."""

from __future__ import annotations

import pytest

from penstock.errors import InputError
from penstock.experiments.periods import check_periods
from penstock.policies import get_policy
from unit.samples import app, make

PHASES = [("work", 1.0), ("io", 2.0)] * 9
KNOWN = app("a", *PHASES, period=3.0)
UNKNOWN = app("b", *PHASES)


@pytest.mark.parametrize("name", ["set-10", "set-fair-share", "share-priority"])
def test_a_missing_period_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(InputError) as caught:
        check_periods(make(KNOWN, UNKNOWN), get_policy(f"{name}:period=given"))
    assert caught.value.where == "applications[1]"
    assert caught.value.what == f"'b' has no period, but {name}:period=given needs one"
    assert "period=given" in caught.value.remedy


def test_all_periods_known_is_accepted() -> None:
    check_periods(make(KNOWN), get_policy("set-10:update=post,period=given"))


@pytest.mark.parametrize("text", ["set-10", "set-10:period=learnt", "fcfs"])
def test_other_policies_need_no_period(text: str) -> None:
    check_periods(make(UNKNOWN), get_policy(text))
