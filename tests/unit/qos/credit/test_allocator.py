# SPDX-License-Identifier: MIT
"""Central credit: the division of a total, and rules of the allocator.

`tests/unit/sim/test_requests_credit.py` simulates it with mounts and a storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.qos import ApplicationUse, Credit, CreditAllocator
from penstock.qos.credit.allocator import (
    FLOOR,
    LEASE_S,
    MAX_PAUSE_S,
    PERIOD_S,
    weighted_shares,
)

WEIGHTS = st.dictionaries(
    st.sampled_from("abcdef"), st.floats(1e-3, 1e9), min_size=1, max_size=6
)


@given(WEIGHTS, st.floats(0, 1e12), st.data())
def test_shares_add_up_and_nobody_needs_more(
    weights: dict[str, float], total: float, data: st.DataObject
) -> None:
    needs = st.floats(0, 1e12) | st.just(inf)
    most = {name: data.draw(needs) for name in weights}
    shares = weighted_shares(total, weights, most)
    assert sum(shares.values()) == pytest.approx(total, rel=1e-9, abs=1e-6)
    if sum(most.values()) > total * (1 + 1e-9):
        for name, share in shares.items():
            assert share <= most[name] + 1e-9 * total + 1e-6


def test_shares_without_needs_are_in_proportion() -> None:
    shares = weighted_shares(100.0, {"a": 3.0, "b": 1.0}, {"a": inf, "b": inf})
    assert shares == {"a": 75.0, "b": 25.0}


def test_what_one_does_not_need_goes_to_the_others() -> None:
    weights = {"a": 2.0, "b": 1.0, "c": 1.0}
    shares = weighted_shares(100.0, weights, {"a": 10.0, "b": inf, "c": inf})
    assert shares == {"a": 10.0, "b": 45.0, "c": 45.0}


def test_a_rest_that_nobody_needs_is_divided_by_weight() -> None:
    shares = weighted_shares(100.0, {"a": 3.0, "b": 1.0}, {"a": 10.0, "b": 10.0})
    assert shares == {"a": 70.0, "b": 30.0}


class Driver:
    """Feeds an allocator with applications that draw constant rates (bytes/s)."""

    def __init__(self, weights: dict[str, float]) -> None:
        self.allocator = CreditAllocator()
        self.weights = weights
        self.now = 0.0
        self.totals: dict[tuple[str, str], list[float]] = {}
        self.credits: dict[str, Credit] = {}

    def run(
        self,
        drawn: dict[tuple[str, str], float],
        for_s: float,
        blocked: str = "",
        silent: str = "",
        requests: Mapping[tuple[str, str], int] | None = None,
    ) -> None:
        """Report for a while; `drawn` is (mount, application) -> rate.

        `requests` says how many requests are there all the time, 1 by default. Credit
        blocks the applications in `blocked`; mounts in `silent` do not report.
        """
        end_s = self.now + for_s
        while self.now < end_s:
            self.now += PERIOD_S
            for point, rate in drawn.items():
                total = self.totals.setdefault(point, [0.0, 0.0, 0.0])
                total[0] += rate * PERIOD_S
                total[1] += PERIOD_S
                total[2] += PERIOD_S * (requests or {}).get(point, 1)
            for mount in {mount for mount, _ in self.totals} - set(silent):
                uses = {
                    name: ApplicationUse(
                        total[0],
                        total[0],
                        total[1],
                        int(name in blocked),
                        present_s=total[2],
                    )
                    for (m, name), total in self.totals.items()
                    if m == mount
                }
                self.allocator.report(mount, self.weights, uses, self.now)
            self.credits = self.allocator.decide(self.now)

    @property
    def rates(self) -> dict[str, Mapping[str, float]]:
        return {mount: credit.rates for mount, credit in self.credits.items()}


def test_an_application_alone_has_no_limit() -> None:
    driver = Driver({"a": 1e6})
    driver.run({("m", "a"): 5e6}, 10.0)
    assert driver.rates == {"m": {}}


def test_who_is_ahead_gets_less_and_who_is_behind_may_catch_up() -> None:
    driver = Driver({"a": 3e6, "b": 1e6})
    driver.run({("m", "a"): 1e6, ("n", "b"): 3e6}, 1.0)
    assert driver.rates["m"]["a"] > 3e6
    assert driver.rates["n"]["b"] < 1e6


def test_the_capacity_is_the_throughput_of_all() -> None:
    driver = Driver({"a": 1e6, "b": 1e6})
    driver.run({("m", "a"): 2e6, ("n", "b"): 3e6}, 5.0)
    assert driver.allocator.capacity == pytest.approx(5e6, rel=0.01)


def test_an_idle_storage_is_not_a_slow_one() -> None:
    """Nobody is limited to a fraction of it when requests come again."""
    drawn = {("m", "a"): 5e6, ("m", "b"): 5e6}
    driver = Driver({"a": 1e6, "b": 1e6})
    driver.run(drawn, 5.0)
    driver.run({}, 20.0)
    driver.run(drawn, 4 * PERIOD_S)
    assert driver.allocator.capacity == pytest.approx(10e6, rel=0.01)


def test_nobody_is_stopped() -> None:
    """Even after a long lead an application keeps a part of its fair rate."""
    driver = Driver({"a": 1e6, "b": 1e6})
    driver.run({("m", "a"): 1e3, ("n", "b"): 8e6}, 1.5)
    assert driver.rates["n"]["b"] >= FLOOR * 4e6 * 0.99


def test_a_mount_that_is_silent_for_a_lease_is_forgotten() -> None:
    driver = Driver({"a": 3e6, "b": 1e6})
    driver.run({("m", "a"): 1e6, ("n", "b"): 3e6}, 2.0)
    assert set(driver.rates) == {"m", "n"}
    driver.run({("n", "b"): 3e6}, LEASE_S + 2 * PERIOD_S, silent="m")
    assert driver.rates == {"n": {}}


def test_what_was_served_before_the_first_report_is_not_counted() -> None:
    """Else a controller that starts anew would take all of it for a lead."""
    driver = Driver({"a": 1e6, "b": 1e6})
    driver.totals[("m", "a")] = [1e12, 1e5, 1e5]
    driver.run({("m", "a"): 3e6, ("n", "b"): 3e6}, 2.0)
    assert driver.allocator.capacity == pytest.approx(6e6, rel=0.05)
    assert driver.rates["m"].get("a", inf) > 2.5e6


def test_an_application_that_leaves_gives_all_to_the_other() -> None:
    driver = Driver({"a": 3e6, "b": 1e6})
    driver.run({("m", "a"): 3e6, ("n", "b"): 3e6}, 2.0)
    assert driver.rates["n"]
    driver.run({("n", "b"): 3e6}, 0.5)
    assert driver.rates["n"] == {}


def test_applications_that_have_left_are_forgotten() -> None:
    """A daemon that runs for months sees many applications."""
    driver = Driver(dict.fromkeys("abc", 1e6))
    driver.run({("m", "a"): 3e6, ("n", "b"): 3e6}, 1.0)
    driver.allocator.add_service("c", 5e6)
    driver.run({("n", "b"): 3e6}, MAX_PAUSE_S, silent="m")
    # What a reserve was learnt from is kept as long as a pause may last.
    assert set(driver.allocator._accounts) == {"a", "b"}
    driver.run({("n", "b"): 3e6}, 2 * LEASE_S, silent="m")
    assert set(driver.allocator._accounts) == {"b"}
    # An application that comes back begins anew.
    driver.run({("m", "a"): 3e6, ("n", "b"): 3e6}, 1.0)
    assert set(driver.allocator._accounts) == {"a", "b"}
    assert driver.rates["m"]["a"] > 0.0


def test_an_application_with_pauses_keeps_what_it_uses_and_a_quarter_more() -> None:
    """It has requests half of the time: the others need not wait for it."""
    driver = Driver({"a": 1e6, "b": 1e6})
    for _ in range(60):
        driver.run({("m", "a"): 1e6, ("n", "b"): 7e6}, PERIOD_S)
        driver.run({("n", "b"): 7e6}, PERIOD_S)
    assert driver.rates["n"].get("b", inf) > 6e6


def test_an_application_that_cannot_use_its_share_gives_it_away() -> None:
    """It always has requests and nobody else takes the storage, but it is slow."""
    driver = Driver({"a": 1e6, "b": 1e6})
    driver.run({("n", "b"): 8e6}, 2.0)
    driver.run({("m", "a"): 1e6, ("n", "b"): 4e6}, 3.5, blocked="b")
    assert driver.rates["n"].get("b", inf) > 5e6


def test_a_rate_is_divided_among_the_mounts_of_an_application() -> None:
    """By requests, not by what a mount draws: who is ahead does not stay ahead."""
    driver = Driver({"a": 1e6, "b": 1e6})
    drawn = {("m", "a"): 1e6, ("m", "b"): 4e6, ("n", "b"): 1e6}
    driver.run(drawn, 1.0, requests={("m", "b"): 4, ("n", "b"): 4})
    assert driver.rates["m"]["b"] == pytest.approx(driver.rates["n"]["b"])
    driver.run(drawn, 9.0, requests={("m", "b"): 4, ("n", "b"): 12})
    ratio = driver.rates["n"]["b"] / driver.rates["m"]["b"]
    # 0.8 of the rate by requests, 0.1 of it for each mount.
    assert ratio == pytest.approx((0.8 * 0.75 + 0.1) / (0.8 * 0.25 + 0.1), rel=0.01)


def test_decisions_depend_only_on_the_reports() -> None:
    results = []
    for _ in range(2):
        driver = Driver({"a": 3e6, "b": 1e6})
        driver.run({("m", "a"): 1e6, ("n", "b"): 3e6}, 3.0)
        results.append(driver.rates)
    assert results[0] == results[1]


def test_rates_grow_fast_while_credit_holds_everybody_up() -> None:
    """Then nobody waits for the storage: it can do more."""
    driver = Driver({"a": 1e6, "b": 1e6})
    driver.run({("m", "a"): 1e6, ("n", "b"): 1e6}, 2.0)
    assert driver.rates["m"]["a"] < 1.2e6
    driver.run({("m", "a"): 1e6, ("n", "b"): 1e6}, 0.3, blocked="ab")
    assert driver.rates["m"]["a"] > 4e6
    driver.run({("m", "a"): 1e6, ("n", "b"): 1e6}, 0.1, blocked="a")
    assert driver.rates["m"]["a"] < 1.2e6


def test_rates_grow_fast_beside_an_application_with_a_reserve() -> None:
    """It has requests half of the time; only the other one has a rate."""
    driver = Driver({"a": 1e6, "b": 1e6})
    for _ in range(20):
        driver.run({("m", "a"): 1e6, ("n", "b"): 1e6}, PERIOD_S)
        driver.run({("n", "b"): 1e6}, PERIOD_S)
    assert driver.rates["n"]["b"] < 2e6
    drawn = 1e6
    for _ in range(8):
        drawn *= 1.5
        driver.run({("m", "a"): 1e6, ("n", "b"): drawn}, PERIOD_S, blocked="b")
        driver.run({("n", "b"): drawn}, PERIOD_S, blocked="b")
    assert driver.rates["n"]["b"] > 4 * drawn


def test_an_application_whose_reserve_ends_keeps_the_rate_that_it_used() -> None:
    """It uses one of four storages, where its fair rate is a quarter of its share."""
    driver = Driver({"a": 1e5, "b": 10e6})

    def run(drawn: dict[tuple[str, str], float]) -> None:
        driver.allocator.add_service("b", 30e6 * PERIOD_S)
        driver.run(drawn, PERIOD_S)

    for _ in range(40):
        run({("m", "a"): 6e5, ("m", "b"): 10e6})
        run({("m", "b"): 10e6})
    assert "a" not in driver.rates["m"]
    lowest = inf
    for _ in range(40):
        run({("m", "a"): 3e5, ("m", "b"): 10e6})
        lowest = min(lowest, driver.rates["m"].get("a", inf))
    assert "a" in driver.rates["m"]
    # A little less than 3e5: all leads add up to 0.
    assert lowest > 2.9e5


@pytest.mark.parametrize("lost", [2, 3, 5])
def test_lost_reports_do_not_change_leads(lost: int) -> None:
    """Reports hold totals: when one arrives, all is counted."""
    allocator = CreditAllocator()
    for n in range(1, 200):
        now = n * PERIOD_S
        for mount, name, rate in (("m", "a", 1e6), ("n", "b", 1e6)):
            if mount == "m" or n % lost == 0:
                use = ApplicationUse(rate * now, rate * now, now, 0)
                allocator.report(mount, {"a": 1e6, "b": 1e6}, {name: use}, now)
        credits_ = allocator.decide(now)
    for mount, name in (("m", "a"), ("n", "b")):
        assert credits_[mount].rates[name] == pytest.approx(1.1e6, rel=0.7)


def test_two_applications_at_a_single_mount_have_rates_too() -> None:
    driver = Driver({"a": 3e6, "b": 1e6})
    driver.run({("m", "a"): 1e6}, 1.0)
    assert driver.rates == {"m": {}}
    driver.run({("m", "a"): 1e6, ("m", "b"): 3e6}, 2.0)
    assert driver.rates["m"]["a"] > 3e6 > 1e6 > driver.rates["m"]["b"]


def test_service_on_another_storage_is_a_lead() -> None:
    rates = []
    for elsewhere in (0.0, 1e6):
        driver = Driver({"a": 1e6, "b": 1e6})
        for _ in range(60):
            driver.allocator.add_service("a", elsewhere * PERIOD_S)
            driver.run({("m", "a"): 3e6, ("n", "b"): 3e6}, PERIOD_S)
        rates.append(driver.rates["m"]["a"])
    assert rates[1] < 0.8 * rates[0]


def test_each_mount_is_told_the_smallest_slack_of_the_others() -> None:
    allocator = CreditAllocator()
    weights = {"a": 1e6, "b": 1e6}
    slacks = {"m": (3.0, 2.0), "n": (1.5, 9.0), "o": (1.5, inf), "p": (inf, inf)}
    for n in range(1, 4):
        now = n * PERIOD_S
        for mount, pair in slacks.items():
            uses = {
                name: ApplicationUse(1e5 * n, 1e5 * n, now, 1, slack, now)
                for name, slack in zip("ab", pair, strict=True)
            }
            allocator.report(mount, weights, uses, now)
        decided = allocator.decide(now)
    assert {m: credit.slack for m, credit in decided.items()} == {
        mount: min(min(pair) for other, pair in slacks.items() if other != mount)
        for mount in slacks
    }
    assert sum(credit.parts["a"] for credit in decided.values()) == pytest.approx(1.0)
