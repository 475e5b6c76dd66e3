# SPDX-License-Identifier: MIT
"""The windows of APEX by machine: each claim can hold and fail; units of the table."""

from __future__ import annotations

import pytest

from penstock.papers.p1.apex.distributions import windows
from support.apex_tables import (
    Flip,
    assert_flips,
    both_traces,
    claim_of,
    tables_of,
    window,
)

#: Every claim with windows for which it holds and windows for which it does not.
FLIPS = [
    Flip(
        "celio-small-pressure",
        [*both_traces({}, 0.15), *both_traces({}, 1.4, machine=10)],
        [window({}, 0.15), window({}, 0.21, "TRILAB")],
    ),
    Flip(
        "pressure-grows",
        [w for t in (0, 1, 2) for w in both_traces({}, 0.2 + 0.1 * t, machine=t)],
        [w for t in (0, 1, 2) for w in both_traces({}, 0.4 - 0.1 * t, machine=t)],
    ),
    Flip(
        "pressure-range",
        [window({}, 0.11), window({}, 1.44, "TRILAB")],
        [window({}, 0.11), window({}, 1.46, "TRILAB")],
    ),
    Flip(
        "nersc-celio-under-half",
        [window({}, 0.1), window({}, 0.9, machine=3), window({}, 0.9, "TRILAB")],
        [window({}, 0.1), window({}, 0.5)],
    ),
    Flip(
        "trilab-longer",
        [window({}, 1.0), window({}, 1.0, "TRILAB", window=36_000.0)],
        [window({}, 1.0), window({}, 1.0, "TRILAB", window=35_000.0)],
    ),
    Flip(
        # Nodes of Celio have 16 cores, so 4,096 cores are 256 nodes.
        "nersc-small-jobs",
        [window({}, 1.0, nodes=2559), *[window({}, 1.0, nodes=2560)] * 3],
        [window({}, 1.0, nodes=2559), *[window({}, 1.0, nodes=2560)] * 4],
    ),
    Flip(
        "nersc-one-phase",
        [window({}, 1.0, operations=10), *[window({}, 1.0, operations=11)] * 3],
        [window({}, 1.0, operations=10), *[window({}, 1.0, operations=11)] * 4],
    ),
    Flip(
        "trilab-five-phases",
        # On Celio 8,192 cores (512 nodes) write 0.002 of 16 TiB in 0.164 s, so that 7
        # checkpoints of DakotaA are one operation: 7 x 3600.164 s, five times.
        [window({}, 1.0, "TRILAB", window=126_010.0)],
        [window({}, 1.0, "TRILAB", window=126_000.0)],
    ),
    Flip(
        "trilab-few-large",
        # One window with many jobs does not decide.
        [window({}, 1.0)]
        + [window({}, 1.0, "TRILAB", applications=n) for n in (9, 9, 500)],
        [window({}, 1.0), window({}, 1.0, "TRILAB", applications=9, nodes=899)],
    ),
    Flip(
        "nersc-less-used",
        [window({}, 1.0, nodes=8000), window({}, 1.0, "TRILAB", nodes=8001)],
        [window({}, 1.0, nodes=8001), window({}, 1.0, "TRILAB", nodes=8000)],
    ),
]


def test_every_claim_is_tested() -> None:
    assert {flip.claim for flip in FLIPS} == {c.name for c in windows.claims}


@pytest.mark.parametrize("pressures", [(0.09, 1.4), (0.21, 1.4), (0.15, 1.34)])
def test_a_wider_or_a_narrower_range_of_pressures_is_another_range(
    pressures: tuple[float, float],
) -> None:
    tables = windows.prepare(tables_of(*(window({}, w) for w in pressures)))
    assert not claim_of(windows, "pressure-range").check(tables).holds


def test_no_window_on_celio_is_no_evidence() -> None:
    tables = windows.prepare(tables_of(window({}, 0.9, machine=3)))
    assert not claim_of(windows, "nersc-celio-under-half").check(tables).holds


@pytest.mark.parametrize("flip", FLIPS, ids=[flip.claim for flip in FLIPS])
def test_a_claim_holds_and_fails(flip: Flip) -> None:
    assert_flips(windows, flip)


def test_the_table_counts_at_most_the_nodes_that_saturate_the_storage() -> None:
    # Ten jobs that together could draw 5 times the bandwidth: 5 x 166.7 nodes.
    tables = windows.prepare(tables_of(window({}, 0.2, nodes=8894)))
    (row,) = windows.summary(tables).to_dicts()
    assert row["mean_capped_nodes"] == pytest.approx(5 * 200 / 1.2 / 10)
    assert row["usage"] == 1.0
    assert row["median_hours"] == 2.0
    assert row["phases"] == 1.0
