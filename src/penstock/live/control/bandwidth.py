# SPDX-License-Identifier: MIT
"""What bandwidth a storage has, learnt from the jobs that use it.

The estimator reads growing counters of each job: bytes read and written, time inside
calls that reached the storage (*busy*), and time that control held calls up (*held*).
It keeps one belief B for reads, one for writes and one for both at once, since they
differ. It adds the reports up to *windows*. At the end of a window

    D = sum over jobs of (bytes moved / time observed)

is what was drawn, and every job is one of three kinds:

- *held*: control held it up for `HELD_PART` of the time or more. It would draw more.
- *slowed*: not held, inside calls for `BUSY_PART` of the time or more, and longer per
  byte than in its best window so far (by `SLOWER`). If nobody is held, a job without
  such a window counts as slowed, too.
- *self-limited*: neither.

At the end of a window the first true condition decides. *Step* is the part by which B
is raised next; *rest* is the number of windows to wait before that.

    several jobs                            B becomes           step        rest
    --------------------------------------  ------------------  ----------  ------
    saturated: a job is slowed,             about 0.985 D       1.5 %       0 to 3
      D < 97 % of B (f), and no held job    (`_at_saturation`)              (a)
      is served at 1.25 B inside calls
    a job is held, no saturation seen yet   B (1 + step)        100 % (b)   0
    a job is held, rest > 0,                B                   as before   one
      D >= 95 % of B (c)                                                    less
    a job is held, rest = 0,                B (1 + step)        doubled if  0
      D >= 95 % of B (c)                                        far (d)
    otherwise                               B                   as before   as before
    between windows: a call moves nothing   0.9 B, at least     1.5 %       0
      for 0.5 s and is not held (*sync*)    what is drawn (e)
    more jobs meet than at saturation       B                   4 % or      0
                                                                more
    a lone job (never held up)
    --------------------------------------  ------------------  ----------  ------
    nothing else is known                   its rate inside     100 %       0
                                            calls
    it draws more than 1.05 B               what it draws       100 %       0

    (a) number of times in a row that saturation was seen close to B
    (b) 4 % if B was measured or comes from an earlier run
    (c) or the average over 12 s is; 80 % if a held job is served at B inside calls
    (d) B is above the last limit by 5 % or more; the step is 25 % at most
    (e) on average over 12 s, and only as long as this average does not sink, too
    (f) D averaged over 4 windows

The margin of 1.5 % lets control and not the storage decide. Small steps keep shares
right near the limit; growing ones find a limit that has risen. Jobs slowed by 25 % do
not lend: they would draw more. Until the first row applies, B is infinite on a storage
of which nothing is known.

Example (MB/s): two writers begin together on a storage of 100.

    until    seen                                    B      why
    0.2 s    both free and always in calls, D = 100   98.5  saturated: 0.985 D
    0.8 s    both held, D = 98.5                     100.0  raised by 1.5 %
    1.3 s    both held, D = 100.0                    101.5  raised by 1.5 %
    2.3 s    slowed, D = 100 >= 97 % of B            101.5  stays
    2.8 s    the storage gives 80: slowed, D = 80     94.7  saturated: 0.985 of the
                                                            average so far, 96.1
    6.3 s    the same                                 81.0  after the last saturation;
    8.3 s    the same                                 81.0  D >= 97 % of B: stays

Nothing here reads a clock. Times are in seconds, volumes in bytes, rates in bytes/s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf, isfinite
from typing import Final, NamedTuple

__all__ = ["BandwidthEstimator", "Belief", "Kind", "Reason", "Usage"]

#: Length of a window, and of one before saturation was seen.
WINDOW_S: Final = 0.5
FAST_WINDOW_S: Final = 0.2
#: A job that is held up for this part of the time or more would draw more.
HELD_PART: Final = 0.01
#: A job that is inside calls for less than this part of the time limits itself.
BUSY_PART: Final = 0.5
#: Calls that take longer per byte by this part than before are slowed.
SLOWER: Final = 0.03
MUCH_SLOWER: Final = 0.25
#: A belief of which this part or more is drawn is not lowered.
FULL_PART: Final = 0.97
#: A belief of which less than this part is drawn is not raised; the second one holds if
#: a held job is served faster than that.
USED_PART: Final = 0.95
LEAST_USED_PART: Final = 0.8
#: A storage that serves a job at this multiple of the belief is not at its limit.
FASTER: Final = 1.25
#: The belief at saturation is this part of what is drawn.
MARGIN: Final = 0.985
#: First step after saturation, largest step, and step before any saturation.
FIRST_STEP: Final = 0.015
LARGEST_STEP: Final = 0.25
FAST_STEP: Final = 1.0
#: Step with more jobs than at saturation, and from an earlier run.
QUICK_STEP: Final = 0.04
#: After saturation the belief rests for this many windows at most.
LONGEST_REST: Final = 3
#: What is drawn at saturation is averaged over a few windows, or over many.
FEW_WINDOWS: Final = 4
MANY_WINDOWS: Final = 8
#: Part by which a sync lowers the belief in every window.
SYNC_STEP: Final = 0.1
#: An interval without bytes is a sync if its end brings less than this part of what
#: the job drew before.
_SYNC_PART: Final = 0.25
#: A sync lowers the belief to the average over this time at most, and saturation to
#: `LEAST_PART` of it: bytes may have been counted before the sync that moves them.
LONG_S: Final = 12.0
#: The average sinks if it is below this part of its best value, which ages slowly.
_SINKING_PART: Final = 0.7
_AGEING: Final = 0.99
LEAST_PART: Final = 0.5
#: A lone job that draws more than the belief by this part corrects it.
SURPRISE: Final = 0.05
#: A part of the bytes below this does not make a mixture of reads and writes.
_ONE_SIDED: Final = 0.05


class Kind(StrEnum):
    """What the jobs on a storage do."""

    READS = "reads"
    WRITES = "writes"
    MIXED = "mixed"


class Reason(StrEnum):
    """Why a bandwidth is believed."""

    ALONE = "drawn by a lone job"
    SATURATED = "drawn while calls took longer"
    RAISED = "raised because all of it was drawn"
    SYNCED = "lowered because fsync or close took long"
    KNOWN_OTHERWISE = "taken from reads or writes alone"
    MEASURED = "measured at the start"
    REMEMBERED = "learnt in an earlier run"


class Usage(NamedTuple):
    """Growing counters of one job."""

    read_bytes: float
    written_bytes: float
    busy_s: float
    """Time inside calls that reached the storage, added over callers."""
    held_up_s: float
    """Time that control held calls up, added over callers."""
    in_call: bool = False
    """True if a call is under way now."""

    @property
    def moved_bytes(self) -> float:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes


@dataclass(slots=True)
class Belief:
    """A bandwidth that is believed, and why."""

    rate: float
    reason: Reason
    since_s: float
    """When it was last confirmed or changed by an observation."""
    saturated: bool = False
    """True if the storage was seen at its limit."""
    step: float = FAST_STEP
    """Part by which it is raised next."""
    rest: int = 0
    """Windows until it may be raised."""
    confirmations: int = 0
    """Times in a row that saturation was seen close to it."""
    jobs: int = 0
    """Number of jobs at the last saturation."""
    limit: float = 0.0
    """What was drawn at the last saturation."""
    recent: deque[tuple[float, float]] = field(
        default_factory=lambda: deque(maxlen=MANY_WINDOWS)
    )
    """Bytes drawn and length of the last windows of this meeting, newest last."""

    def drawn(self, windows: int) -> float:
        """Return the rate drawn in the last windows."""
        last = list(self.recent)[-windows:]
        return sum(moved for moved, _ in last) / sum(length for _, length in last)


@dataclass(slots=True, eq=False)
class _JobWindow:
    """One job in the present window."""

    base: Usage | None = None
    """Counters at the last report that is added up; None: the next one is the base."""
    base_s: float = 0.0
    latest: Usage | None = None
    elapsed_s: float = 0.0
    read_bytes: float = 0.0
    written_bytes: float = 0.0
    busy_s: float = 0.0
    held_up_s: float = 0.0
    stayed: bool = True
    """False if the job has joined or left in this window."""
    drawn: float = 0.0
    """Rate that it drew in the last interval that was added."""
    kind: Kind | None = None
    """What it did last."""
    least_busy: dict[Kind, float] = field(default_factory=dict)
    """Least time inside calls per byte in any window (s), by kind."""
    is_slowed: bool = False
    """True if the storage slowed it much in the last window."""

    def read(self, now: float, usage: Usage) -> None:
        """Add a report. Time without new bytes is added when the next bytes come."""
        base, self.latest = self.base, usage
        if base is None or any(a < b for a, b in zip(usage[:4], base[:4], strict=True)):
            self.base, self.base_s = usage, now
            return
        moved_bytes = usage.moved_bytes - base.moved_bytes
        elapsed_s = now - self.base_s
        if moved_bytes <= 0.0 or elapsed_s <= 0.0:
            return
        self.base, self.base_s = usage, now
        before, self.drawn = self.drawn, moved_bytes / elapsed_s
        if (
            elapsed_s > WINDOW_S
            and usage.held_up_s == base.held_up_s
            and self.drawn < _SYNC_PART * before
        ):
            return
        self.elapsed_s += elapsed_s
        self.read_bytes += usage.read_bytes - base.read_bytes
        self.written_bytes += usage.written_bytes - base.written_bytes
        self.busy_s += usage.busy_s - base.busy_s
        self.held_up_s += usage.held_up_s - base.held_up_s
        self.kind = _kind(self.read_bytes, self.written_bytes)

    def clear(self, *, rebase: bool) -> None:
        """Begin a new window; with `rebase`, from the next report on."""
        self.elapsed_s = self.read_bytes = self.written_bytes = 0.0
        self.busy_s = self.held_up_s = 0.0
        self.stayed = True
        if rebase:
            self.base = self.latest = None
            self.is_slowed = False

    @property
    def moved_bytes(self) -> float:
        return self.read_bytes + self.written_bytes

    @property
    def is_held(self) -> bool:
        if self.elapsed_s > 0.0:
            return self.held_up_s >= HELD_PART * self.elapsed_s
        base, latest = self.base, self.latest
        return bool(base and latest and latest.held_up_s > base.held_up_s)

    def is_served_at(self, rate: float) -> bool:
        """Return True if it is held, and moves bytes at this rate inside calls."""
        return self.is_held and self.moved_bytes > rate * self.busy_s

    def takes_longer(self, by: float, *, without_best: bool) -> bool:
        """Return True if its calls take longer per byte than before by a part `by`.

        `without_best` is the result if there is no window to compare with.
        """
        if self.is_held or self.kind is None:
            return False
        if self.busy_s < BUSY_PART * self.elapsed_s or self.elapsed_s <= 0.0:
            return False
        if self.kind not in self.least_busy:
            return without_best
        return self.busy_s > (1.0 + by) * self.least_busy[self.kind] * self.moved_bytes

    def syncs(self, now: float) -> bool:
        """Return True if a call has moved nothing for long, and is not held up."""
        base, latest = self.base, self.latest
        return (
            base is not None
            and latest is not None
            and latest.in_call
            and latest.held_up_s == base.held_up_s
            and now - self.base_s > WINDOW_S
        )

    def remember_busy(self) -> None:
        """Remember the time inside calls per byte, if it is the least so far."""
        if self.kind is not None and self.moved_bytes > 0.0:
            busy = self.busy_s / self.moved_bytes
            self.least_busy[self.kind] = min(busy, self.least_busy.get(self.kind, busy))


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
        self._jobs: dict[str, _JobWindow] = {}
        self._active: frozenset[str] = frozenset()
        self._kind: Kind | None = None
        self._synced_s, self._best_average = -inf, 0.0
        #: Time and bytes moved in company so far, for the average over `LONG_S`.
        self._totals: deque[tuple[float, float]] = deque()
        for kind, (rate, reason) in (known or {}).items():
            self.suggest(kind, rate, reason)

    def suggest(self, kind: Kind, rate: float, reason: Reason) -> None:
        """Begin with a rate that was measured or learnt before, unless one is known."""
        if kind not in self._beliefs and isfinite(rate) and rate > 0.0:
            self._beliefs[kind] = Belief(rate, reason, -inf, step=QUICK_STEP)

    # --- Reports and events -----------------------------------------------------------

    def read(self, job_key: str, now: float, usage: Usage) -> None:
        """Take the counters of a job."""
        if job_key in self._active:
            self._jobs[job_key].read(now, usage)

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
            window = self._jobs.setdefault(job_key, _JobWindow())
            window.clear(rebase=True)
            window.stayed = False
        for job_key, window in self._jobs.items():
            window.stayed = window.stayed and job_key in active
        if had_company != has_company:
            for window in self._jobs.values():
                window.clear(rebase=True)
            self._totals.clear()
            self._best_average = 0.0
            for belief in self._beliefs.values():
                belief.recent.clear()
        if has_company:
            self._meet(now)

    def _meet(self, now: float) -> None:
        """Find out what several jobs do, as far as it is known when they meet."""
        kinds = {self._jobs[job_key].kind for job_key in self._active} - {None}
        if kinds:
            self._kind = kinds.pop() if len(kinds) == 1 else Kind.MIXED
        belief = self._belief(now)
        if belief and belief.saturated and len(self._active) > belief.jobs:
            belief.step, belief.rest = max(belief.step, QUICK_STEP), 0

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
        window_s = WINDOW_S if belief and belief.saturated else FAST_WINDOW_S
        windows = list(self._jobs.values())
        length_s = max((window.elapsed_s for window in windows), default=0.0)
        if length_s >= window_s:
            self._end_window(windows, length_s, now)
        elif belief and any(self._jobs[key].syncs(now) for key in self._active):
            self._lower_by_sync(belief, now)

    def _end_window(
        self, windows: list[_JobWindow], length_s: float, now: float
    ) -> None:
        drawn = _drawn(windows, length_s)
        self._add_total(drawn * length_s, now)
        self._kind = _kind(
            sum(window.read_bytes for window in windows),
            sum(window.written_bytes for window in windows),
        )
        belief = self._belief(now) or Belief(inf, Reason.RAISED, now)
        belief.recent.append((drawn * length_s, length_s))
        # A job that has left would not draw more.
        active = [self._jobs[job_key] for job_key in self._active]
        held = any(window.is_held for window in active)
        served = any(window.is_served_at(belief.rate) for window in active)
        used = LEAST_USED_PART if served else USED_PART
        if (
            any(
                window.takes_longer(SLOWER, without_best=not held) for window in windows
            )
            and belief.drawn(FEW_WINDOWS) < FULL_PART * belief.rate
            and not any(window.is_served_at(FASTER * belief.rate) for window in active)
        ):
            _at_saturation(belief, LEAST_PART * self._average(now), now)
            belief.jobs = len(self._active)
        elif held and (
            not belief.saturated or max(drawn, self._average(now)) >= used * belief.rate
        ):
            _raise(belief, now)
        for window in windows:
            window.is_slowed = window.takes_longer(MUCH_SLOWER, without_best=False)
            window.remember_busy()
        if belief.rate < inf:
            self._beliefs[self._kind] = belief
        for job_key, window in self._jobs.items():
            window.clear(rebase=job_key not in self._active)

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
        elif drawn > belief.rate * (1.0 + SURPRISE):
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
        if now - self._synced_s < WINDOW_S:
            return
        self._synced_s, average = now, self._average(now)
        if self._totals and now - self._totals[0][0] > LONG_S - WINDOW_S:
            self._best_average = max(_AGEING * self._best_average, average)
        rate = max(belief.rate * (1.0 - SYNC_STEP), MARGIN * average)
        sinks = average < _SINKING_PART * self._best_average
        if average > 0.0 and not sinks and rate < belief.rate:
            belief.rate, belief.reason, belief.since_s = rate, Reason.SYNCED, now
            belief.saturated, belief.limit = True, rate
            belief.step, belief.rest = FIRST_STEP, 0

    def _add_total(self, moved_bytes: float, now: float) -> None:
        before_bytes = self._totals[-1][1] if self._totals else 0.0
        self._totals.append((now, before_bytes + moved_bytes))
        while now - self._totals[0][0] > LONG_S:
            self._totals.popleft()

    def _average(self, now: float) -> float:
        """Return what was drawn on average over `LONG_S`; 0 if that is not known."""
        if not self._totals or now - self._totals[0][0] < WINDOW_S:
            return 0.0
        (begin_s, begin_bytes), (_, end_bytes) = self._totals[0], self._totals[-1]
        return (end_bytes - begin_bytes) / (now - begin_s)


def _at_saturation(belief: Belief, least: float, now: float) -> None:
    """Set a belief to what the storage gives at its limit, less the margin.

    That is the rate drawn in `FEW_WINDOWS` (half of them if the belief was raised in
    large steps before), or in `MANY_WINDOWS` if it is higher, but not less than
    `least`. A belief between the two was nearly right and changes by the margin only.
    """
    few = FEW_WINDOWS // 2 if belief.step > FIRST_STEP else FEW_WINDOWS
    least = max(least, belief.drawn(few))
    most = max(least, belief.drawn(MANY_WINDOWS))
    near = belief.saturated and belief.rate < most * (1.0 + SURPRISE)
    belief.confirmations = belief.confirmations + 1 if near else 0
    belief.limit = min(max(belief.rate, least), most)
    belief.rate = MARGIN * belief.limit
    belief.reason, belief.since_s, belief.saturated = Reason.SATURATED, now, True
    belief.step, belief.rest = FIRST_STEP, min(belief.confirmations, LONGEST_REST)


def _raise(belief: Belief, now: float) -> None:
    """Raise a belief that is drawn completely."""
    if belief.rest > 0:
        belief.rest -= 1
        return
    if belief.step > SURPRISE:
        belief.reason = Reason.RAISED
    belief.rate = max(belief.rate * (1.0 + belief.step), belief.drawn(FEW_WINDOWS))
    belief.since_s = now
    if belief.saturated and belief.rate > belief.limit * (1.0 + SURPRISE):
        belief.step = min(2.0 * belief.step, LARGEST_STEP)


def _drawn(windows: list[_JobWindow], length_s: float) -> float:
    """Return the rate at which the jobs of a window moved bytes together."""
    return sum(
        window.moved_bytes / (window.elapsed_s if window.stayed else length_s)
        for window in windows
        if window.elapsed_s > 0.0
    )


def _kind(read_bytes: float, written_bytes: float) -> Kind:
    least = _ONE_SIDED * (read_bytes + written_bytes)
    if written_bytes <= least:
        return Kind.READS
    return Kind.WRITES if read_bytes <= least else Kind.MIXED
