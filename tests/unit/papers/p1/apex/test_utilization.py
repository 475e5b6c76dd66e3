# SPDX-License-Identifier: MIT
"""Figure 9 of bandwidth sharing (Utilization): each claim can hold and fail."""

from __future__ import annotations

import pytest

from penstock.papers.p1.apex.utilization import fig9
from penstock.papers.p1.policies import (
    ALL_POLICIES,
    FAIR_SHARE,
    GREEDY_COM,
    LOOK_AHEAD,
    PERIODIC,
)
from support.apex_tables import PRESSURES, Flip, assert_flips, both_traces, window

_RISING = {policy: number / 10 for number, policy in enumerate(ALL_POLICIES, 1)}
_FALLING = {policy: 1 - value for policy, value in _RISING.items()}
#: Every claim with windows for which it holds and windows for which it does not.
FLIPS = [
    Flip(
        "greedy-com-worst-min-yield",
        both_traces({GREEDY_COM: 0.4}, 1.2),
        both_traces({GREEDY_COM: 0.4, FAIR_SHARE: 0.4}, 1.2),
    ),
    Flip(
        "nersc-lower",
        [window({}, 0.6), window({}, 0.6, "TRILAB", utilization=0.6)],
        [window({}, 0.6), window({}, 0.6, "TRILAB", utilization={GREEDY_COM: 0.6})],
    ),
    Flip(
        "utilization-falls",
        [
            w
            for u, pressure in zip((0.9, 0.8, 0.7), PRESSURES, strict=True)
            for w in both_traces({}, pressure, utilization=u)
        ],
        [
            w
            for u, pressure in zip((0.9, 0.7, 0.8), PRESSURES, strict=True)
            for w in both_traces({}, pressure, utilization=u)
        ],
    ),
    Flip(
        "greedy-com-first",
        both_traces({}, 1.2, utilization={GREEDY_COM: 0.6}),
        both_traces({}, 0.9, utilization={GREEDY_COM: 0.6}),
    ),
    Flip(
        "as-efficiency",
        both_traces({}, 1.2, efficiency=_RISING, utilization=_RISING),
        both_traces({}, 1.2, efficiency=_RISING, utilization=_FALLING),
    ),
    Flip(
        "look-ahead-utilization",
        both_traces({}, 1.0, utilization={LOOK_AHEAD: 0.51}),
        both_traces({}, 1.0, utilization={LOOK_AHEAD: 0.53}),
    ),
    Flip(
        "periodic-utilization",
        [
            window({}, 1.0, utilization={PERIODIC: 0.51}),
            window({}, 1.0, "TRILAB", utilization={PERIODIC: 0.4}),
        ],
        both_traces({}, 1.0, utilization={PERIODIC: 0.51}),
    ),
    Flip(
        "greedy-com-best-utilization",
        both_traces({}, 0.9, utilization={GREEDY_COM: 0.6}),
        both_traces({}, 0.9, utilization={GREEDY_COM: 0.6, FAIR_SHARE: 0.7}),
    ),
    Flip(
        "greedy-com-best-efficiency",
        both_traces({}, 0.9, efficiency={GREEDY_COM: 0.6}),
        both_traces({}, 0.9, efficiency={GREEDY_COM: 0.6, FAIR_SHARE: 0.7}),
    ),
]


def test_every_claim_is_tested() -> None:
    assert {flip.claim for flip in FLIPS} == {c.name for c in fig9.claims}


@pytest.mark.parametrize("flip", FLIPS, ids=[flip.claim for flip in FLIPS])
def test_a_claim_holds_and_fails(flip: Flip) -> None:
    assert_flips(fig9, flip)
