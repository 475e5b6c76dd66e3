# SPDX-License-Identifier: MIT
"""Credit in front of schedulers in plain Python."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.qos import Credit, CreditScheduler, Request, get_scheduler
from penstock.qos.credit.front import CreditFront, with_credit
from penstock.qos.scheduler import KernelScheduler

#: In plain Python, by arrival with this rate: the order of ``fifo``.
PLAIN = "penstock.qos._template:rate=1e30,depth=0"


class Step(NamedTuple):
    """A request arrives, and the oldest one may complete."""

    application: str
    size_bytes: int
    pause_s: float
    completes: bool
    rate: float


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from("ab"),
        st.integers(0, 1 << 20),
        st.floats(0, 0.2),
        st.booleans(),
        st.sampled_from((1e5, 1e6, 1e7)),
    ),
    max_size=40,
)


def new_scheduler(name: str) -> CreditScheduler:
    return with_credit(get_scheduler(name).make({}, 0.0))


def decisions(scheduler: CreditScheduler, script: list[Step]) -> list[object]:
    """Return which requests are sent, when to ask again, and what was used."""
    now, said, at_storage = 0.0, list[object](), list[Request]()
    scheduler.set_caps({"b": 5e5}, 0.0)
    for number, step in enumerate(script):
        now += step.pause_s
        request = Request("write", step.size_bytes, step.application, number)
        scheduler.arrive(request, now)
        at_storage += (sent := scheduler.dispatch(now))
        scheduler.set_credit(Credit({"a": step.rate}), 0.5, now)
        at_storage += (more := scheduler.dispatch(now))
        if step.completes and at_storage:
            done = at_storage.pop(0)
            scheduler.complete(done, done.size_bytes // 2, now)
            at_storage += (last := scheduler.dispatch(now))
            more = more + last
        said.append(([r.pid for r in sent + more], scheduler.wake_s))
    return [*said, scheduler.use(now)]


def test_kernels_keep_rates_themselves() -> None:
    assert isinstance(new_scheduler("two-level"), KernelScheduler)
    assert isinstance(new_scheduler(PLAIN), CreditFront)


@settings(deadline=None, max_examples=50)
@given(script=STEPS)
def test_a_plain_scheduler_gets_its_requests_when_a_kernel_would(
    script: list[Step],
) -> None:
    expected = decisions(new_scheduler("fifo"), script)
    assert decisions(new_scheduler(PLAIN), script) == expected


def test_the_scheduler_is_told_that_others_use_the_storage() -> None:
    told = []

    class Listener(type(get_scheduler(PLAIN).make({}, 0.0))):  # type: ignore[misc]
        def share_storage(self, until_s: float, slack: float = inf) -> None:
            told.append((until_s, slack))

    front = with_credit(Listener(1e30, 0))
    front.set_credit(Credit({}), 1.0, 5.0)
    front.set_credit(Credit({"a": 1e6}), 1.0, 5.0)
    front.set_credit(Credit({}, {"a": 1.0}, 0.5), 1.0, 7.0)
    assert told == [(6.0, inf), (8.0, 0.5)]
