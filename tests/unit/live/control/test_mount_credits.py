# SPDX-License-Identifier: MIT
"""Reports of mounts in, credit out: runs, conflicts, several storages."""

from __future__ import annotations

from math import inf, nan
from unittest.mock import Mock

import pytest

from penstock.live.control import mount_credits
from penstock.live.control.mount_credits import MountCredits
from penstock.live.wire.messages import MountCredit, MountReport, MountUse
from penstock.qos import ApplicationUse, Credit, CreditAllocator
from penstock.qos.credit.allocator import LEASE_S, PERIOD_S


def report(
    number: int,
    sent_bytes: float = 0.0,
    *,
    promise: float = 1e6,
    storage: str = "s",
    run: str = "r",
    name: str = "a",
) -> MountReport:
    busy_s = number * PERIOD_S
    use = MountUse(sent_bytes, sent_bytes, busy_s, 0)
    return MountReport(storage, run, number, {name: promise}, {name: use})


def decide(credits_: MountCredits, now: float) -> dict[str, MountCredit]:
    return dict(credits_.decide(now))


def test_the_decisions_are_those_of_the_allocator() -> None:
    """Live and simulated decisions are the same, bit for bit."""
    live, simulated = MountCredits("run"), CreditAllocator()
    promises = {"a": 3e6, "b": 1e6}
    limited = 0
    for n in range(1, 200):
        now = n * PERIOD_S
        for mount, name, rate in (("m", "a", 2e6), ("n", "b", 4e6)):
            slack = n % 5 / 2
            use = ApplicationUse(rate * now, rate * (now - 0.02), now, n % 3, slack)
            uses = {name: MountUse(*use)}
            live.receive(mount, MountReport("s", mount, n, promises, uses), now)
            simulated.report(mount, promises, {name: use}, now)
        expected = simulated.decide(now)
        decided = live.decide(now)
        assert {m: Credit(c.rates, c.parts, c.slack) for m, c in decided} == expected
        limited += any(credit.rates for credit in expected.values())
    assert limited > 100


def test_old_and_repeated_reports_change_nothing() -> None:
    live = MountCredits("run")
    live.receive("m", report(5, 1e6), 0.0)
    live.receive("m", report(6, 2e6), 0.05)
    live.receive("m", report(5, 9e9), 0.05)
    live.receive("m", report(6, 9e9), 0.05)
    live.receive("other", report(1, storage="t", run="x"), 0.05)
    live.receive("m", report(7, 3e6), 0.1)
    assert decide(live, 0.1)["other"].elsewhere == {"a": 1e6}


def test_totals_of_an_earlier_run_are_not_counted() -> None:
    """A mount that starts anew with a large total has served nothing yet."""
    live = MountCredits("run")
    live.receive("m", report(1, storage="t", run="x"), 0.0)
    live.receive("n", report(9, 1e12), 0.0)
    live.receive("n", report(10, 1e12 + 5.0), 0.05)
    live.receive("n", report(1, 2e12, run="new"), 0.1)
    live.receive("n", report(2, 2e12 + 5.0, run="new"), 0.15)
    assert decide(live, 0.15)["m"].elsewhere == {"a": 10.0}


def test_a_mount_is_told_what_other_storages_served_since_it_joined() -> None:
    live = MountCredits("run")
    live.receive("m", report(1, 0.0), 0.0)
    live.receive("m", report(2, 100.0), 0.05)
    live.receive("n", report(1, storage="t"), 0.1)
    live.receive("m", report(3, 130.0), 0.15)
    credit = decide(live, 0.2)
    assert credit["n"].elsewhere == {"a": 30.0}
    assert credit["m"].elsewhere == {}


def test_credit_names_the_run_it_is_for_and_is_numbered() -> None:
    live = MountCredits("run")
    live.receive("m", report(1, run="x"), 0.0)
    first, second = decide(live, 0.0)["m"], decide(live, 0.05)["m"]
    assert (first.run, first.controller, first.lease_s) == ("x", "run", LEASE_S)
    assert second.number > first.number


def test_the_promise_of_most_mounts_holds_and_the_others_are_told() -> None:
    live = MountCredits("run")
    assert live.receive("m", report(1, promise=3e6), 0.0) == []
    warnings = live.receive("n", report(1, promise=1e6), 0.0)
    assert len(warnings) == 1
    credit = decide(live, 0.0)
    assert credit["m"].conflicts == []
    (conflict,) = credit["n"].conflicts
    assert "a is promised 1 MB/s here and 3 MB/s at other mounts of s" in conflict
    # A third mount decides.
    live.receive("o", report(1, promise=1e6), 0.0)
    credit = decide(live, 0.05)
    assert credit["n"].conflicts == []
    assert "3 MB/s here and 1 MB/s" in credit["m"].conflicts[0]


def test_a_conflict_ends_with_the_mount_that_caused_it() -> None:
    live = MountCredits("run")
    live.receive("m", report(1, promise=3e6), 0.0)
    live.receive("n", report(1, promise=1e6), LEASE_S)
    live.receive("n", report(2, promise=1e6), LEASE_S + 0.1)
    credit = decide(live, LEASE_S + 0.1)
    assert set(credit) == {"n"}
    assert credit["n"].conflicts == []


@pytest.mark.parametrize("promise", [0.0, inf, nan])
def test_a_promise_that_is_none_is_ignored(promise: float) -> None:
    live = MountCredits("run")
    live.receive("m", report(1, promise=promise), 0.0)
    live.receive("n", report(1, name="b"), 0.0)
    live.receive("m", report(2, 1e6, promise=promise), 0.05)
    assert decide(live, 0.1)["n"].rates == {}


def test_storages_are_independent() -> None:
    live = MountCredits("run")
    for n in range(1, 40):
        now = n * PERIOD_S
        live.receive("m", report(n, 1e6 * now, storage="s"), now)
        live.receive("n", report(n, 9e6 * now, storage="t", name="b"), now)
        assert all(c.rates == {} for c in decide(live, now).values())


def test_a_mount_may_drop_a_promise_while_its_requests_go_on() -> None:
    live = MountCredits("run")
    for n in range(1, 30):
        now = n * PERIOD_S
        uses = {name: MountUse(1e5 * n, 1e5 * n, now, 1) for name in "ab"}
        promises = {"a": 1e6, "b": 1e6} if n < 20 else {"a": 1e6}
        live.receive("m", MountReport("s", "r", n, promises, uses), now)
        assert "m" in decide(live, now)


def test_the_only_mount_that_promised_may_fall_silent() -> None:
    live = MountCredits("run")
    live.receive("n", report(1, name="b"), 0.0)
    for n in range(1, 60):
        now = n * PERIOD_S
        uses = {name: MountUse(1e5 * n, 1e5 * n, now, 1) for name in "ab"}
        live.receive("m", MountReport("s", "r", n, {"a": 1e6}, uses), now)
        assert "m" in decide(live, now)


def test_promises_are_counted_only_if_they_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time of a period grows with the number of mounts, not with its square."""
    count = Mock(wraps=mount_credits._agreed_promises)
    monkeypatch.setattr(mount_credits, "_agreed_promises", count)
    live = MountCredits("run")
    for n in range(1, 10):
        for mount in ("m", "n"):
            live.receive(mount, report(n), n * PERIOD_S)
        live.decide(n * PERIOD_S)
    assert count.call_count == 2
    live.receive("m", report(10, promise=2e6), 0.5)
    assert count.call_count == 3
