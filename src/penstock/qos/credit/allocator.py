# SPDX-License-Identifier: MIT
"""Share one storage among the mounts of many nodes: central credit.

Every mount in front of a storage serves its own applications as fast as it can, and
sees no others. `CreditAllocator` sees all of them. Mounts report what each application
has used (totals, so that a lost report changes nothing), and the allocator answers with
rates for the applications that are ahead of their share. The mounts keep these rates
for one lease (`penstock.qos.credit.stage`). The allocator is one object, in
``penstock serve`` or in the simulator.

Rule, once per period of dt seconds:

1. *Capacity.* C is the highest throughput of all mounts together in the recent past; it
   fades by half in `HALF_LIFE_S`, faster while credit blocks nobody. The throughput is
   measured from the first request after an idle time on.
2. *Fair rates.* f_i shares C among the applications that have requests, in proportion
   to their promised throughputs t_i; nobody gets more than its *reserve*, and what one
   does not need goes to the others (weighted max-min fairness).
3. *Lead.* a_i is what i was served more than its fair part of what all were served, on
   all storages; it is at most `MAX_LEAD_S` seconds of f_i. All leads add up to 0.
   Service on other storages counts gradually, with the time constant `ELSEWHERE_S`.
4. *Rates.* While two or more applications have requests, at one mount or at several, i
   may draw

       r_i = f_i HEADROOM - GAIN a_i   (CATCH_UP instead of GAIN if a_i < 0),

   but at least `FLOOR` f_i. An application with a reserve has no limit. The rate of an
   application is divided among its mounts by the number of its requests at each. While
   credit blocks everybody, the storage has room, and the headroom grows by `GROWTH` per
   period.

Why shares are kept: a_i is the integral of the error. While the storage is saturated,
what is served adds up to C, and only r_i = f_i keeps a_i constant, at
f_i (HEADROOM - 1) / GAIN. So the error over a time T is at most a constant divided by
T, however many processes an application has. Why no service is lost: the rates add up
to more than C, so that C is reached and can grow.

Why applications are served evenly on all storages: the agreed total may be reached in
many ways, also with everything on one storage, where the application then starves on
the others. If service elsewhere counted at once, nothing would prefer one way, and the
storage that hears of it last would draw it all. Because it counts late, a storage that
serves an application more than others do sees the larger lead, and slows it down. An
application that uses one storage only gets its share with a delay of `ELSEWHERE_S`.

Why by requests: with rates in proportion to them, requests take equally long at all
mounts (Little's law). By what is used, a mount that is ahead would stay ahead.

This evens out changes, but not what storages have counted differently before: they
learn of an application at different times, and a lead is cut off at its bound or starts
at 0 again. Such a difference c would stay, and with it a difference in rates of
GAIN c / (1 + GAIN ELSEWHERE_S). So each lead approaches the mean of the leads at all
storages where the same applications have requests, with the time constant `ALIGN_S`; a
difference in rates fades with ALIGN_S (1 + GAIN ELSEWHERE_S), 1.5 s. While an
application has a reserve at a storage, its leads there are not compared.

*Reserve.* An application may be unable to use its fair rate: its processes compute in
between, or are too few. Others must not wait for it. Its reserve is unlimited, except:

- if it had no request for more than a tenth of the time, the reserve is 1.25 times what
  it uses;
- if for `TRIAL_S` it has used less than 0.9 of its fair rate, although the storage had
  room and its credit did not block it, the reserve is 1.1 times what it used, for a
  pause of `PAUSE_S`, which doubles up to `MAX_PAUSE_S` while trials fail.

When a reserve ends, the application begins with a lag that lets it draw what it has
used.

A mount that has sent no report for one lease is forgotten; an application that no mount
reports any more, `MAX_PAUSE_S` after its last request.

Source: not in two-level scheduling, where all clients of a server pass one scheduler.

Units: bytes, bytes/s, seconds. Pure: time is passed in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, inf, log
from typing import Final

from penstock.qos.interface import ApplicationUse, Credit

__all__ = ["LEASE_S", "PERIOD_S", "CreditAllocator", "weighted_shares"]

#: Time between two reports of a mount, and between two decisions.
PERIOD_S: Final = 0.05
#: How long rates hold at a mount, and a mount is known without a report.
LEASE_S: Final = 1.0
#: C fades by half in this time,
HALF_LIFE_S: Final = 16.0
#: or in this one while credit blocks nobody: then the throughput is what there is.
FREE_HALF_LIFE_S: Final = 1.0
#: The rates add up to this multiple of C,
HEADROOM: Final = 1.1
#: and more by this factor in each period while credit blocks everybody,
GROWTH: Final = 1.5
#: up to this one.
MAX_HEADROOM: Final = 100.0
#: How much of a lead is taken back per second.
GAIN: Final = 2.0
#: How much of a lag is given per second.
CATCH_UP: Final = 5.0
#: Least rate, as a fraction of the fair rate.
FLOOR: Final = 0.05
MAX_LEAD_S: Final = 2.0
#: A lead counts up to at least so many bytes: a few of the largest requests.
_MIN_LEAD_BYTES: Final = 4 << 20
TRIAL_S: Final = 2.0
PAUSE_S: Final = 2.0
MAX_PAUSE_S: Final = 16.0
#: Service on other storages becomes a lead with this time constant,
ELSEWHERE_S: Final = 1.0
#: and the leads on all storages become equal with this one.
ALIGN_S: Final = 0.5
#: Time constant of what is measured,
_SMOOTH_S: Final = 1.0
#: and the time over which it was measured at first, against division by zero.
_NO_TIME_S: Final = 1e-9
#: An application has requests if it had some in this time.
_ACTIVE_S: Final = 4 * PERIOD_S
_IDLE_SHARE: Final = 0.1
_USED_SHARE: Final = 0.9
#: The throughput is rising if it is this multiple of what it was in this time.
_RISE: Final = 1.1
_TREND_S: Final = 2.0
#: The storage has room while less than this part of its capacity is used.
_FULL_SHARE: Final = 0.95


_NOTHING: Final = ApplicationUse(0.0, 0.0, 0.0, 0)


@dataclass(slots=True)
class _LocalUse:
    """One application at one mount."""

    reported: ApplicationUse = _NOTHING
    counted: ApplicationUse = _NOTHING
    """The part of `reported` that decisions have counted."""
    smoothed_present_s: float = 0.0
    """Time that its requests were there, added over requests; older time counts
    less."""


@dataclass(slots=True)
class _ReportingMount:
    """One mount: its promises (bytes/s), its last report, its applications."""

    weights: Mapping[str, float]
    reported_s: float
    counted_s: float
    """Time of the last report that decisions have counted."""
    points: dict[str, _LocalUse] = field(default_factory=dict)


@dataclass(slots=True)
class _Account:
    """What is known about one application at all mounts."""

    lead_bytes: float = 0.0
    """a_i."""
    new_bytes: float = 0.0
    """What it was sent since the last decision."""
    elsewhere_bytes: float = 0.0
    """What it was sent on other storages and is not yet part of the lead."""
    smoothed_bytes: float = 0.0
    """What it was served; older service counts less."""
    busy_share: float = -1.0
    """Part of the time in which it had requests, at the mount where this was most; -1:
    no mount has reported since the last decision."""
    idle_share: float = 0.0
    """Part of the time in which it had no requests, smoothed."""
    blocked: bool = False
    """True if it has requests that wait for credit."""
    reserve: float = inf
    trial_s: float = 0.0
    """How long it has used too little of a storage that had room."""
    pause_until_s: float = -inf
    pause_s: float = PAUSE_S
    active_s: float = -inf
    """When it had a request last."""

    def count(self, point: _LocalUse, reported_s: float) -> None:
        """Count a new report about the application at one mount."""
        use, before = point.reported, point.counted
        point.counted = use
        done_bytes = use.done_bytes - before.done_bytes
        point.smoothed_present_s += use.present_s - before.present_s
        self.smoothed_bytes += done_bytes
        self.new_bytes += use.sent_bytes - before.sent_bytes
        busy_share = (use.busy_s - before.busy_s) / reported_s
        self.busy_share = max(self.busy_share, busy_share)

    def update_activity(self, newest: float, now: float) -> None:
        """Update when the application was active, and its idle time."""
        if self.busy_share > 0.0 or self.blocked:
            if now - self.active_s > _ACTIVE_S:
                # Nothing is known about it yet: take it for busy.
                self.idle_share = 0.0
            self.active_s = now
        if self.busy_share >= 0.0:
            # Reports take different times: one period may seem more than busy.
            self.idle_share += newest * (1.0 - self.busy_share - self.idle_share)


def weighted_shares(
    total: float, weights: Mapping[str, float], most: Mapping[str, float]
) -> dict[str, float]:
    """Divide `total` in proportion to `weights`; nobody gets more than its `most`.

    What one cannot take goes to the others. If nobody can take more, the rest is
    divided in proportion to the weights.
    """
    shares: dict[str, float] = {}
    left, open_weights = total, dict(weights)
    # Those that need least per weight are satisfied first.
    for name in sorted(weights, key=lambda name: most[name] / weights[name]):
        part = left * open_weights[name] / sum(open_weights.values())
        shares[name] = min(part, most[name])
        left -= shares[name]
        del open_weights[name]
    if left > 0.0:
        whole = sum(weights.values())
        shares = {name: shares[name] + left * weights[name] / whole for name in weights}
    return shares


class CreditAllocator:
    """Decides which applications are limited at which mounts of one storage."""

    def __init__(self) -> None:
        self.capacity = 0.0
        """C (bytes/s)."""
        self._mounts: dict[str, _ReportingMount] = {}
        self._accounts: dict[str, _Account] = {}
        self._decided_s: float | None = None
        self._smoothed_s = _NO_TIME_S
        """The time over which smoothed values were added up."""
        self._throughput = 0.0
        self._trend = 0.0
        """The throughput, smoothed over a longer time."""
        self._is_rising = False
        self._headroom = HEADROOM
        self._weights: dict[str, float] = {}
        """The promises of the applications that had requests at the last decision."""

    def report(
        self,
        mount: str,
        weights: Mapping[str, float],
        uses: Mapping[str, ApplicationUse],
        now: float,
    ) -> None:
        """Record what the applications of a mount have used since it started."""
        known = self._mounts.get(mount)
        if known is None:
            # What was served before the first report is not counted.
            points = {name: _LocalUse(use, use) for name, use in uses.items()}
            self._mounts[mount] = _ReportingMount(dict(weights), now, now, points)
            return
        known.weights, known.reported_s = dict(weights), now
        for name, use in uses.items():
            known.points.setdefault(name, _LocalUse()).reported = use

    def add_service(self, application: str, served_bytes: float) -> None:
        """Count service on another storage: shares are shares of the total."""
        account = self._accounts.setdefault(application, _Account())
        account.elsewhere_bytes += served_bytes

    def forget(self, mount: str) -> None:
        """Forget a mount that has ended."""
        self._mounts.pop(mount, None)

    @property
    def comparable_weights(self) -> Mapping[str, float]:
        """The promises of the applications that have requests.

        Storages with the same ones can compare their leads. Empty if one has a reserve,
        or if no mount is left.
        """
        if not self._mounts or any(
            self._accounts[name].reserve < inf for name in self._weights
        ):
            return {}
        return self._weights

    def lead_bytes(self, application: str) -> float:
        """Return a_i of an application that has requests."""
        return self._accounts[application].lead_bytes

    def decide(
        self, now: float, mean_leads: Mapping[str, float] | None = None
    ) -> dict[str, Credit]:
        """Return the credit of each mount.

        `mean_leads` has the mean leads of all storages with the same applications.
        """
        for mount in list(self._mounts):
            if now - self._mounts[mount].reported_s > LEASE_S:
                del self._mounts[mount]
        before_s = now if self._decided_s is None else self._decided_s
        passed_s = min(now - before_s, LEASE_S)
        self._decided_s = now
        self._align_leads(mean_leads or {}, passed_s)
        self._count_reports(before_s, passed_s, now)
        self._forget_applications(now)
        weights = self._weights = self._active_weights(now)
        if not weights:
            self._forget_throughput()
        self._update_capacity(passed_s)
        self._update_leads(weights)
        most = {name: self._accounts[name].reserve for name in weights}
        fair = weighted_shares(self.capacity, weights, most)
        for name, rate in fair.items():
            self._update_reserve(self._accounts[name], rate, passed_s, now)
        self._update_headroom(weights)
        if len(fair) < 2:
            return dict.fromkeys(self._mounts, Credit())
        rates, slacks, parts = self._rates(fair), self._slacks(), self._parts()
        return {
            mount: Credit(
                {
                    name: rates[name] * part
                    for name, part in own.items()
                    if name in rates
                },
                own,
                slacks[mount],
            )
            for mount, own in parts.items()
        }

    # --- What is measured -------------------------------------------------------------

    def _count_reports(self, before_s: float, passed_s: float, now: float) -> None:
        """Count what was used since the last decision, at `before_s`."""
        fade = exp(-passed_s / _SMOOTH_S)
        counted_part = 1.0 - exp(-passed_s / ELSEWHERE_S)
        self._smoothed_s = self._smoothed_s * fade + passed_s
        for account in self._accounts.values():
            account.smoothed_bytes *= fade
            account.new_bytes = counted_part * account.elsewhere_bytes
            account.elsewhere_bytes -= account.new_bytes
            account.busy_share, account.blocked = -1.0, False
        for mount in self._mounts.values():
            reported_s = mount.reported_s - mount.counted_s
            mount.counted_s = mount.reported_s
            for name, point in mount.points.items():
                account = self._accounts.setdefault(name, _Account())
                account.blocked |= point.reported.blocked > 0
                point.smoothed_present_s *= fade
                if reported_s:
                    account.count(point, reported_s)
                elif account.active_s >= before_s:
                    # No news: what had requests still has.
                    account.active_s = now
        newest = 1.0 - fade
        for account in self._accounts.values():
            account.update_activity(newest, now)

    def _forget_applications(self, now: float) -> None:
        """Forget applications that have left; a pause of a reserve is over by then."""
        present = {name for mount in self._mounts.values() for name in mount.points}
        left = [
            name
            for name, account in self._accounts.items()
            if name not in present and now - account.active_s > MAX_PAUSE_S
        ]
        for name in left:
            del self._accounts[name]

    def _active_weights(self, now: float) -> dict[str, float]:
        """Return the promises of the applications that have requests."""
        return {
            name: mount.weights[name]
            for mount in self._mounts.values()
            for name in mount.points
            # A mount may drop a promise and still have requests of that application.
            if name in mount.weights
            and now - self._accounts[name].active_s <= _ACTIVE_S
        }

    def _forget_throughput(self) -> None:
        """Measure anew when requests come: an idle storage is not a slow one."""
        self._smoothed_s = _NO_TIME_S
        self._trend = 0.0
        for account in self._accounts.values():
            account.smoothed_bytes = 0.0

    def _update_capacity(self, passed_s: float) -> None:
        total = sum(account.smoothed_bytes for account in self._accounts.values())
        self._throughput = total / self._smoothed_s
        newest = 1.0 - exp(-passed_s / _TREND_S)
        self._trend += newest * (self._throughput - self._trend)
        self._is_rising = self._throughput > _RISE * self._trend
        is_blocking = any(account.blocked for account in self._accounts.values())
        half_life_s = HALF_LIFE_S if is_blocking else FREE_HALF_LIFE_S
        faded = self.capacity * exp(-passed_s / half_life_s * log(2))
        self.capacity = max(self._throughput, faded)

    # --- What is decided --------------------------------------------------------------

    def _align_leads(self, mean_leads: Mapping[str, float], passed_s: float) -> None:
        """Move the leads towards the means of all storages."""
        moved_part = 1.0 - exp(-passed_s / ALIGN_S)
        for name, mean_bytes in mean_leads.items():
            account = self._accounts[name]
            account.lead_bytes += moved_part * (mean_bytes - account.lead_bytes)

    def _update_leads(self, weights: Mapping[str, float]) -> None:
        """Add what each was sent more than its fair part; the leads add up to 0."""
        accounts = {name: self._accounts[name] for name in weights}
        total = sum(account.new_bytes for account in accounts.values())
        # An application with a reserve takes what it can: it never lags.
        most = {
            name: inf if account.reserve == inf else max(account.new_bytes, 0.0)
            for name, account in accounts.items()
        }
        parts = weighted_shares(total, weights, most)
        whole = sum(weights.values())
        for name, account in accounts.items():
            share = self.capacity * weights[name] / whole
            bound = max(_MIN_LEAD_BYTES, MAX_LEAD_S * share)
            least = -bound if account.reserve == inf else 0.0
            lead = account.lead_bytes + account.new_bytes - parts[name]
            account.lead_bytes = min(max(lead, least), bound)
        surplus = sum(account.lead_bytes for account in accounts.values())
        for name, account in self._accounts.items():
            if name in weights:
                account.lead_bytes -= surplus * weights[name] / whole
            else:
                account.lead_bytes = 0.0

    def _update_reserve(
        self, account: _Account, fair: float, passed_s: float, now: float
    ) -> None:
        """Find out whether an application can use its fair rate."""
        rate = account.smoothed_bytes / self._smoothed_s
        if account.idle_share > _IDLE_SHARE:
            account.reserve, account.trial_s = 1.25 * rate, 0.0
            return
        if account.blocked or now >= account.pause_until_s:
            self._end_reserve(account, fair, rate)
        has_room = self._throughput < _FULL_SHARE * self.capacity
        if rate >= _USED_SHARE * fair:
            account.pause_s = PAUSE_S
        paused = account.reserve < inf
        if account.blocked or paused or rate >= _USED_SHARE * fair or not has_room:
            account.trial_s = 0.0
            return
        account.trial_s += passed_s
        if account.trial_s > TRIAL_S:
            account.reserve, account.trial_s = 1.1 * rate, 0.0
            # What others were served instead is no lead.
            for each in self._accounts.values():
                each.lead_bytes = 0.0
            account.pause_until_s = now + account.pause_s
            account.pause_s = min(2 * account.pause_s, MAX_PAUSE_S)

    def _end_reserve(self, account: _Account, fair: float, rate: float) -> None:
        """Limit an application again, but not below what it has used.

        Its lag is such that r_i is this rate. One that uses a single storage needs a
        lag there, because its fair rate is a part of its share of all storages.
        """
        if account.reserve < inf:
            lag_bytes = max(rate - HEADROOM * fair, 0.0) / CATCH_UP
            account.lead_bytes = min(account.lead_bytes, -lag_bytes)
        account.reserve = inf

    def _update_headroom(self, weights: Mapping[str, float]) -> None:
        """Let the rates grow while credit blocks everybody: the storage has room."""
        accounts = [self._accounts[name] for name in weights]
        limited = [account for account in accounts if account.reserve == inf]
        # While some application has a reserve, rates grow only if throughput grows too.
        may_grow = len(limited) == len(accounts) or self._is_rising
        if limited and may_grow and all(account.blocked for account in limited):
            self._headroom = min(self._headroom * GROWTH, MAX_HEADROOM)
        else:
            self._headroom = HEADROOM

    def _rates(self, fair: Mapping[str, float]) -> dict[str, float]:
        """Return r_i of the applications that are limited."""
        rates = {}
        for name, fair_rate in fair.items():
            account = self._accounts[name]
            lead = account.lead_bytes
            if account.reserve == inf and fair_rate > 0.0:
                gain = GAIN if lead > 0.0 else CATCH_UP
                rate = self._headroom * fair_rate - gain * lead
                rates[name] = max(rate, FLOOR * fair_rate)
        return rates

    def _slacks(self) -> dict[str, float]:
        """Return for each mount the least slack factor at all other mounts."""
        least = {
            mount: min(
                (
                    point.reported.slack
                    for name, point in known.points.items()
                    if name in known.weights
                ),
                default=inf,
            )
            for mount, known in self._mounts.items()
        }
        first, second, *_ = *sorted(least.values()), inf, inf
        lowest = min(least, key=least.__getitem__, default=None)
        return {mount: second if mount == lowest else first for mount in least}

    def _parts(self) -> dict[str, dict[str, float]]:
        """Return for each mount the part of each application's rate that it has."""
        totals: dict[str, float] = {}
        counts: Counter[str] = Counter()
        for mount in self._mounts.values():
            for name, point in mount.points.items():
                totals[name] = totals.get(name, 0.0) + point.smoothed_present_s
                counts[name] += 1

        def part(name: str, point: _LocalUse) -> float:
            if totals[name] <= 0.0:
                return 1.0
            # Every mount has some, for requests that begin to come.
            return 0.8 * point.smoothed_present_s / totals[name] + 0.2 / counts[name]

        return {
            mount: {name: part(name, point) for name, point in known.points.items()}
            for mount, known in self._mounts.items()
        }
