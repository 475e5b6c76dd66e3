# SPDX-License-Identifier: MIT
"""Figure 6 of bandwidth sharing (ratios on NERSC): each claim can hold and fail."""

from __future__ import annotations

import math

import numpy as np
import pytest

from penstock.papers.p1.apex.nersc import fig6
from penstock.papers.p1.policies import (
    BEST_NEXT_EVENT,
    GREEDY_COM,
    LOOK_AHEAD,
    PERIODIC,
    SECOND_SET,
    THIRD_SET,
)
from support.apex_tables import Flip, assert_flips, by_band, claim_of, prepared, window

#: Every claim with windows for which it holds and windows for which it does not.
FLIPS = [
    Flip(
        "greedy-com-uniform",
        [window({GREEDY_COM: 0.5 * r}, 1.0) for r in np.linspace(0.9, 1.1, 21)],
        [window({GREEDY_COM: 0.5}, 1.0)] * 21,
    ),
    Flip(
        "greedy-com-unreliable",
        [window({GREEDY_COM: 0.4}, 1.0), window({GREEDY_COM: 0.6}, 1.0)],
        [window({GREEDY_COM: 0.6}, 1.0)],
    ),
    Flip(
        "second-better-at-high-pressure",
        by_band(SECOND_SET, (0.9, 1.0, 1.1), "NERSC"),
        by_band(SECOND_SET, (0.8, 0.9, 0.95), "NERSC"),
    ),
    Flip(
        "second-risky-everywhere",
        by_band(SECOND_SET, (0.9, 0.9, 0.9), "NERSC"),
        by_band(SECOND_SET, (0.9, 0.9, 0.96), "NERSC"),
    ),
    Flip(
        "fcfs-as-set10",
        [window({"fcfs": 0.7, "set-10": 0.7}, 1.0)],
        [window({"fcfs": 0.7, "set-10": 0.7051}, 1.0)],
    ),
    Flip(
        "third-improves",
        [window(dict.fromkeys(THIRD_SET, 0.6), 1.0)],
        [window({**dict.fromkeys(THIRD_SET, 0.6), LOOK_AHEAD: 0.5}, 1.0)],
    ),
    Flip(
        "third-gain-grows",
        by_band(THIRD_SET, (1.0, 1.1, 1.3), "NERSC"),
        by_band(THIRD_SET, (1.0, 1.1, 1.1), "NERSC"),
    ),
    Flip(
        "best-next-event-riskiest",
        [window({BEST_NEXT_EVENT: 0.49}, 1.0)],
        [window({LOOK_AHEAD: 0.49}, 1.0)],
    ),
    Flip(
        "best-next-event-worst",
        [window({BEST_NEXT_EVENT: 0.48}, 1.0)],
        [window({BEST_NEXT_EVENT: 0.47}, 1.0)],
    ),
    Flip(
        "periodic-never-lower",
        [window({PERIODIC: 0.4999}, 1.0)],
        [window({PERIODIC: 0.49}, 1.0)],
    ),
    Flip(
        "second-risky",
        [window(dict.fromkeys(SECOND_SET, 0.4), 1.0), *[window({}, 1.0)] * 19],
        [window(dict.fromkeys(SECOND_SET, 0.4), 1.0), *[window({}, 1.0)] * 20],
    ),
    Flip(
        "second-gains-grow",
        by_band(SECOND_SET, (1.1, 1.0, 1.2), "NERSC"),
        by_band(SECOND_SET, (1.2, 1.0, 1.1), "NERSC"),
    ),
]


def test_every_claim_is_tested() -> None:
    assert {flip.claim for flip in FLIPS} == {c.name for c in fig6.claims}


@pytest.mark.parametrize("flip", FLIPS, ids=[flip.claim for flip in FLIPS])
def test_a_claim_holds_and_fails(flip: Flip) -> None:
    assert_flips(fig6, flip)


@pytest.mark.parametrize("name", ["best-next-event-worst"])
def test_a_claim_without_windows_does_not_hold(name: str) -> None:
    other = "TRILAB" if name.startswith(("nersc", "best")) else "NERSC"
    verdict = claim_of(fig6, name).check(prepared(window({}, 0.7, other)))
    assert not verdict.holds
    assert all(math.isnan(v) for v in verdict.numbers.values())
