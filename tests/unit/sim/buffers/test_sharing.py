# SPDX-License-Identifier: MIT
"""How a policy shares one target among writers and drains."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policies import get_policy
from penstock.sim.buffers.model import Congestion, Writer
from penstock.sim.buffers.queue import Operation, Part, TargetQueue
from penstock.sim.buffers.sharing import Columns, Shares, TargetRules, share_target
from penstock.sim.buffers.state import ProcessGroup, WriterState

FAIR = get_policy("fair-share")


def columns(applications: int) -> Columns:
    """Return columns without any history: writings, then drains."""
    entries = 2 * applications
    return Columns(
        window_begin=0.0,
        window_end=100.0,
        dedicated_events=2.0,
        release=[0.0] * entries,
        nodes=[1] * entries,
        lost=[0.0] * entries,
        operations=[0] * entries,
        iterations=[0] * entries,
        iteration_time=[0.0] * entries,
        work_before=[0.0] * entries,
    )


def queue(entry: int, cap: float = 10.0, processes: float = 1.0) -> TargetQueue:
    """Return a queue in which processes wait that can draw `cap` each."""
    made = TargetQueue(entry)
    made.cap, made.request_cap = 10.0, cap
    group = ProcessGroup(WriterState(Writer("A", ()), 0), 0, 1, processes, ())
    operation = Operation(group, 0.0, 50.0)
    made.add(Part(operation, made, 1, 50.0), 0.0)
    return made


#: With two waiting requests 0.8 of the capacity are left, with one almost all.
LOSSY = Congestion(loss=0.25, reference_requests=2.0, exponent=60.0)


def shared(
    *queues: TargetQueue,
    background: bool = False,
    congestion: Congestion | None = None,
    policy: bool = True,
) -> Shares:
    """Share a target of capacity 10 among two applications, at time 1."""
    rules = TargetRules(
        10.0,
        congestion or Congestion(),
        sharing=FAIR if policy else None,
        draining=FAIR if policy else None,
        background=background,
    )
    return share_target(rules, 1.0, queues, lambda: columns(2))


@pytest.mark.parametrize("policy", [True, False])
def test_writers_and_drains_share_alike(policy: bool) -> None:
    assert shared(queue(0), queue(3), policy=policy).rates == {0: 5.0, 3: 5.0}


def test_without_a_policy_every_request_gets_the_same_share() -> None:
    """Three processes against one; and one that can draw little."""
    rates = shared(queue(0, processes=3.0), queue(1), policy=False).rates
    assert rates == {0: 7.5, 1: 2.5}
    rates = shared(queue(0, cap=1.0, processes=3.0), queue(1), policy=False).rates
    assert rates == pytest.approx({0: 3 * 10 / 13, 1: 10 * 10 / 13})
    assert shared(queue(0, processes=3.0), policy=False).rates == {0: 10.0}
    assert shared(queue(0, cap=2.0), queue(1, cap=3.0), policy=False).rates == {
        0: 2.0,
        1: 3.0,
    }


def test_a_policy_shares_among_applications_whatever_their_processes() -> None:
    assert shared(queue(0, processes=3.0), queue(1)).rates == {0: 5.0, 1: 5.0}


@pytest.mark.parametrize("policy", [True, False])
def test_drains_in_the_background_get_what_writers_leave(policy: bool) -> None:
    def rates(*queues: TargetQueue) -> Mapping[int, float]:
        return shared(*queues, background=True, policy=policy).rates

    assert rates(queue(0), queue(3)) == {0: 10.0}
    assert rates(queue(0, cap=4.0), queue(3)) == {0: 4.0, 3: 6.0}
    assert rates(queue(2), queue(3)) == {2: 5.0, 3: 5.0}


@pytest.mark.parametrize("policy", [True, False])
def test_waiting_requests_cost_capacity(policy: bool) -> None:
    def rates(*queues: TargetQueue) -> Mapping[int, float]:
        return shared(*queues, congestion=LOSSY, policy=policy).rates

    assert rates(queue(0), queue(1)) == pytest.approx({0: 4.0, 1: 4.0})
    assert rates(queue(0)) == pytest.approx({0: 10.0})
    # Two processes of one application cost as much as two applications.
    assert rates(queue(0, processes=2.0)) == pytest.approx({0: 8.0})


def test_requests_that_a_policy_does_not_serve_cost_nothing() -> None:
    rules = TargetRules(10.0, LOSSY, sharing=get_policy("fcfs"))
    shares = share_target(rules, 1.0, [queue(0), queue(1)], lambda: columns(2))
    assert shares.rates == pytest.approx({0: 10.0, 1: 0.0})


def test_drains_beside_a_writer_pay_for_congestion() -> None:
    rates = shared(
        queue(0, 4.0), queue(3), background=True, congestion=LOSSY, policy=False
    ).rates
    assert rates == pytest.approx({0: 4.0, 3: 4.0})


@given(
    caps=st.lists(st.floats(0.1, 20.0), min_size=4, max_size=4),
    present=st.sets(st.integers(0, 3), min_size=1),
    background=st.booleans(),
    policy=st.booleans(),
    loss=st.floats(0.0, 2.0),
)
def test_no_rate_exceeds_its_cap_and_all_rates_the_capacity(
    caps: list[float], present: set[int], background: bool, policy: bool, loss: float
) -> None:
    queues = [queue(entry, caps[entry]) for entry in sorted(present)]
    rates = shared(
        *queues,
        background=background,
        policy=policy,
        congestion=Congestion(loss, 2.0, 2.0),
    ).rates
    for entry, rate in rates.items():
        assert 0.0 <= rate <= caps[entry] * (1 + 1e-9)
    assert sum(rates.values()) <= 10.0 * (1 + 1e-9)
