# SPDX-License-Identifier: MIT
"""Credit on several storages."""

from __future__ import annotations

import pytest

from penstock.qos import ApplicationUse, Credit
from penstock.qos.credit.allocator import PERIOD_S
from penstock.qos.credit.storages import StorageCredits

WEIGHTS = {"a": 1e6, "b": 1e6}


def use(sent_bytes: float) -> ApplicationUse:
    return ApplicationUse(sent_bytes, sent_bytes, 0.0, 0)


def test_service_counts_from_the_first_report_on() -> None:
    shared = StorageCredits()
    shared.report("x", "m", WEIGHTS, {"a": use(1000.0)}, 0.0)
    assert shared.served_elsewhere("y") == {}
    shared.report("x", "m", WEIGHTS, {"a": use(1500.0), "b": use(10.0)}, 0.1)
    assert shared.served_elsewhere("y") == {"a": 500.0, "b": 10.0}
    assert shared.served_elsewhere("x") == {}


def test_what_a_mount_has_served_counts_after_its_end_and_no_total_shrinks() -> None:
    shared = StorageCredits()
    for total in (0.0, 100.0, 40.0):
        shared.report("x", "m", WEIGHTS, {"a": use(total)}, 0.0)
    shared.forget("x", "m")
    shared.forget("unknown", "m")
    shared.report("x", "m", WEIGHTS, {"a": use(7.0)}, 0.0)
    assert shared.served_elsewhere("y") == {"a": 100.0}
    assert shared.storages == ["x"]


def test_an_application_with_service_elsewhere_yields() -> None:
    """Both draw 1 MB/s on x, and a as much on y: on x it gets less than b."""
    shared = StorageCredits()
    for n in range(1, 41):
        now = n * PERIOD_S
        total = ApplicationUse(1e6 * now, 1e6 * now, now, 0)
        for storage, names in (("x", "ab"), ("y", "a")):
            uses = dict.fromkeys(names, total)
            shared.report(storage, f"m{storage}", WEIGHTS, uses, now)
            credits_ = shared.decide(storage, now)
            if storage == "x":
                on_x = credits_["mx"].rates
    assert on_x["a"] < 0.5e6
    assert on_x["b"] > 1e6
    assert sum(on_x.values()) >= 1.9e6
    assert shared.decide("y", now) == {"my": Credit()}


def test_storages_that_counted_differently_agree_after_a_while() -> None:
    """Only x knows that a was 2 MB ahead; then both applications draw the same."""
    shared = StorageCredits()
    sent_bytes = dict.fromkeys(("xa", "xb", "ya", "yb"), 0.0)
    rates = {}
    for n in range(1, 20 * round(1 / PERIOD_S)):
        now = n * PERIOD_S
        is_first = now <= 1.0
        for storage in "x" if is_first else "xy":
            for name in "ab":
                rate = 3e6 if is_first and name == "a" else 1e6
                sent_bytes[storage + name] += rate * PERIOD_S
            uses = {
                name: ApplicationUse(
                    sent_bytes[storage + name], sent_bytes[storage + name], now, 1
                )
                for name in "ab"
            }
            shared.report(storage, f"m{storage}", WEIGHTS, uses, now)
        for storage in shared.storages:
            rates[storage] = shared.decide(storage, now)[f"m{storage}"].rates
    for name in "ab":
        assert rates["x"][name] == pytest.approx(rates["y"][name], rel=0.03)


@pytest.mark.parametrize("sent_bytes", [float("nan"), float("inf")])
def test_nonsense_is_not_counted(sent_bytes: float) -> None:
    shared = StorageCredits()
    shared.report("x", "m", WEIGHTS, {"a": use(0.0)}, 0.0)
    shared.report("x", "m", WEIGHTS, {"a": use(sent_bytes)}, 0.1)
    assert shared.served_elsewhere("y") == {}
