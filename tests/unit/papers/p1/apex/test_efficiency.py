# SPDX-License-Identifier: MIT
"""Figure 8 of bandwidth sharing (Efficiency): each claim can hold and fail."""

from __future__ import annotations

import math

import pytest

from penstock.papers.p1.apex.efficiency import fig8
from penstock.papers.p1.policies import (
    BEST_NEXT_EVENT,
    FAIR_SHARE,
    GREEDY_COM,
    LOOK_AHEAD,
    PERIODIC,
)
from support.apex_tables import (
    Flip,
    assert_flips,
    both_traces,
    claim_of,
    prepared,
    window,
)

#: Every claim with windows for which it holds and windows for which it does not.
FLIPS = [
    Flip(
        "nersc-drops-more",
        [window({}, 0.9, efficiency=0.9), window({}, 1.3, efficiency=0.7)]
        + [window({}, w, "TRILAB", efficiency=e) for w, e in ((0.9, 0.9), (1.3, 0.8))],
        [window({}, 0.9, efficiency=0.9), window({}, 1.3, efficiency=0.8)]
        + [window({}, w, "TRILAB", efficiency=e) for w, e in ((0.9, 0.9), (1.3, 0.7))],
    ),
    Flip(
        "trilab-next-group",
        [window({}, 1.2, "TRILAB", efficiency={GREEDY_COM: 0.54, FAIR_SHARE: 0.46})],
        [window({}, 1.2, "TRILAB", efficiency={GREEDY_COM: 0.54, FAIR_SHARE: 0.44})],
    ),
    Flip(
        "trilab-hidden",
        [window({}, 1.2, "TRILAB", efficiency={"set-10": 0.509})],
        [window({}, 1.2, "TRILAB", efficiency={"set-10": 0.511})],
    ),
    Flip(
        "trilab-holds",
        [window({}, w, "TRILAB", efficiency=e) for w, e in ((0.55, 0.9), (0.95, 0.86))],
        [window({}, w, "TRILAB", efficiency=e) for w, e in ((0.55, 0.9), (0.95, 0.84))],
    ),
    Flip(
        "trilab-greedy-com-first",
        [window({}, 1.2, "TRILAB", efficiency={GREEDY_COM: 0.6})],
        [window({}, 1.2, "TRILAB", efficiency={GREEDY_COM: 0.6, FAIR_SHARE: 0.6})],
    ),
    Flip(
        "trilab-last-group",
        [
            window(
                {},
                1.2,
                "TRILAB",
                efficiency={
                    GREEDY_COM: 0.7,
                    FAIR_SHARE: 0.6,
                    LOOK_AHEAD: 0.6,
                    BEST_NEXT_EVENT: 1,
                },
            )
        ],
        [
            window(
                {},
                1.2,
                "TRILAB",
                efficiency={GREEDY_COM: 0.7, FAIR_SHARE: 0.6, LOOK_AHEAD: 0.6},
            )
        ],
    ),
    Flip(
        "nersc-drops",
        [window({}, w, efficiency=e) for w, e in ((0.55, 0.9), (0.95, 0.84))],
        [window({}, w, efficiency=e) for w, e in ((0.55, 0.9), (0.95, 0.86))],
    ),
    Flip(
        "saturation-drops",
        [*both_traces({}, 0.9, efficiency=0.9), *both_traces({}, 1.3, efficiency=0.8)],
        [*both_traces({}, 0.9, efficiency=0.8), *both_traces({}, 1.3, efficiency=0.8)],
    ),
    Flip(
        "nersc-chaotic",
        [window({}, 1.2, efficiency=e) for e in (0.4, 0.8)]
        + [window({}, 1.2, "TRILAB", efficiency=e) for e in (0.5, 0.6)],
        [window({}, 1.2, efficiency=e) for e in (0.5, 0.6)]
        + [window({}, 1.2, "TRILAB", efficiency=e) for e in (0.4, 0.8)],
    ),
    Flip(
        "trilab-more-efficient",
        [window({}, 0.6), window({}, 0.6, "TRILAB", efficiency=0.6)],
        [window({}, 0.6), window({}, 0.6, "TRILAB", efficiency={FAIR_SHARE: 0.6})],
    ),
    Flip(
        "trilab-more-efficient-when-saturated",
        [window({}, 1.3), window({}, 1.3, "TRILAB", efficiency=0.6)],
        [
            *both_traces({}, 1.3),
            window({}, 0.6, "TRILAB", efficiency=0.6),
        ],
    ),
    Flip(
        "look-ahead-efficiency",
        [
            window({}, 1.0, efficiency={LOOK_AHEAD: 0.51}),
            window({}, 1.0, "TRILAB", efficiency={LOOK_AHEAD: 0.481}),
        ],
        [
            window({}, 1.0, efficiency={LOOK_AHEAD: 0.51}),
            window({}, 1.0, "TRILAB", efficiency={LOOK_AHEAD: 0.479}),
        ],
    ),
    Flip(
        "periodic-efficiency",
        [
            window({}, 1.0, efficiency={PERIODIC: 0.51}),
            window({}, 1.0, "TRILAB", efficiency={PERIODIC: 0.4}),
        ],
        [
            window({}, 1.0, efficiency={PERIODIC: 0.51}),
            window({}, 1.0, "TRILAB", efficiency={PERIODIC: 0.51}),
        ],
    ),
    Flip(
        "nersc-greedy-com-first",
        [window({}, 1.2, efficiency={GREEDY_COM: 0.6})],
        [window({}, 1.2, efficiency={GREEDY_COM: 0.6, FAIR_SHARE: 0.6})],
    ),
]


def test_every_claim_is_tested() -> None:
    assert {flip.claim for flip in FLIPS} == {c.name for c in fig8.claims}


@pytest.mark.parametrize("flip", FLIPS, ids=[flip.claim for flip in FLIPS])
def test_a_claim_holds_and_fails(flip: Flip) -> None:
    assert_flips(fig8, flip)


def test_a_claim_without_windows_does_not_hold() -> None:
    claim = claim_of(fig8, "trilab-greedy-com-first")
    verdict = claim.check(prepared(window({}, 0.7)))
    assert not verdict.holds
    values = [v for row in verdict.numbers.values() for v in row.values()]
    assert all(math.isnan(v) for v in values)


def test_a_claim_may_depend_on_the_weights() -> None:
    one = window(
        {}, 1.2, "TRILAB", efficiency={GREEDY_COM: 0.4}, cap_efficiency={GREEDY_COM: 1}
    )
    verdict = claim_of(fig8, "trilab-greedy-com-first").check(prepared(one))
    assert not verdict.holds
    assert (verdict.depends_on, verdict.holds_at) == ("weights", ("b_i (figure)",))
