# SPDX-License-Identifier: MIT
"""What one simulation with burst buffers is given, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from penstock.policies.policy import Policy
from penstock.sim.buffers.model import Act, Buffer, Storage, Writer
from penstock.sim.buffers.sharing import TargetRules
from penstock.staging import Forecast, Strategy

__all__ = ["Setup"]


@dataclass(frozen=True, slots=True)
class Setup:
    """What is simulated."""

    storage: Storage
    writers: tuple[Writer, ...]
    strategy: Strategy
    buffer: Buffer | None
    sharing: Policy | None
    draining: Policy | None
    most_instants: float = inf
    """Highest number of instants to simulate."""

    @property
    def forecast(self) -> Forecast:
        """What strategies may ask for: see `Situation.forecast`."""
        # RATIONALE: a forecast is a simulation, and imports this module.
        from penstock.sim.forecast import BufferForecast  # noqa: PLC0415

        return BufferForecast(self.storage, self.buffer, self.sharing, self.draining)

    @property
    def is_inline(self) -> bool:
        """True if applications flush by themselves."""
        return self.buffer is not None and self.buffer.inline

    @property
    def is_buffer_shared(self) -> bool:
        """True if one buffer serves all."""
        return self.buffer is not None and self.buffer.shared

    @property
    def gain(self) -> float:
        """Storage time of writes divided by that of draining the same bytes."""
        return self.buffer.gain if self.buffer else 1.0

    def alone(self, writer: Writer) -> float:
        """Return what a writer draws alone on all targets, b_i (bytes/s)."""
        return self.storage.alone(self.storage.targets, writer.limit_bytes_per_s)

    def rules(self, *, background: bool = False) -> TargetRules:
        """Return how a target is shared; with `background`, drains come last."""
        by_time = bool(self.storage.profile)
        return TargetRules(
            capacity=1.0 if by_time else self.storage.target_bandwidth,
            congestion=self.storage.congestion,
            sharing=self.sharing,
            draining=self.draining,
            background=background,
        )

    def horizon(self) -> float:
        """Return an upper bound on the time at which all writers are done (s).

        It assumes that they run one by one on a single target, each request at the
        efficiency with all processes waiting, and doubles that.
        """
        everyone = sum(writer.processes for writer in self.writers)
        efficiency = self.storage.congestion.efficiency(everyone)
        length = 0.0
        for writer in self.writers:
            alone = self.storage.alone(1, writer.limit_bytes_per_s) * efficiency
            for act, amount in writer.steps:
                length += amount / alone if act is Act.WRITE else amount
        return max(w.start_s for w in self.writers) + 2 * length + 1.0
