# SPDX-License-Identifier: MIT
"""Claims of a job are believed as far as the kernel has counted them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.live.node.backing import ClaimedBytes

MB = 1e6


def test_claims_that_the_kernel_backs_are_believed() -> None:
    claims = ClaimedBytes()
    for step in range(1, 5):
        assert claims.credit((step * MB, step * 9 * MB)) == (step * MB, step * 9 * MB)
        claims.check(step * 10 * MB, step * 10 * MB, certain=True)
        assert claims.is_backed


def test_claims_without_bytes_stop_to_count() -> None:
    claims = ClaimedBytes()
    claims.credit((0.0, 50 * MB))
    claims.check(50 * MB, 0.0, certain=True)
    assert not claims.is_backed
    assert claims.credit((0.0, 70 * MB)) == (0.0, 50 * MB)
    claims.check(70 * MB, 0.0, certain=True)
    assert claims.credit((10 * MB, 90 * MB)) == (0.0, 50 * MB)


def test_a_second_check_of_the_same_claims_does_not_make_them_true() -> None:
    """The counters of a job may not be read between two checks."""
    claims = ClaimedBytes()
    claims.credit((0.0, 50 * MB))
    for _ in range(2):
        claims.check(50 * MB, 0.0, certain=True)
        assert not claims.is_backed
    assert claims.credit((0.0, 70 * MB)) == (0.0, 50 * MB)


def test_a_job_that_moves_bytes_again_is_believed_again_but_not_for_the_past() -> None:
    claims = ClaimedBytes()
    claims.credit((0.0, 50 * MB))
    claims.check(50 * MB, 0.0, certain=True)
    claims.credit((0.0, 60 * MB))
    claims.check(60 * MB, 10 * MB, certain=True)
    assert claims.is_backed
    assert claims.credit((0.0, 61 * MB)) == (0.0, 51 * MB)


def test_without_all_processes_nothing_is_held_against_a_job() -> None:
    claims = ClaimedBytes()
    claims.check(50 * MB, 0.0, certain=False)
    assert claims.is_backed
    # Nor later: what was not counted is forgiven.
    claims.check(51 * MB, 1 * MB, certain=True)
    assert claims.is_backed


def test_a_little_that_is_buffered_is_no_false_claim() -> None:
    claims = ClaimedBytes()
    claims.check(500_000.0, 0.0, certain=True)
    assert claims.is_backed


def test_an_uncertain_check_does_not_change_what_is_believed() -> None:
    claims = ClaimedBytes()
    claims.credit((50 * MB,))
    claims.check(50 * MB, 0.0, certain=True)
    claims.check(60 * MB, 0.0, certain=False)
    assert not claims.is_backed
    assert claims.credit((60 * MB,)) == (50 * MB,)


def test_a_job_that_lowers_its_counters_is_not_believed_again() -> None:
    claims = ClaimedBytes()
    for claimed in (50 * MB, 80 * MB, 0.0, 90 * MB, 10 * MB, 95 * MB):
        assert claims.credit((claimed,)) == (50 * MB,)
        claims.check(claimed, 0.0, certain=True)
        assert not claims.is_backed


@given(
    st.lists(st.tuples(st.floats(0.0, 1e9), st.floats(0.0, 1e9), st.booleans())),
)
def test_counters_that_are_believed_never_decrease_nor_exceed_the_claims(
    steps: list[tuple[float, float, bool]],
) -> None:
    claims, highest, counted, before = ClaimedBytes(), 0.0, 0.0, 0.0
    for claimed, more_counted, certain in steps:
        highest = max(highest, claimed)
        counted += more_counted
        (credited,) = claims.credit((claimed,))
        assert 0.0 <= before <= credited <= highest
        claims.check(claimed, counted, certain=certain)
        before = credited
