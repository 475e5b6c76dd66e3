# SPDX-License-Identifier: MIT
"""Figure 7 of bandwidth sharing (ratios on TRILAB): each claim can hold and fail."""

from __future__ import annotations

import math

import pytest

from penstock.papers.p1.apex.trilab import fig7
from penstock.papers.p1.policies import (
    ALL_BUT_FAIR_SHARE,
    BEST_NEXT_EVENT,
    GREEDY_COM,
    GREEDY_YIELD,
    LOOK_AHEAD,
    PERIODIC,
    SECOND_SET,
    THIRD_SET,
)
from support.apex_tables import Flip, assert_flips, by_band, claim_of, prepared, window

#: Every claim with windows for which it holds and windows for which it does not.
FLIPS = [
    Flip(
        "greedy-com-few-lower",
        [
            window({GREEDY_COM: 0.5}, 0.9, "TRILAB"),
            window({GREEDY_COM: 0.1}, 1.1, "TRILAB"),
        ],
        [window({GREEDY_COM: 0.4}, 0.9, "TRILAB")],
    ),
    Flip(
        "greedy-com-all-lower",
        [
            *[window({GREEDY_COM: 0.4}, 1.4, "TRILAB")] * 99,
            window({GREEDY_COM: 0.6}, 1.2, "TRILAB"),
        ],
        [
            *[window({GREEDY_COM: 0.4}, 1.4, "TRILAB")] * 99,
            window({GREEDY_COM: 0.5}, 1.25, "TRILAB"),
        ],
    ),
    Flip(
        "fewer-lower",
        [
            window(dict.fromkeys(ALL_BUT_FAIR_SHARE, 0.4), 1.0),
            window({}, 1.0, "TRILAB"),
        ],
        [
            window(dict.fromkeys(ALL_BUT_FAIR_SHARE, 0.4), 1.0),
            window({GREEDY_COM: 0.4}, 1.0, "TRILAB"),
        ],
    ),
    Flip(
        "gains-higher-at-high-pressure",
        [
            window({}, 1.2),
            window(dict.fromkeys(ALL_BUT_FAIR_SHARE[:4], 0.6), 1.2, "TRILAB"),
        ],
        [
            window({}, 1.2),
            window(dict.fromkeys(ALL_BUT_FAIR_SHARE[:3], 0.6), 1.2, "TRILAB"),
        ],
    ),
    Flip(
        "third-slightly-lower",
        # look-ahead-greedy-yield may be much lower, in 1 % of the windows.
        [window({}, 0.9, "TRILAB")] * 99
        + [window({BEST_NEXT_EVENT: 0.48, LOOK_AHEAD: 0.3}, 0.9, "TRILAB")],
        [window({}, 0.9, "TRILAB")] * 9
        + [window({BEST_NEXT_EVENT: 0.47}, 0.9, "TRILAB")],
    ),
    Flip(
        "fcfs-as-set10",
        [window({"set-10": 0.5049}, 1.0, "TRILAB")],
        [window({"set-10": 0.5051}, 1.0, "TRILAB")],
    ),
    Flip(
        "second-gains-at-saturation",
        by_band(SECOND_SET, (0.9, 1.0, 1.2), "TRILAB"),
        by_band(SECOND_SET[:2], (0.9, 1.0, 1.2), "TRILAB"),
    ),
    Flip(
        "naive-riskier",
        [window({GREEDY_COM: 0.4, "fcfs": 0.4, "set-10": 0.4}, 1.2, "TRILAB")],
        [window({GREEDY_COM: 0.4, "fcfs": 0.6, "set-10": 0.4}, 1.2, "TRILAB")],
    ),
    Flip(
        "look-ahead-best",
        [window({LOOK_AHEAD: 0.6}, 1.0)],
        [window({GREEDY_COM: 0.6}, 1.0)],
    ),
    Flip(
        "look-ahead-closely-followed",
        [
            window({LOOK_AHEAD: 0.7, PERIODIC: 0.69, BEST_NEXT_EVENT: 0.69}, 1.0),
            window({LOOK_AHEAD: 0.69, PERIODIC: 0.7, BEST_NEXT_EVENT: 0.7}, 1.0),
        ],
        [
            window({LOOK_AHEAD: 0.8, PERIODIC: 0.69, BEST_NEXT_EVENT: 0.69}, 1.0),
            window({LOOK_AHEAD: 0.69, PERIODIC: 0.7, BEST_NEXT_EVENT: 0.7}, 1.0),
        ],
    ),
    Flip(
        "gains-higher-at-low-pressure",
        [
            window({}, 0.6),
            window(dict.fromkeys(ALL_BUT_FAIR_SHARE, 0.6), 0.6, "TRILAB"),
        ],
        [
            window({}, 0.6),
            window(dict.fromkeys(ALL_BUT_FAIR_SHARE[1:], 0.6), 0.6, "TRILAB"),
        ],
    ),
    Flip(
        "greedy-com-drops",
        [
            window({GREEDY_COM: y}, w, "TRILAB")
            for y, w in ((0.5, 0.8), (0.48, 1.1), (0.44, 1.3))
        ],
        [
            window({GREEDY_COM: y}, w, "TRILAB")
            for y, w in ((0.5, 0.8), (0.48, 1.1), (0.46, 1.3))
        ],
    ),
    Flip(
        "second-risky-at-low-pressure",
        [window(dict.fromkeys(SECOND_SET, 0.4), 0.6, "TRILAB")],
        [window(dict.fromkeys(SECOND_SET, 0.4), w, "TRILAB") for w in (0.4, 0.8)],
    ),
    Flip(
        "second-gain-grows",
        by_band(SECOND_SET, (1.0, 1.1, 1.2), "TRILAB"),
        by_band(SECOND_SET, (1.0, 1.2, 1.1), "TRILAB"),
    ),
    Flip(
        "third-improves-until-saturation",
        [
            window(dict.fromkeys(THIRD_SET, 0.6), 0.9, "TRILAB"),
            window({}, 1.1, "TRILAB"),
        ],
        [window(dict.fromkeys((PERIODIC, BEST_NEXT_EVENT), 0.6), 0.9, "TRILAB")],
    ),
    Flip(
        "third-gain-grows",
        by_band(THIRD_SET, (1.0, 1.1, 1.3), "TRILAB"),
        by_band(THIRD_SET, (1.0, 1.1, 1.1), "TRILAB"),
    ),
    Flip(
        "greedy-yield-alike",
        by_band((GREEDY_YIELD, PERIODIC), (1.0, 1.02, 1.04), "TRILAB"),
        by_band((GREEDY_YIELD, PERIODIC), (1.0, 1.02, 1.06), "TRILAB"),
    ),
    Flip(
        "pressure-matters-more",
        by_band((GREEDY_YIELD, *THIRD_SET), (1.0, 1.2, 1.1), "NERSC")
        + by_band((GREEDY_YIELD, *THIRD_SET), (1.0, 1.1, 1.2), "TRILAB"),
        by_band((GREEDY_YIELD, *THIRD_SET), (1.0, 1.1, 1.2), "NERSC")
        + by_band((GREEDY_YIELD, *THIRD_SET), (1.0, 1.2, 1.1), "TRILAB"),
    ),
    Flip(
        "greedy-com-reasonable",
        [
            window({GREEDY_COM: 0.5}, 0.9, "TRILAB"),
            window({GREEDY_COM: 0.1}, 1.1, "TRILAB"),
        ],
        [window({GREEDY_COM: 0.4}, 0.9, "TRILAB")],
    ),
    Flip(
        "greedy-com-risky",
        [window({GREEDY_COM: 0.39}, 1.0), *[window({}, 1.0)] * 3],
        [window({GREEDY_COM: 0.41}, 1.0), *[window({}, 1.0)] * 3],
    ),
]


def test_every_claim_is_tested() -> None:
    of_the_table = {"checkpoints-vary", "checkpoints-short"}
    assert {flip.claim for flip in FLIPS} | of_the_table == {
        c.name for c in fig7.claims
    }


@pytest.mark.parametrize("flip", FLIPS, ids=[flip.claim for flip in FLIPS])
def test_a_claim_holds_and_fails(flip: Flip) -> None:
    assert_flips(fig7, flip)


@pytest.mark.parametrize("name", ["greedy-com-all-lower", "second-gains-at-saturation"])
def test_a_claim_without_windows_does_not_hold(name: str) -> None:
    other = "TRILAB" if name.startswith(("nersc", "best")) else "NERSC"
    verdict = claim_of(fig7, name).check(prepared(window({}, 0.7, other)))
    assert not verdict.holds
    assert any(math.isnan(v) for v in verdict.numbers.values())


def test_the_durations_of_checkpoints_differ_on_every_machine() -> None:
    """The classes of jobs are part of the workload, so this claim cannot fail."""
    tables = prepared(window({}, 1.0, "TRILAB", machine=0))
    verdict = claim_of(fig7, "checkpoints-vary").check(tables)
    assert verdict.holds
    assert max(verdict.numbers.values()) >= 10 * min(verdict.numbers.values())


@pytest.mark.parametrize(("machine", "silverton"), [(0, 0.196), (10, 0.109)])
def test_the_slowest_checkpoint_is_short_on_every_machine(
    machine: int, silverton: float
) -> None:
    """2.1 x 2048 nodes x 32 GiB at 200 GiB/s take 688 s, less on larger machines."""
    tables = prepared(window({}, 1.0, "TRILAB", machine=machine))
    verdict = claim_of(fig7, "checkpoints-short").check(tables)
    assert verdict.holds
    assert verdict.numbers["Silverton"] == pytest.approx(silverton, abs=0.006)
    assert verdict.numbers["Silverton"] == max(verdict.numbers.values())
