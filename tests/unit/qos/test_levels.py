# SPDX-License-Identifier: MIT
"""The common part of the two-level schedulers: lower level, windows, local shares."""

from __future__ import annotations

from math import inf

import pytest

from penstock.qos import Request, Slo
from penstock.qos.levels import FIRST_DEPTH
from penstock.qos.two_level import HoldingTwoLevel, SendingTwoLevel
from penstock.workloads.clients import MB

SLOS = {"a": Slo(10e6, 0.1), "b": Slo(10e6, 1.0)}

Variant = type[HoldingTwoLevel] | type[SendingTwoLevel]
both_variants = pytest.mark.parametrize("variant", [HoldingTwoLevel, SendingTwoLevel])


@both_variants
def test_admitted_requests_go_by_deadline(variant: Variant) -> None:
    """The first 8 fill the storage; of the others the tight bound goes first."""
    scheduler = variant(SLOS, 0.0, 10.0, 10.0)
    for name in "bbbbbbbbbaa":
        scheduler.arrive(Request("write", 1000, name), 0.0)
    sent = scheduler.dispatch(0.0)
    assert len(sent) == FIRST_DEPTH
    assert [request.application for request in sent[:2]] == ["a", "a"]


@both_variants
def test_nothing_to_do_means_no_wake_up(variant: Variant) -> None:
    scheduler = variant(SLOS, 0.0, 0.5, 0.0)
    assert scheduler.dispatch(0.0) == []
    assert scheduler.wake_s == inf
    scheduler.arrive(Request("write", MB, "a"), 0.1)
    (request,) = scheduler.dispatch(0.1)
    assert scheduler.wake_s == pytest.approx(0.5)
    scheduler.complete(request, MB, 0.2)
    assert scheduler.dispatch(0.2) == []
    assert scheduler.wake_s == inf
    assert scheduler.waiting == scheduler.outstanding == 0


@both_variants
def test_the_credit_counts_the_local_part_of_a_promise(variant: Variant) -> None:
    """Half of A's files are elsewhere, so half of its promise is."""
    scheduler = variant(SLOS, 0.0, 0.5, 1.0)
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
    variant: Variant,
) -> None:
    scheduler = variant(SLOS, 0.0, 0.5, 1.0)
    queue = scheduler._upper.queue_of("b")
    queue.remote_bytes = 1e6
    scheduler._update_total()
    assert scheduler.full_credit_bytes == pytest.approx(10e6)


def test_a_report_names_who_wants_more_only_on_a_shared_storage() -> None:
    for shared, names in ((False, ()), (True, ("a",))):
        scheduler = HoldingTwoLevel(SLOS, 0.0, 0.5, 0.0, shared_storage=shared)
        scheduler.arrive(Request("write", MB, "a"), 0.0)
        assert scheduler.wanting(1.0) == names
    assert SendingTwoLevel(SLOS, 0.0, 0.5, 0.0).wanting(1.0) == ()
