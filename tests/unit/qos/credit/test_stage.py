# SPDX-License-Identifier: MIT
"""The stage that holds requests of applications without credit."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.qos import Credit, CreditScheduler, Request, get_scheduler
from penstock.qos.credit.front import with_credit
from penstock.qos.credit.stage import BURST_S
from penstock.qos.interface import THINK_S
from penstock.qos.state import RIVALS_UNTIL_S
from penstock.qos.two_level import TwoLevel

SIZE = 65_536


def new_stage() -> CreditScheduler:
    return with_credit(get_scheduler("fifo").make({}, 0.0))


def write(application: str = "a", size_bytes: int = SIZE) -> Request:
    return Request("write", size_bytes, application)


def send_until(stage: CreditScheduler, until_s: float) -> list[tuple[float, Request]]:
    """Return the requests that are sent, with their times; each completes at once."""
    sent = []
    now = 0.0
    while now <= until_s:
        for request in stage.dispatch(now):
            sent.append((now, request))
            stage.complete(request, request.size_bytes, now)
        now = stage.wake_s
    return sent


def test_without_rates_all_requests_pass() -> None:
    stage = new_stage()
    requests = [write() for _ in range(100)]
    for request in requests:
        stage.arrive(request, 1.0)
    assert stage.dispatch(1.0) == requests
    assert stage.wake_s == inf


def test_an_application_draws_its_rate_and_others_pass() -> None:
    stage = new_stage()
    stage.set_credit(Credit({"a": 1e6}), 100.0, 0.0)
    for _ in range(200):
        stage.arrive(write("a"), 0.0)
    stage.arrive(write("b"), 0.0)
    sent = send_until(stage, 10.0)
    assert sum(r.application == "b" for _, r in sent) == 1
    drawn_bytes = sum(r.cost_bytes for _, r in sent if r.application == "a")
    assert drawn_bytes == pytest.approx(10e6, abs=SIZE + BURST_S * 1e6)


def test_requests_of_one_application_keep_their_order() -> None:
    stage = new_stage()
    stage.set_credit(Credit({"a": 1e6}), 100.0, 0.0)
    requests = [write("a", size) for size in (SIZE, 5000, 1 << 20, 1)]
    for request in requests:
        stage.arrive(request, 0.0)
    assert [request for _, request in send_until(stage, 50.0)] == requests


def test_a_large_request_passes_at_once_and_is_paid_for_afterwards() -> None:
    stage = new_stage()
    stage.set_credit(Credit({"a": 1e6}), 100.0, 0.0)
    first, second = write("a", 2_000_000), write("a")
    stage.arrive(first, 0.0)
    stage.arrive(second, 0.0)
    assert stage.dispatch(0.0) == [first]
    assert stage.wake_s == pytest.approx(2.0)
    assert stage.dispatch(1.9) == []
    assert stage.dispatch(2.0) == [second]


def test_at_the_end_of_the_lease_all_requests_pass() -> None:
    stage = new_stage()
    stage.set_credit(Credit({"a": 1.0}), 0.5, 0.0)
    for _ in range(3):
        stage.arrive(write(), 0.0)
    assert len(stage.dispatch(0.0)) == 1
    assert stage.wake_s == 0.5
    assert len(stage.dispatch(0.5)) == 2
    assert stage.wake_s == inf


@pytest.mark.parametrize("rate", [0.0, -1.0, 1e-300])
def test_no_rate_holds_a_request_longer_than_the_lease(rate: float) -> None:
    stage = new_stage()
    stage.set_credit(Credit({"a": rate}), 1.0, 0.0)
    stage.arrive(write(), 0.0)
    stage.arrive(write(), 0.0)
    assert len(send_until(stage, 1.0)) == 2


def test_a_rate_that_is_not_renewed_ends() -> None:
    stage = new_stage()
    stage.set_credit(Credit({"a": 1.0}), 1.0, 0.0)
    stage.arrive(write(), 0.0)
    stage.arrive(write(), 0.0)
    assert len(stage.dispatch(0.0)) == 1
    stage.set_credit(Credit({"b": 1.0}), 1.0, 0.1)
    assert len(stage.dispatch(0.1)) == 1


def test_a_new_rate_does_not_forgive_what_was_overdrawn() -> None:
    stage = new_stage()
    stage.set_credit(Credit({"a": 1e6}), 100.0, 0.0)
    stage.arrive(write("a", 1_000_000), 0.0)
    stage.dispatch(0.0)
    for n in range(1, 10):
        stage.set_credit(Credit({"a": 1e6}), 100.0, n / 10)
        stage.arrive(write("a"), n / 10)
        assert stage.dispatch(n / 10) == []
    assert len(stage.dispatch(1.0)) == 1


def test_unused_bytes_are_given_back() -> None:
    stage = new_stage()
    stage.set_credit(Credit({"a": 1e6}), 100.0, 0.0)
    request = write("a", 1_000_000)
    stage.arrive(request, 0.0)
    stage.dispatch(0.0)
    stage.complete(request, 0, 0.0)
    use = stage.use(0.0)["a"]
    assert use.sent_bytes == use.done_bytes == 4096
    stage.arrive(write("a"), 0.005)
    assert len(stage.dispatch(0.005)) == 1


def test_use_tells_what_is_sent_done_busy_and_blocked() -> None:
    stage = new_stage()
    assert stage.use(0.0) == {}
    stage.set_credit(Credit({"a": 1e6}), 100.0, 0.0)
    first = write()
    stage.arrive(first, 1.0)
    stage.arrive(write(), 1.0)
    assert stage.dispatch(1.0) == [first]
    use = stage.use(1.01)["a"]
    assert (use.sent_bytes, use.done_bytes, use.blocked) == (SIZE, 0.0, 1)
    assert use.busy_s == pytest.approx(0.01)


def test_a_short_pause_counts_as_busy() -> None:
    stage = new_stage()
    for begin_s in (1.0, 1.1 + THINK_S / 2, 1.5):
        request = write()
        stage.arrive(request, begin_s)
        stage.dispatch(begin_s)
        stage.complete(request, SIZE, begin_s + 0.1)
    assert stage.use(9.0)["a"].busy_s == pytest.approx(0.3 + THINK_S / 2)


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 1 << 21), st.floats(0, 0.2)),
        max_size=40,
    ),
    st.floats(0.0, 1e7),
)
def test_every_request_is_sent_once(
    arrivals: list[tuple[str, int, float]], rate: float
) -> None:
    stage = new_stage()
    now, sent, requests = 0.0, [], []
    for application, size_bytes, pause_s in arrivals:
        now += pause_s
        stage.set_credit(Credit({"a": rate}), 1.0, now)
        requests.append(write(application, size_bytes))
        stage.arrive(requests[-1], now)
        sent += stage.dispatch(now)
    sent += stage.dispatch(now + 1.0)
    assert len(sent) == len(requests)
    assert set(sent) == set(requests)


def test_rates_tell_the_scheduler_that_others_use_the_storage() -> None:
    scheduler = get_scheduler("two-level").make({}, 0.0)
    assert isinstance(scheduler, TwoLevel)
    stage = with_credit(scheduler)
    stage.set_credit(Credit({}), 1.0, 5.0)
    assert scheduler.columns.value[RIVALS_UNTIL_S] == -inf
    stage.set_credit(Credit({"a": 1e6}), 1.0, 5.0)
    assert scheduler.columns.value[RIVALS_UNTIL_S] == 6.0


def test_a_cap_limits_an_application_without_a_lease() -> None:
    stage = new_stage()
    stage.set_caps({"a": 1e6}, 0.0)
    for _ in range(200):
        stage.arrive(write("a"), 0.0)
    drawn_bytes = sum(r.cost_bytes for _, r in send_until(stage, 10.0))
    assert drawn_bytes == pytest.approx(10e6, abs=SIZE + BURST_S * 1e6)


@pytest.mark.parametrize(("granted", "cap"), [(1e6, 4e6), (4e6, 1e6)])
def test_the_lower_of_grant_and_cap_counts(granted: float, cap: float) -> None:
    stage = new_stage()
    stage.set_caps({"a": cap}, 0.0)
    stage.set_credit(Credit({"a": granted}), 100.0, 0.0)
    for _ in range(200):
        stage.arrive(write("a"), 0.0)
    drawn_bytes = sum(r.cost_bytes for _, r in send_until(stage, 5.0))
    assert drawn_bytes == pytest.approx(5e6, abs=SIZE + BURST_S * 1e6)


def test_a_cap_goes_on_when_the_lease_ends_and_ends_when_it_is_removed() -> None:
    stage = new_stage()
    stage.set_caps({"a": 2 * SIZE}, 0.0)
    stage.set_credit(Credit({"a": 1.0}), 1.0, 0.0)
    for _ in range(9):
        stage.arrive(write(), 0.0)
    assert len(stage.dispatch(0.0)) == 1
    assert len(send_until(stage, 2.1)) == 2
    stage.set_caps({}, 2.1)
    assert len(stage.dispatch(2.1)) == 6


def test_who_is_held_by_its_cap_does_not_wait_for_credit() -> None:
    stage = new_stage()
    stage.set_caps({"a": 1e5}, 0.0)
    stage.set_credit(Credit({"a": 1e6, "b": 1e6}), 1.0, 0.0)
    for name in "aabb":
        stage.arrive(write(name), 0.0)
    stage.dispatch(0.0)
    blocked = {name: use.blocked for name, use in stage.use(0.0).items()}
    assert blocked == {"a": 0, "b": 1}
