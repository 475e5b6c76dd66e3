# SPDX-License-Identifier: MIT
"""Jobs that begin together do not exceed the bandwidth, whatever messages take."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from random import Random

import pytest

from penstock.live.control.coordinator import Coordinator
from penstock.live.control.rates.controller import Controller
from penstock.live.control.storage.shared_storage import START_SHARES, start_rate
from penstock.live.wire.messages import AgentConfig
from support.virtual_site import VirtualProgram, VirtualSite

B = 1e9
JOBS = 64
#: When the jobs begin to write (s); all have joined before.
BEGIN_S = 0.5
_DRAW = Random(3)
DELAYS = {
    "1 ms": (0.001,),
    "10 ms": (0.010,),
    "1 to 5 ms": tuple(_DRAW.uniform(0.001, 0.005) for _ in range(997)),
}


def site_with(
    programs: Sequence[VirtualProgram], policy: str, delays_s: Sequence[float]
) -> VirtualSite:
    """Return a site with one agent for each program."""
    config = AgentConfig("control", ["/s"], 0.05, 0.1, 3.0, inf, reads=True)
    controller = Controller(policy, B, inf, compiled=False)
    return VirtualSite(Coordinator(controller, config), programs, delays_s)


@pytest.mark.parametrize("delays", DELAYS)
@pytest.mark.parametrize("skew_s", [0.0, 0.01])
@pytest.mark.parametrize("policy", ["fair-share", "fcfs", "greedy-yield"])
def test_jobs_that_begin_together_keep_the_bandwidth_in_every_second(
    policy: str, skew_s: float, delays: str
) -> None:
    draw = Random(1)
    programs = [
        VirtualProgram(f"0:{n}", [(BEGIN_S + skew_s * draw.random(), 3.0 * B)])
        for n in range(JOBS)
    ]
    site = site_with(programs, policy, DELAYS[delays])
    site.run(BEGIN_S + 1.1)
    assert 0.95 * B < site.busiest_bytes() <= 1.05 * B


@pytest.mark.parametrize("others", [0, 1, JOBS])
def test_a_lone_job_begins_as_fast_as_ever(others: int) -> None:
    """It may lose the way of the decision, no more; without other jobs not even it."""
    delay_s = 0.001
    programs = [
        VirtualProgram("0:a", [(BEGIN_S, B)]),
        *(VirtualProgram(f"0:{n}", [(10.0, B)]) for n in range(others)),
    ]
    site = site_with(programs, "fair-share", (delay_s,))
    site.run(3.0)
    lost_s = programs[0].end_s - (BEGIN_S + 1.0)
    step_s = 0.002
    assert lost_s <= (2.0 * delay_s if others == JOBS else 0.0) + step_s


@pytest.mark.parametrize(
    ("places", "shares"),
    [(0, 1), (1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (64, 64), (65, 128), (2000, 2048)],
)
def test_the_start_rate(places: int, shares: int) -> None:
    assert start_rate(B, places) == START_SHARES * B / shares


def test_nothing_hangs_without_a_decision() -> None:
    """The controller answers after a second: until then a job draws its start rate."""
    programs = [VirtualProgram(f"0:{n}", [(5.0, B)]) for n in range(JOBS)]
    site = site_with(programs, "fair-share", (1.0,))
    site.run(5.9)
    expected = 0.9 * start_rate(B, JOBS)
    for program in programs:
        assert program.total_bytes == pytest.approx(expected, abs=3 * 65536)
