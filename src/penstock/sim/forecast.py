# SPDX-License-Identifier: MIT
"""Simulate the next I/O phases under a staging strategy, from what strategies see.

The simulator and the controller put a `BufferForecast` into the situation that they
show to a strategy (`penstock.staging.Situation.forecast`): both simulate the same from
the same numbers.

What is simulated
    1. Every application in its I/O phase writes what is left of the phase, in requests
       of its mean size with its mean pauses. Staged data, and a request that is under
       way, are where they are.
    2. An application that is expected to begin phases within the horizon writes as much
       in each of them. When it begins its second and later ones depends on its work
       and on the simulation; how many there are, on its work and its phases alone.
    3. All others begin when these are done: a static partition counts them.
    4. A volume that is not known is twice what was written so far, and at least what
       one second moves.

Bounds
    All applications together have about `_REQUESTS` requests: more of them are merged
    into larger ones. Each application has `_MOST_PHASES` phases at most. If there are
    many applications, each has fewer phases, down to `_LEAST_PHASES`, so that a phase
    keeps `_LEAST_PIECES` requests and its pauses between them. A simulation that takes
    more than `_MOST_INSTANTS` steps is refused. These bounds keep a forecast short, and
    the same on every machine. A phase takes `_SHORTEST_S` to `_LONGEST_S` alone: no
    volume that a user announces makes the forecast fail for all.

Times in seconds, volumes in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Final

from penstock.policies.policy import Policy
from penstock.sim.buffers.model import Act, Buffer, OpenPhase, Step, Storage, Writer
from penstock.sim.buffers.simulation import simulate_buffers
from penstock.staging import ApplicationStatus, Situation

__all__ = ["BufferForecast", "live_forecast"]

#: Requests of all applications together, about.
_REQUESTS: Final = 32
#: Requests of a phase that are not merged further: one alone would have no pauses, and
#: two would make a strategy that reserves the storage in pauses look good.
_LEAST_PIECES: Final = 4
_MOST_INSTANTS: Final = 1000
#: Phases of one application, if there are few applications, and if there are many.
_MOST_PHASES: Final = 4
_LEAST_PHASES: Final = 2
#: Speed of a buffer that nobody has measured, divided by that of the storage.
_BUFFER_SPEED: Final = 1000.0
#: An application without an expected phase begins this late (s).
_LATER_S: Final = 1e6
#: Volume of a phase of which nothing is known: what this time moves (s).
_UNKNOWN_S: Final = 1.0
#: Bounds of what a phase takes alone (s).
_SHORTEST_S: Final = 1e-9
_LONGEST_S: Final = 1e9
#: Most requests of a phase before they are merged.
_MOST_REQUESTS: Final = 1e15


@dataclass(frozen=True, slots=True)
class BufferForecast:
    """Forecasts for one storage and its buffers."""

    storage: Storage
    buffer: Buffer | None = None
    sharing: Policy | None = None
    """Policy of every target; None: all requests get the same share."""
    draining: Policy | None = None

    @property
    def can_stage(self) -> bool:
        """True if there are buffers."""
        return self.buffer is not None

    def __call__(
        self, situation: Situation, strategy: str, horizon_s: float
    ) -> Mapping[str, float]:
        """Return the slowdown of each phase; see `penstock.staging.Forecast`."""
        starts_s = {
            a.name: _start_s(a, situation.now_s, horizon_s)
            for a in situation.applications
        }
        counted = [a for a in situation.applications if starts_s[a.name] < _LATER_S]
        shown = counted
        if len(situation.applications) <= situation.target_count:
            shown = list(situation.applications)
        most = _most_phases(len(counted))
        phases = {
            a.name: min(self._phases(a, starts_s[a.name], horizon_s), most)
            for a in shown
        }
        total = sum(phases[a.name] for a in counted)
        pieces = max(_REQUESTS // max(total, 1), _LEAST_PIECES)
        writers = [
            self._writer(a, starts_s[a.name], situation.now_s, (phases[a.name], pieces))
            for a in shown
        ]
        run = simulate_buffers(
            self.storage,
            writers,
            strategy,
            self.buffer,
            sharing=self.sharing,
            draining=self.draining,
            most_instants=_MOST_INSTANTS,
        )
        lengths_s = dict(zip((a.name for a in shown), run.io_times, strict=True))
        return {
            a.name: lengths_s[a.name] / (phases[a.name] * self._alone_s(a))
            for a in counted
        }

    def _bandwidth(self, application: ApplicationStatus) -> float:
        """Return what an application draws alone (bytes/s)."""
        limit = application.dedicated_bytes_per_s
        return self.storage.alone(self.storage.targets, limit)

    def _phase_bytes(self, application: ApplicationStatus) -> float:
        """Return the volume of the present or next phase of an application."""
        bandwidth = self._bandwidth(application)
        if application.phase_bytes > 0:
            volume = max(application.phase_bytes, application.written_bytes)
        else:
            volume = max(2.0 * application.written_bytes, _UNKNOWN_S * bandwidth)
        return min(max(volume, _SHORTEST_S * bandwidth), _LONGEST_S * bandwidth)

    def _phases(
        self, application: ApplicationStatus, start_s: float, horizon_s: float
    ) -> int:
        """Return how many phases of an application to simulate."""
        length_s = self._alone_s(application)
        left_s = length_s
        if application.in_phase:
            written = application.written_bytes / self._phase_bytes(application)
            left_s *= 1.0 - written
        room_s = horizon_s - start_s - left_s - application.work_s
        if not room_s >= 0.0:
            return 1
        return min(2 + int(room_s / (length_s + application.work_s)), _MOST_PHASES)

    def _alone_s(self, application: ApplicationStatus) -> float:
        """Return how long a whole phase takes alone."""
        volume = self._phase_bytes(application)
        pauses = _count(volume, application.mean_request_bytes) - 1
        busy_s = volume / self._bandwidth(application)
        return busy_s + pauses * application.mean_pause_s

    def _writer(
        self,
        application: ApplicationStatus,
        start_s: float,
        now_s: float,
        size: tuple[int, int],
    ) -> Writer:
        """Return the application as a writer of some phases and requests in each."""
        phases, pieces = size
        volume, phase = self._phase_bytes(application), None
        under_way = 0.0
        if application.in_phase:
            volume = max(volume - application.written_bytes, 0.0)
            under_way = min(application.under_way_bytes, volume)
            phase = OpenPhase(
                application.phase_began_s - now_s,
                application.written_bytes,
                application.staged_bytes,
                is_writing=under_way > 0,
                targets=application.open_targets,
            )
        rest = self._requests(application, volume - under_way, pieces)
        first = [Step(Act.WRITE, under_way)] if under_way else []
        pause = Step(Act.WORK, application.mean_pause_s)
        joint = [pause] if first and rest else []
        whole = self._requests(application, self._phase_bytes(application), pieces)
        later = (Step(Act.WORK, application.work_s), *whole, Step(Act.CLOSE))
        return Writer(
            application.name,
            (*first, *joint, *rest, Step(Act.CLOSE), *later * (phases - 1)),
            start_s=start_s,
            nodes=application.nodes,
            processes=application.processes,
            limit_bytes_per_s=application.dedicated_bytes_per_s,
            priority=application.priority,
            redirects=application.redirects,
            merges=application.merges,
            open_phase=phase,
        )

    def _requests(
        self, application: ApplicationStatus, volume: float, pieces: int
    ) -> list[Step]:
        """Return requests and pauses that write `volume`, at most `pieces` requests.

        Merged requests keep the sum of the pauses. No request is larger than a buffer.
        """
        if volume <= 0:
            return []
        real = _count(volume, application.mean_request_bytes)
        room = self.buffer.capacity_bytes if self.buffer else inf
        if self.buffer and not self.buffer.shared:
            room *= application.nodes
        count = max(min(real, pieces), ceil(volume / room))
        pauses_s = (real - 1) * application.mean_pause_s
        pause = Step(Act.WORK, pauses_s / max(count - 1, 1))
        write = Step(Act.WRITE, volume / count)
        return [write, *(step for _ in range(count - 1) for step in (pause, write))]


def live_forecast(
    bandwidth: float, targets: int, profile: Sequence[float] = ()
) -> BufferForecast:
    """Return forecasts for a storage of which only the bandwidths are known.

    All jobs are simulated with journals (buffers). While a job without any writes, no
    strategy asks for a forecast of staging (`ApplicationStatus.can_stage`).

    Parameters
    ----------
    bandwidth
        Of all targets together (bytes/s).
    profile
        What an application draws alone on 1, 2, ... targets (bytes/s); other than
        `targets` numbers: not known, and in proportion to the targets.
    """
    known = tuple(profile) if len(profile) == targets else ()
    buffer = Buffer(_BUFFER_SPEED * bandwidth)
    return BufferForecast(Storage(bandwidth, targets, known), buffer)


def _most_phases(applications: int) -> int:
    """Return how many phases each of so many applications has at most."""
    room = _REQUESTS // (_LEAST_PIECES * max(applications, 1))
    return min(max(room, _LEAST_PHASES), _MOST_PHASES)


def _count(volume: float, request: float) -> int:
    """Return the number of requests of a volume; 1 if their size is not known."""
    # A little less: what is left of a phase may be a rounding error above n requests.
    if request <= 0:
        return 1
    return max(ceil(min(volume / request, _MOST_REQUESTS) - 1e-6), 1)


def _start_s(application: ApplicationStatus, now_s: float, horizon_s: float) -> float:
    """Return when an application begins to write, seconds from now."""
    if application.in_phase:
        return 0.0
    wait_s = application.next_phase_s - now_s
    return wait_s if 0 <= wait_s <= horizon_s else _LATER_S
