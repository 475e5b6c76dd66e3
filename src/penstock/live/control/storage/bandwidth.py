# SPDX-License-Identifier: MIT
"""What bandwidth a storage has, learnt from the jobs that use it.

The estimator reads growing counters of each job: bytes read and written, time inside
calls that reached the storage, and time that control held calls up. It keeps one belief
B for reads, one for writes and one for both at once, since they differ. At the end of
each window (0.5 s; 0.2 s before a limit was seen), D is what all jobs drew together,
and each job is held, waits for the storage, or limits itself (`usage`). The storage is
*at its limit* if a job waits that has not lent to held jobs for three windows, and
control is not the reason that D is below B:

- no held job moves bytes at 1.25 B or more inside its calls, and
- held jobs move them at less than B inside calls, or nobody is held and no limit was
  seen before, or calls of the waiting job take longer per byte than they did.

The first true line decides:

    several jobs                               B becomes
    -----------------------------------------  ---------------------------------------
    nothing is known yet (B is infinite, and   0.985 D, once jobs that wait for the
      nobody is held)                          storage have not drawn more for 2 s
    a call moves nothing for 0.5 s, although   0.9 B, but at least the average of 12 s,
      it is not held (*sync*)                  if no other job moves anything
    the storage is at its limit                B, until jobs have left 0.1 s of it
                                               undrawn in 1 s or more: the *limit* is
                                               what they drew, B is 0.985 of it
    a job is held, and 80 % of B are drawn     B (1 + step)
      (before a limit was seen: any part)
    otherwise                                  B

    a lone job (never held up)
    -----------------------------------------  ---------------------------------------
    nothing is known yet                       its rate inside calls
    it draws more than 1.05 B                  what it draws

The *step* is 100 % before a limit was seen. A limit that was seen once is probed: 4 %,
then doubled up to 25 %. It is *confirmed* if it is seen again within 5 %, or if all of
B and no more is drawn at the limit. Then the step is 1 % in every window from the third
one below the limit on, and doubled from the sixth on. With more jobs than when the
limit was seen, it is probed again: they may be able to draw more together.

So a belief that is too low rises in growing steps, and one that is too high lets the
storage decide until it is corrected. The margin of 1.5 % lets control and not the
storage decide. What is undrawn is added up, because bytes count when their call ends:
with large calls, D of one window is wrong by a fifth, but the sum is not.

Example (MB/s): two writers begin together on a storage of 100.

    until    seen                                      B      why
    2.0 s    both free and always in calls, D = 100     98.5  nothing was known
    2.5 s    both held, D = 98.5                       102.4  raised by 4 %
    7.0 s    both wait, D = 100: 0.1 s of B undrawn     98.5  limit of 100, confirmed
    8.0 s    the storage gives 80: both wait, D = 80    78.8  limit of 80
    10.0 s   both wait, D = 80 > B                      78.8  confirmed

Nothing here reads a clock. Times are in seconds, volumes in bytes, rates in bytes/s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf, isfinite
from typing import Final

from penstock.live.control.activity.usage import JobWindow, Kind, Usage, kind_of

__all__ = ["BandwidthEstimator", "Belief", "Reason"]

#: Length of a window (s), and of one before a limit was seen.
WINDOW_S: Final = 0.5
FAST_WINDOW_S: Final = 0.2
#: On a storage of which nothing is known, jobs are free until what they draw has not
#: grown for this time (s): storages and programs need time to get going.
START_S: Final = 2.0
#: Calls take longer per byte than before if it is by this part. A job that waits and
#: whose calls take longer by the second part does not lend.
SLOWER: Final = 0.03
MUCH_SLOWER: Final = 0.25
#: A belief is too high if what it grants in this time (s) is left undrawn at the limit:
#: reports, every 0.1 s, shift bytes by that time. It is watched for `SHORT_S` at least.
MISSING_S: Final = 0.1
SHORT_S: Final = 1.0
#: A storage that serves a held job at this multiple of the belief is not at its limit.
FASTER: Final = 1.25
#: A belief of which less than this part is drawn is not raised.
USED_PART: Final = 0.8
#: The belief at the limit is this part of what is drawn, so that control decides.
MARGIN: Final = 0.985
#: Part by which a belief is raised: close to a confirmed limit, close to one seen once,
#: at most, and before any limit was seen.
FIRST_STEP: Final = 0.01
QUICK_STEP: Final = 0.04
LARGEST_STEP: Final = 0.25
FAST_STEP: Final = 1.0
#: A job that lends for this many windows does not need its grant.
#: A confirmed belief is raised from this window below the limit on, and in growing
#: steps from twice as many on: a queue in the storage grows slowly.
REST: Final = 3
#: Rates that differ by less than this part are taken to be the same.
CLOSE: Final = 0.05
#: Part by which a sync lowers the belief in every window, but not below what was drawn
#: on average over this time (s): bytes may have been counted before the sync that moves
#: them. The best average ages.
SYNC_STEP: Final = 0.1
LONG_S: Final = 12.0
_AGEING: Final = 0.99
#: The lowest and the highest belief of this time are shown (s).
RANGE_S: Final = 60.0
#: Rounding of times.
_EPSILON_S: Final = 1e-6


class Reason(StrEnum):
    """Why a bandwidth is believed."""

    ALONE = "drawn by a lone job"
    SATURATED = "drawn while calls took longer"
    RAISED = "raised because all of it was drawn"
    SYNCED = "lowered because fsync or close took long"
    KNOWN_OTHERWISE = "taken from reads or writes alone"
    MEASURED = "measured at the start"
    REMEMBERED = "learnt in an earlier run"


@dataclass(slots=True)
class Belief:
    """A bandwidth that is believed, and why."""

    rate: float
    reason: Reason
    since_s: float
    """When it was last confirmed or changed by an observation."""
    limit: float = 0.0
    """What was drawn when the storage was seen at its limit; 0: it never was."""
    jobs: int = 0
    """Number of jobs at that time."""
    is_confirmed: bool = False
    """True if the storage was seen there again."""
    step: float = FAST_STEP
    """Part by which it is raised next."""
    calm: int = 0
    """Windows since the storage was last at its limit in which a job was held."""
    short_s: float = 0.0
    """For how long jobs have drawn less than the belief, at the limit."""
    short_bytes: float = 0.0
    """What they drew in this time."""
    recent: deque[tuple[float, float]] = field(default_factory=deque)
    """Instants and rates of the last `RANGE_S`, to tell how sure it is."""

    @property
    def saturated(self) -> bool:
        """True if the storage was seen at its limit."""
        return self.limit > 0.0

    def note_rate(self, now: float) -> None:
        """Remember the rate that is believed now."""
        _append_recent(self.recent, now, self.rate, RANGE_S)

    @property
    def spread(self) -> tuple[float, float]:
        """Lowest and highest rate that was believed in the last `RANGE_S`."""
        rates = [self.rate, *(rate for _, rate in self.recent)]
        return min(rates), max(rates)

    def add_shortage(self, drawn: float, length_s: float) -> bool:
        """Add a window at the limit; return True if the belief is too high."""
        self.calm = 0
        self.short_s += length_s
        self.short_bytes += drawn * length_s
        missing_s = self.short_s - self.short_bytes / self.rate
        if missing_s <= _EPSILON_S:
            self.end_shortage()
            if self.saturated and drawn <= (1.0 + CLOSE) * self.limit:
                self.is_confirmed, self.step = True, FIRST_STEP
        return missing_s > MISSING_S and self.short_s > SHORT_S - _EPSILON_S

    def end_shortage(self) -> None:
        """Forget that jobs have drawn less than the belief."""
        self.short_s = self.short_bytes = 0.0

    def set_limit(self, limit: float, reason: Reason, jobs: int, now: float) -> None:
        """Believe in a limit of the storage that was seen now."""
        self.is_confirmed = abs(limit - self.limit) <= CLOSE * self.limit
        self.limit, self.jobs, self.rate = limit, jobs, MARGIN * limit
        self.reason, self.since_s = reason, now
        self.step = FIRST_STEP if self.is_confirmed else QUICK_STEP
        self.end_shortage()

    def probe(self, drawn: float, now: float) -> None:
        """Raise a belief that is drawn, unless it is confirmed and has to rest."""
        self.end_shortage()
        self.calm += 1
        if self.is_confirmed and self.calm < REST:
            return
        self.rate *= 1.0 + self.step
        if not self.saturated:
            self.rate = max(self.rate, drawn)
        if self.step > CLOSE:
            self.reason = Reason.RAISED
        self.since_s = now
        if not self.is_confirmed or self.calm >= 2 * REST:
            self.step = max(self.step, min(2.0 * self.step, LARGEST_STEP))


class BandwidthEstimator:
    """Learns the bandwidth of one storage.

    Call `read` with every report of a job on this storage, `set_active` whenever
    operations begin or end, and `learn` before every decision. `bandwidth` is then what
    the jobs may share.

    Parameters
    ----------
    known
        Rates known from a measurement or an earlier run, by kind, with the reason.
    """

    def __init__(
        self, known: Mapping[Kind, tuple[float, Reason]] | None = None
    ) -> None:
        self._beliefs: dict[Kind, Belief] = {}
        self._jobs: dict[str, JobWindow] = {}
        self._active: frozenset[str] = frozenset()
        self._kind: Kind | None = None
        #: Bytes read and written lately, in company.
        self._recent_bytes = 0.0, 0.0
        #: When the present window began.
        self._window_s = 0.0
        #: Rates and lengths of the last windows on a storage that is not known.
        self._start: deque[tuple[float, float]] = deque()
        #: Time and bytes moved in company so far, for the average over `LONG_S`.
        self._totals: deque[tuple[float, float]] = deque()
        self._best_average = 0.0
        for kind, (rate, reason) in (known or {}).items():
            self.suggest(kind, rate, reason)

    def suggest(self, kind: Kind, rate: float, reason: Reason) -> None:
        """Begin with a rate that was measured or learnt before, unless one is known."""
        if kind not in self._beliefs and isfinite(rate) and rate > 0.0:
            self._beliefs[kind] = Belief(rate, reason, -inf, step=QUICK_STEP)

    # --- Reports and events -----------------------------------------------------------

    def read(
        self, job_key: str, now: float, usage: Usage, *, lends: bool = False
    ) -> None:
        """Take the counters of a job, and whether it lends a part of its grant."""
        if job_key in self._active:
            self._jobs[job_key].read(now, usage, lends=lends)

    def leave(self, job_key: str, now: float) -> None:
        """Forget a job."""
        self.set_active(self._active - {job_key}, now)
        self._jobs.pop(job_key, None)

    def set_active(self, job_keys: Iterable[str], now: float) -> None:
        """Set which jobs have operations now."""
        active = frozenset(job_keys)
        if active == self._active:
            return
        had_company, has_company = self.has_company, len(active) > 1
        if has_company and not had_company:
            self._end_alone(FAST_WINDOW_S / 2.0, now)
        joined, self._active = active - self._active, active
        for job_key in joined:
            window = self._jobs.setdefault(job_key, JobWindow())
            window.clear(rebase=True)
            window.stayed = False
        for job_key, window in self._jobs.items():
            window.stayed = window.stayed and job_key in active
        if had_company != has_company:
            for window in self._jobs.values():
                window.clear(rebase=True)
            self._window_s, self._recent_bytes = now, (0.0, 0.0)
            self._totals.clear()
            self._best_average = 0.0
            for belief in self._beliefs.values():
                belief.end_shortage()
        if has_company:
            self._meet(now)

    def _meet(self, now: float) -> None:
        """Find out what several jobs do, as far as it is known when they meet."""
        kinds = {self._jobs[job_key].kind for job_key in self._active} - {None}
        if kinds:
            self._kind = kinds.pop() if len(kinds) == 1 else Kind.MIXED
        belief = self._belief(now)
        if belief and belief.saturated and len(self._active) > belief.jobs:
            belief.is_confirmed, belief.step = False, max(belief.step, QUICK_STEP)

    @property
    def has_company(self) -> bool:
        """True if several jobs have operations."""
        return len(self._active) > 1

    # --- The estimate -----------------------------------------------------------------

    @property
    def bandwidth(self) -> float:
        """What the storage can give for what is being done now; inf: not known."""
        belief = self._beliefs.get(self._kind) if self._kind else None
        return belief.rate if belief else inf

    def is_slowed(self, job_key: str) -> bool:
        """Return True if the storage slowed a job much in the last window."""
        return job_key in self._jobs and self._jobs[job_key].is_slowed

    @property
    def kind(self) -> Kind | None:
        """What is being done now, or was done last; None: not known."""
        return self._kind

    def beliefs(self) -> dict[Kind, Belief]:
        """Return what is believed, by kind."""
        return dict(self._beliefs)

    def learn(self, now: float) -> None:
        """Draw conclusions from the reports so far."""
        if not self.has_company:
            self._end_alone(WINDOW_S, now)
            return
        belief = self._belief(now)
        window_s = FAST_WINDOW_S if belief and not belief.saturated else WINDOW_S
        length_s = now - self._window_s
        if length_s >= window_s - _EPSILON_S:
            self._end_window(length_s, now)
            self._window_s = now

    def _end_window(self, length_s: float, now: float) -> None:
        windows = list(self._jobs.values())
        drawn = sum(window.rate(length_s, now) for window in windows)
        self._add_total(drawn * length_s, now)
        self._note_kind(windows)
        belief = self._belief(now)
        if belief is None:
            self._begin_belief(drawn, length_s, now)
        else:
            self._update(belief, drawn, length_s, now)
            belief.note_rate(now)
        for job_key, window in self._jobs.items():
            window.is_slowed = window.takes_longer(MUCH_SLOWER, without_best=False)
            window.remember_busy()
            window.clear(rebase=job_key not in self._active)

    def _note_kind(self, windows: list[JobWindow]) -> None:
        """Find out what the jobs do, from this window and half of those before.

        With large calls, a window may hold reads or writes only.
        """
        read_bytes, written_bytes = self._recent_bytes
        read_bytes = 0.5 * read_bytes + sum(each.read_bytes for each in windows)
        written_bytes = 0.5 * written_bytes + sum(
            each.written_bytes for each in windows
        )
        self._recent_bytes = read_bytes, written_bytes
        if read_bytes + written_bytes > 0.0:
            self._kind = kind_of(read_bytes, written_bytes)

    def _update(
        self, belief: Belief, drawn: float, length_s: float, now: float
    ) -> None:
        """Correct a belief by what was drawn in a window."""
        # A job that has left would not draw more.
        active = [self._jobs[job_key] for job_key in self._active]
        if any(window.syncs(now) for window in active):
            if drawn == 0.0:
                self._lower_by_sync(belief, now)
        elif _is_at_limit(belief, active):
            if belief.add_shortage(drawn, length_s):
                limit = belief.short_bytes / belief.short_s
                belief.set_limit(limit, Reason.SATURATED, len(active), now)
        elif _wants_more(belief, active, drawn):
            belief.probe(drawn, now)
        elif any(window.elapsed_s > 0.0 for window in active):
            belief.end_shortage()
        # Else no call has ended in this window: it says nothing.

    def _begin_belief(self, drawn: float, length_s: float, now: float) -> None:
        """Begin a belief once free jobs that wait for the storage draw no more."""
        if self._kind is None or not any(
            self._jobs[job_key].waits for job_key in self._active
        ):
            return
        self._start.append((drawn, length_s))
        if sum(length for _, length in self._start) < START_S:
            return
        windows, half = list(self._start), len(self._start) // 2
        before, after = _mean(windows[:half]), _mean(windows[half:])
        self._start.popleft()
        if after <= (1.0 + CLOSE) * before:
            belief = self._beliefs[self._kind] = Belief(inf, Reason.SATURATED, now)
            limit = max(before, after)
            belief.set_limit(limit, Reason.SATURATED, len(self._active), now)
            self._start.clear()

    def _end_alone(self, least_s: float, now: float) -> None:
        """Draw conclusions from what a lone job has done for `least_s` or longer."""
        window = next((self._jobs[key] for key in self._active), None)
        if window is None or window.elapsed_s < least_s or window.kind is None:
            return
        kind = self._kind = window.kind
        drawn = window.moved_bytes / window.elapsed_s
        inside_s = min(max(window.busy_s, 1e-9), window.elapsed_s)
        belief = self._beliefs.get(kind)
        if belief is None or belief.reason is Reason.ALONE:
            rate = window.moved_bytes / inside_s
            self._beliefs[kind] = Belief(rate, Reason.ALONE, now)
        elif drawn > belief.rate * (1.0 + CLOSE):
            self._beliefs[kind] = Belief(drawn, Reason.ALONE, now)
        window.remember_busy()
        window.clear(rebase=False)

    def _belief(self, now: float) -> Belief | None:
        """Return the belief for what is being done now; begin one if possible."""
        kind = self._kind
        if kind is not None and kind not in self._beliefs and self._beliefs:
            rate = min(belief.rate for belief in self._beliefs.values())
            self._beliefs[kind] = Belief(rate, Reason.KNOWN_OTHERWISE, now)
        return self._beliefs.get(kind) if kind else None

    # --- Syncs ------------------------------------------------------------------------

    def _lower_by_sync(self, belief: Belief, now: float) -> None:
        average = self._average(now)
        if self._totals and now - self._totals[0][0] > LONG_S - WINDOW_S:
            self._best_average = max(_AGEING * self._best_average, average)
        rate = max((1.0 - SYNC_STEP) * belief.rate, average, self._best_average)
        if average > 0.0 and rate < belief.rate:
            belief.set_limit(rate / MARGIN, Reason.SYNCED, len(self._active), now)

    def _add_total(self, moved_bytes: float, now: float) -> None:
        before_bytes = self._totals[-1][1] if self._totals else 0.0
        _append_recent(self._totals, now, before_bytes + moved_bytes, LONG_S)

    def _average(self, now: float) -> float:
        """Return what was drawn on average over `LONG_S`; 0 if that is not known."""
        if not self._totals or now - self._totals[0][0] < WINDOW_S:
            return 0.0
        (begin_s, begin_bytes), (_, end_bytes) = self._totals[0], self._totals[-1]
        return (end_bytes - begin_bytes) / (now - begin_s)


def _append_recent(
    entries: deque[tuple[float, float]], now: float, value: float, kept_s: float
) -> None:
    """Append an instant and a value; drop entries older than `kept_s`."""
    entries.append((now, value))
    while now - entries[0][0] > kept_s:
        entries.popleft()


def _is_at_limit(belief: Belief, active: list[JobWindow]) -> bool:
    """Return True if a job waits because the storage is at its limit."""
    held = [window for window in active if window.is_held and window.elapsed_s > 0.0]
    # A job that lends for long does not need its grant, and keeps more than it draws.
    lenders = [window for window in active if held and window.lent >= REST]
    waiting = [each for each in active if each.waits and each not in lenders]
    service = max((window.service for window in held), default=0.0)
    if service >= FASTER * belief.rate:
        return False
    if service < belief.rate and (held or not belief.saturated):
        return bool(waiting)
    return any(window.takes_longer(SLOWER, without_best=not held) for window in waiting)


def _wants_more(belief: Belief, active: list[JobWindow], drawn: float) -> bool:
    """Return True if jobs that are held would draw more with a higher belief.

    A job that is held and moves nothing may be paused by the policy.
    """
    if drawn == 0.0:
        return not belief.saturated and any(window.is_held for window in active)
    held = any(window.is_held for window in active if window.elapsed_s > 0.0)
    return held and (not belief.saturated or drawn >= USED_PART * belief.rate)


def _mean(windows: list[tuple[float, float]]) -> float:
    """Return the rate over windows, each a rate and a length; 0 without windows."""
    length_s = sum(length for _, length in windows)
    return sum(rate * length for rate, length in windows) / max(length_s, 1e-9)
