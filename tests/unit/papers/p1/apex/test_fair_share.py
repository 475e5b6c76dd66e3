# SPDX-License-Identifier: MIT
"""Figure 5 of bandwidth sharing (fair-share): each claim can hold and fail."""

from __future__ import annotations

import math

import polars as pl
import pytest

from penstock.papers.p1.apex.fair_share import fig5
from penstock.papers.p1.policies import FAIR_SHARE
from support.apex_tables import (
    PRESSURES,
    Flip,
    assert_flips,
    claim_of,
    prepared,
    window,
)


def _trend(
    trace: str, yields: tuple[float, ...], machines: tuple[int, ...]
) -> list[pl.DataFrame]:
    """Return a window per band of W with these MinYields and machines."""
    return [
        window({FAIR_SHARE: y}, w, trace, machine=m)
        for y, w, m in zip(yields, PRESSURES, machines, strict=True)
    ]


#: Every claim with windows for which it holds and windows for which it does not.
FLIPS = [
    Flip(
        "nersc-high-at-low-pressure",
        [
            window({FAIR_SHARE: 0.81}, 0.45),
            *(window({FAIR_SHARE: 0.1}, w) for w in (0.39, 0.5)),
        ],
        [window({FAIR_SHARE: 0.79}, 0.4)],
    ),
    Flip(
        "nersc-falls",
        [window({FAIR_SHARE: 1 - w / 2}, w) for w in PRESSURES],
        [window({FAIR_SHARE: w / 2}, w) for w in PRESSURES],
    ),
    Flip(
        "nersc-under-half-at-one",
        [window({FAIR_SHARE: 0.9}, 1.0), window({FAIR_SHARE: 0.4}, 1.0)],
        [window({FAIR_SHARE: 0.6}, 1.0), window({FAIR_SHARE: 0.4}, 1.2)],
    ),
    Flip(
        "nersc-one-at-high-pressure",
        [window({FAIR_SHARE: 1.0}, 1.4)],
        [window({FAIR_SHARE: 1.0}, w) for w in (1.1, 1.5)],
    ),
    Flip(
        "trilab-none-under",
        [
            window({FAIR_SHARE: 0.41}, 1.3, "TRILAB"),
            window({FAIR_SHARE: 0.1}, 1.5, "TRILAB"),
        ],
        [window({FAIR_SHARE: 0.39}, 1.3, "TRILAB")],
    ),
    Flip(
        "trilab-none-close-to-one",
        [
            window({FAIR_SHARE: 0.9}, 1.3, "TRILAB"),
            window({FAIR_SHARE: 1.0}, 0.9, "TRILAB"),
        ],
        [window({FAIR_SHARE: 0.96}, 1.3, "TRILAB")],
    ),
    Flip(
        "trilab-saturates",
        [window({}, 1.0, "TRILAB")],
        [window({}, 0.9, "TRILAB"), window({}, 1.2, "TRILAB", machine=3)],
    ),
    Flip(
        "nersc-low-yields-multiply",
        [
            *(window({FAIR_SHARE: y}, 0.8) for y in (0.6, 0.6)),
            *(window({FAIR_SHARE: y}, 1.0) for y in (0.6, 0.4)),
            *(window({FAIR_SHARE: y}, 1.3) for y in (0.4, 0.4)),
        ],
        [window({FAIR_SHARE: y}, w) for y, w in ((0.6, 0.8), (0.4, 1.0), (0.4, 1.3))],
    ),
    Flip(
        "nersc-machine-matters",
        [window({}, w, machine=m) for w, m in ((0.5, 0), (0.8, 5), (0.7, 10))],
        [window({}, w, machine=m) for w, m in ((0.8, 0), (0.5, 5), (0.7, 10))],
    ),
    Flip(
        "trilab-machine-matters",
        [window({}, m / 10, "TRILAB", machine=m) for m in (4, 5, 10)],
        [
            window({}, w, "TRILAB", machine=m)
            for w, m in ((0.6, 2), (0.5, 5), (1.0, 10))
        ],
    ),
    Flip(
        "trilab-falls",
        [window({FAIR_SHARE: 1 - w / 2}, w, "TRILAB") for w in PRESSURES],
        [
            window({FAIR_SHARE: y}, w, "TRILAB")
            for y, w in zip((0.5, 0.9, 0.4), PRESSURES, strict=True)
        ],
    ),
    Flip(
        "nersc-mostly-low-pressure",
        [window({}, 0.6), window({}, 0.6), window({}, 0.8)],
        [window({}, 0.6), window({}, 0.7)],
    ),
    Flip(
        "trilab-clearer",
        [
            *_trend("NERSC", (0.9, 0.6, 0.7), (0, 8, 4)),
            *_trend("TRILAB", (0.9, 0.7, 0.6), (0, 4, 8)),
        ],
        [
            *_trend("NERSC", (0.9, 0.7, 0.6), (0, 4, 8)),
            *_trend("TRILAB", (0.9, 0.6, 0.7), (0, 8, 4)),
        ],
    ),
]


def test_every_claim_is_tested() -> None:
    assert {flip.claim for flip in FLIPS} == {c.name for c in fig5.claims}


@pytest.mark.parametrize("flip", FLIPS, ids=[flip.claim for flip in FLIPS])
def test_a_claim_holds_and_fails(flip: Flip) -> None:
    assert_flips(fig5, flip)


@pytest.mark.parametrize(
    "name", ["nersc-one-at-high-pressure", "trilab-none-close-to-one"]
)
def test_a_claim_without_windows_does_not_hold(name: str) -> None:
    other = "TRILAB" if name.startswith("nersc") else "NERSC"
    verdict = claim_of(fig5, name).check(prepared(window({}, 0.7, other)))
    assert not verdict.holds
    assert all(math.isnan(v) for v in verdict.numbers.values())


def test_saturation_on_larger_machines_only_depends_on_the_machine() -> None:
    windows = [window({}, 0.5, "TRILAB"), window({}, 1.2, "TRILAB", machine=3)]
    verdict = claim_of(fig5, "trilab-saturates").check(prepared(*windows))
    assert not verdict.holds
    assert (verdict.depends_on, verdict.holds_at) == ("machine", ("M_3",))
