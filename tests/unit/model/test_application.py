# SPDX-License-Identifier: MIT
"""Applications: phases in and out, history, and times in dedicated mode."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from penstock.errors import InputError
from penstock.model import Application

_amounts = st.floats(0.0, 1e12, allow_subnormal=False)
_phases = st.lists(st.tuples(st.sampled_from(["work", "io"]), _amounts), max_size=12)


def _make(*phases: tuple[str, float], **rest: Any) -> Application:
    return Application.from_phases("a", 1, phases, **rest)


# --- Phases -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phases", "work", "volume"),
    [
        ([], [0], []),
        ([("work", 2)], [2], []),
        ([("io", 3)], [0, 0], [3]),
        ([("work", 2), ("io", 3), ("work", 4)], [2, 4], [3]),
        ([("work", 2), ("work", 5), ("io", 3)], [7, 0], [3]),
        ([("io", 3), ("io", 0), ("io", 4)], [0, 0, 0, 0], [3, 0, 4]),
        ([("io", 3), ("work", 1), ("work", 0), ("work", 2)], [0, 3], [3]),
    ],
)
def test_work_in_a_row_is_one_phase_and_operations_have_work_between(
    phases: list[tuple[str, float]], work: list[float], volume: list[float]
) -> None:
    made = _make(*phases)
    assert made.work.tolist() == work
    assert made.volume.tolist() == volume


@given(_phases)
def test_phases_give_the_same_application_again(
    phases: list[tuple[str, float]],
) -> None:
    made = _make(*phases)
    again = _make(*made.phases())
    assert again.work.tobytes() == made.work.tobytes()
    assert again.volume.tobytes() == made.volume.tobytes()
    assert again.phases() == made.phases()


@given(_phases)
def test_phases_lose_nothing(phases: list[tuple[str, float]]) -> None:
    listed = _make(*phases).phases()
    for kind in ("work", "io"):
        total = math.fsum(amount for k, amount in phases if k == kind)
        kept = math.fsum(amount for k, amount in listed if k == kind)
        assert kept == pytest.approx(total, rel=1e-12)
    assert [a for k, a in listed if k == "io"] == [a for k, a in phases if k == "io"]
    assert all(amount > 0 for kind, amount in listed if kind == "work")


@pytest.mark.parametrize("amount", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("kind", ["work", "io"])
def test_a_bad_amount_is_named_with_its_phase(kind: str, amount: float) -> None:
    with pytest.raises(InputError, match="negative or not finite") as caught:
        _make(("work", 1.0), ("io", 1.0), (kind, amount))
    assert caught.value.where == "phases[2]"


def test_an_unknown_kind_of_phase_is_named_with_its_phase() -> None:
    with pytest.raises(InputError, match="unknown kind of phase 'sleep'") as caught:
        _make(("work", 1.0), ("sleep", 1.0))
    assert caught.value.where == "phases[1]"


@pytest.mark.parametrize(
    ("work", "volume"), [([], []), ([1.0], [1.0]), ([1.0, 2.0, 3.0], [1.0])]
)
def test_there_is_one_work_phase_more_than_operations(
    work: list[float], volume: list[float]
) -> None:
    with pytest.raises(InputError, match="one more work phase"):
        Application("a", 1, np.array(work), np.array(volume))


@pytest.mark.parametrize("name", ["work", "volume"])
@pytest.mark.parametrize("bad", [-1e-300, math.nan, math.inf])
def test_columns_are_checked_entry_by_entry(name: str, bad: float) -> None:
    columns: dict[str, Any] = {"work": [0.0, 0.0, 0.0], "volume": [1.0, 1.0]}
    columns[name][1] = bad
    with pytest.raises(InputError) as caught:
        Application("a", 1, **columns)
    assert caught.value.where == f"{name}[1]"


def test_columns_are_the_application_s_own_and_cannot_be_written() -> None:
    work = np.array([1.0, 2.0])
    made = Application("a", 1, work, np.array([1.0]))
    work[0] = 9.0
    assert made.work[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        made.work[0] = 9.0
    with pytest.raises(ValueError, match="read-only"):
        made.volume[0] = 9.0


# --- Scalars and history ----------------------------------------------------------


@pytest.mark.parametrize("nodes", [0, -1, 1.5, 2.0, "2", None, True, 2**63])
def test_nodes_are_a_whole_number(nodes: Any) -> None:
    with pytest.raises(InputError, match="not a number of nodes") as caught:
        Application("a", nodes, np.zeros(1), np.zeros(0))
    assert caught.value.where == "nodes"


@pytest.mark.parametrize("name", ["release", "start"])
@pytest.mark.parametrize("bad", [math.inf, -math.inf])
def test_times_are_finite(name: str, bad: float) -> None:
    with pytest.raises(InputError, match="is not a time") as caught:
        _make(**{"release": 0.0, name: bad})
    assert caught.value.where == name


def test_a_release_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="is not a time"):
        _make(release=math.nan)


@pytest.mark.parametrize("name", ["done_work", "done_volume", "period"])
@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_history_and_period_are_not_negative(name: str, bad: float) -> None:
    with pytest.raises(InputError, match="negative or not finite") as caught:
        _make(**{name: bad})
    assert caught.value.where == name


def test_start_is_the_release_unless_given() -> None:
    assert _make(release=-3.0).start == -3.0
    assert _make(release=-3.0, start=2.0).start == 2.0


def test_start_does_not_lie_before_the_release() -> None:
    with pytest.raises(InputError, match="is earlier than release") as caught:
        _make(release=1.0, start=0.5)
    assert caught.value.where == "start"


@pytest.mark.parametrize(
    ("start", "done_work", "done_volume", "lost"),
    [
        (0.0, 0.0, 0.0, 0.0),
        (10.0, 0.0, 0.0, 10.0),
        (10.0, 6.0, 0.0, 4.0),
        (10.0, 6.0, 8.0, 0.0),
        (10.0, 0.0, 8.0, 6.0),
    ],
)
def test_lost_at_start_is_age_minus_progress(
    start: Any, done_work: Any, done_volume: Any, lost: Any
) -> None:
    made = _make(start=start, done_work=done_work, done_volume=done_volume)
    assert made.lost_at_start(2.0) == lost


def test_a_history_that_is_too_good_is_refused() -> None:
    made = _make(start=10.0, done_work=6.0, done_volume=8.1)
    with pytest.raises(InputError, match=r"10\.05 s of progress in the 10 s"):
        made.lost_at_start(2.0)


def test_rounding_of_a_history_is_granted() -> None:
    made = _make(start=0.3, done_work=0.1 + 0.2)
    assert made.done_work > made.start
    assert made.lost_at_start(1.0) == 0.0


# --- Dedicated mode ---------------------------------------------------------------


def test_dedicated_times_by_hand() -> None:
    made = _make(
        ("work", 2.0), ("io", 6.0), ("io", 2.0), ("work", 1.0), release=1.0, start=3.0
    )
    # w0 = 2, v0 = 6 / 2, w1 = 0, v1 = 2 / 2, w2 = 1
    assert made.dedicated_times(2.0).tolist() == [5.0, 8.0, 8.0, 9.0, 10.0]


def test_dedicated_times_without_an_operation() -> None:
    assert _make(("work", 4.0), release=1.0).dedicated_times(1.0).tolist() == [5.0]


@given(_phases, st.floats(1e-3, 1e6), st.floats(-1e6, 1e6))
def test_dedicated_times_are_summed_one_after_the_other(
    phases: list[tuple[str, float]], cap: float, release: float
) -> None:
    made = _make(*phases, release=release)
    lengths = [float(made.work[0])]
    for volume, work in zip(made.volume.tolist(), made.work[1:].tolist(), strict=True):
        lengths += [volume / cap, work]
    times = list(accumulate([release, *lengths]))[1:]
    assert made.dedicated_times(cap).tolist() == times
