# SPDX-License-Identifier: MIT
"""What the upper level of the two-level scheduler admits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.qos import Request, Slo
from penstock.qos.two_level import TwoLevel
from penstock.workloads.clients import MB

SLOS = {"a": Slo(10e6, 0.1), "b": Slo(10e6, 1.0)}
both_variants = pytest.mark.parametrize("holds", [True, False])


@settings(max_examples=80, deadline=None)
@given(
    script=st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.integers(1, 3 * MB),
            st.floats(0, 0.3),
            st.integers(0, 3),
        ),
        max_size=80,
    ),
)
def test_the_credit_of_the_paper_has_bounds(
    script: list[tuple[str, int, float, int]],
) -> None:
    """D is at most D_full, and below 0 by at most the request admitted last."""
    slos = {"a": Slo(4e6, 0.2), "b": Slo(2e6, 0.5)}
    scheduler = TwoLevel(slos, 0.0, 0.5, 0.0, holds=False)
    now, largest = 1.0, 0
    sent: list[Request] = []
    for application, size, gap, completed in script:
        now += gap
        request = Request("write", size, application)
        largest = max(largest, request.cost_bytes)
        scheduler.arrive(request, now)
        sent += scheduler.dispatch(now)
        for _ in range(min(completed, len(sent))):
            done = sent.pop(0)
            scheduler.complete(done, done.size_bytes, now)
        sent += scheduler.dispatch(now)
        assert -largest <= scheduler.credit_bytes <= scheduler.full_credit_bytes


def test_every_admitted_request_takes_its_cost_from_the_credit() -> None:
    """The storage is not spare, and the credit window lasts."""
    scheduler = TwoLevel({"a": Slo(10e6, 1.0)}, 0.0, 9.0, 9.0, holds=False)
    for count in range(1, 20):
        scheduler.arrive(Request("write", MB, "a"), 0.0)
        scheduler.dispatch(0.0)
        # D is filled for the first request only.
        assert scheduler.credit_bytes == scheduler.full_credit_bytes - count * MB


def test_without_credit_nothing_is_admitted_until_the_storage_is_spare() -> None:
    """Spare means fewer than 0.9 x 8 requests below; D_full is one request, 1 MB."""
    scheduler = TwoLevel({"a": Slo(10e6, 1.0)}, 0.0, 0.5, 0.1, holds=False)
    for _ in range(40):
        scheduler.arrive(Request("write", MB, "a"), 0.0)
    sent = scheduler.dispatch(0.0)
    assert len(sent) == 8
    assert scheduler.credit_bytes <= 0
    assert scheduler.wake_s == pytest.approx(0.1)
    assert scheduler.dispatch(0.05) == []
    assert scheduler.dispatch(0.11) == []  # One more is admitted, but not sent.
    assert scheduler.waiting == 32
    scheduler.complete(sent[0], MB, 0.12)
    assert len(scheduler.dispatch(0.12)) == 1


def test_requests_within_a_promise_wait_in_the_lower_level_up_to_the_credit() -> None:
    """D_full = 10 MB/s x 0.3 s: 3 requests wait below, beside the 8 at the storage.

    Before its first request the application has saved 1 s of its promise, 10 requests.
    """
    scheduler = TwoLevel({"a": Slo(10e6, 1.0)}, 0.0, 0.5, 0.3)
    for _ in range(40):
        scheduler.arrive(Request("write", MB, "a"), 0.0)
    sent = scheduler.dispatch(0.0)
    assert len(sent) == 8
    assert scheduler.credit_bytes == pytest.approx(3e6 - 8e6)
    for request in sent[:6]:
        scheduler.complete(request, MB, 0.1)
    assert len(scheduler.dispatch(0.1)) == 6


@both_variants
def test_the_credit_counts_the_local_part_of_a_promise(holds: bool) -> None:
    """Half of A's files are elsewhere, so half of its promise is."""
    scheduler = TwoLevel(SLOS, 0.0, 0.5, 1.0, holds=holds)
    assert scheduler.full_credit_bytes == pytest.approx(20e6)
    scheduler.set_layout({"a": 2})
    now = 0.0
    for _ in range(40):
        now += 0.05
        scheduler.arrive(Request("write", MB, "a"), now)
        for request in scheduler.dispatch(now):
            scheduler.complete(request, MB, now)
    assert scheduler.full_credit_bytes == pytest.approx(15e6, rel=0.05)


@both_variants
def test_an_application_that_is_only_elsewhere_has_no_local_promise(
    holds: bool,
) -> None:
    scheduler = TwoLevel(SLOS, 0.0, 0.5, 1.0, holds=holds)
    scheduler.columns.remote_bytes[scheduler.index_of("b")] = 1e6
    scheduler.set_slos(SLOS, 0.0)
    assert scheduler.full_credit_bytes == pytest.approx(10e6)
