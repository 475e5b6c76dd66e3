# SPDX-License-Identifier: MIT
"""A scheduler written as kernels, for its drivers: the simulator and the mount.

`KernelScheduler` owns the state (`penstock.qos.state`), knows the names of applications
and offers the control plane. The simulator hands it `Request` objects. The data path of
the mount calls the machine code itself, at the addresses of `KernelScheduler.pointers`.

Requests are decided by three kernels, `Kernels`:

- ``arrive(state, application, kind, cost_bytes, now)`` returns the slot of a new
  request, or -1 if there is no room for it. The kind is `Request.kind_number`.
- ``next_request(state, now)`` returns the slot of the next request to send, or -1. The
  driver calls it until -1 after every arrival, completion and wake-up, and after every
  change by the control plane.
- ``complete(state, slot, moved_bytes, now)`` frees the slot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Final, NamedTuple

from penstock.errors import InternalError
from penstock.kernels import interpreted, memory
from penstock.kernels.compiler import addresses, machine_code
from penstock.qos.credit.stage import MIN_BYTES_PER_S, set_cap, set_grant
from penstock.qos.interface import (
    ApplicationUse,
    Credit,
    Guarantees,
    QosScheduler,
    Request,
    Slo,
    slo_of,
)
from penstock.qos.parts.remote_service import ReportedService, check_layout
from penstock.qos.state import (
    APPLICATIONS,
    BLOCKED,
    DEPTH,
    FREE,
    LEASE_ENDS_S,
    OTHERS_BYTES_PER_S,
    OUTSTANDING,
    PASS_S,
    REFUSED,
    SERVED,
    USED,
    USES_LAYOUT,
    WAITING,
    WAKE_S,
    WINDOW_S,
    larger_state,
    new_state,
    wake_s,
)
from penstock.registry import Parameter

__all__ = [
    "DEFAULT_DEPTH",
    "KernelScheduler",
    "Kernels",
    "Pointers",
    "depth_parameter",
]

#: Default of the parameter `depth` in sfq and edf.
DEFAULT_DEPTH: Final = 8


def depth_parameter(default: int) -> Parameter:
    """Return the declaration of the parameter `depth`."""
    return Parameter("depth", "requests at the storage at once; 0: any number", default)


class Kernels(NamedTuple):
    """The kernels of a scheduler; see the module."""

    arrive: Callable[..., int]
    next_request: Callable[..., int]
    complete: Callable[..., None]
    control: tuple[Callable[..., Any], ...] = ()
    """The kernels of its control plane."""


class Pointers(NamedTuple):
    """Addresses of the state and of the machine code of a scheduler."""

    state: int
    arrive: int
    next_request: int
    complete: int
    wake_s: int


class KernelScheduler(QosScheduler):
    """Runs the kernels of a scheduler on its state.

    Parameters
    ----------
    kernels
        The decisions.
    slos
        SLOs by application.
    guarantees
        What the scheduler guarantees.
    depth
        Most requests at the storage at once; 0: any number.
    """

    def __init__(
        self,
        kernels: Kernels,
        slos: Mapping[str, Slo],
        guarantees: Guarantees,
        *,
        depth: float,
    ) -> None:
        self.kernels = kernels
        self._guarantees = guarantees
        self._state = new_state()
        self._is_compiled = True
        self._is_fixed = False
        self._indexes: dict[str, int] = {}
        self._slots: dict[Request, int] = {}
        self._requests: dict[int, Request] = {}
        self._reported = ReportedService()
        self._layout: dict[str, int] = {}
        self._slos: dict[str, Slo] = {}
        self._grants: Mapping[str, float] = {}
        self._caps: Mapping[str, float] = {}
        self._bind()
        self.columns.value[DEPTH] = depth or inf
        self.set_slos(slos, 0.0)

    def _bind(self) -> None:
        """Prepare the calls of the kernels, after a change of the tables."""
        self.columns = memory(self._state)
        """The state, as interpreted kernels see it."""
        self._words = addresses(self._state)
        if self._is_compiled:
            self._table: Any = self._words.ctypes.data
        else:
            self._table = self.columns
        self._arrive = self._runnable(self.kernels.arrive)
        self._next = self._runnable(self.kernels.next_request)
        self._complete = self._runnable(self.kernels.complete)

    def _runnable(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return a kernel as machine code, or interpreted."""
        return machine_code(kernel).call if self._is_compiled else interpreted(kernel)

    def run_interpreted(self) -> None:
        """Interpret the kernels from now on: slow, but the decisions are the same."""
        self._is_compiled = False
        self._bind()

    def pointers(self) -> Pointers:
        """Return the addresses for a driver that calls the machine code itself.

        From now on the tables cannot grow, and nothing is left to be compiled. This
        object must outlive the driver's calls.
        """
        self._is_fixed = True
        for kernel in (*self.kernels.control, set_grant, set_cap):
            machine_code(kernel)
        functions = (machine_code(k).address for k in (*self.kernels[:3], wake_s))
        return Pointers(self._words.ctypes.data, *functions)

    # --- Requests -----------------------------------------------------------------

    def arrive(self, request: Request, now: float) -> None:
        """Queue a new request; the tables grow if there is no room for it."""
        request.arrived_s = now
        application = self.index_of(request.application)
        counter = self.columns.counter
        if counter[FREE] < 0 and counter[USED] == self._state.request_limit:
            self._grow()
        slot = self._arrive(
            self._table, application, request.kind_number, request.cost_bytes, now
        )
        self._slots[request] = slot
        self._requests[slot] = request

    def dispatch(self, now: float) -> list[Request]:
        """Return the requests to send now, in order."""
        to_send: list[Request] = []
        while (slot := self._next(self._table, now)) >= 0:
            to_send.append(self._requests[slot])
        return to_send

    def complete(self, request: Request, moved_bytes: int, now: float) -> None:
        """Record that the storage has completed a request."""
        slot = self._slots.pop(request)
        del self._requests[slot]
        self._complete(self._table, slot, moved_bytes, now)

    def _grow(self) -> None:
        """Make room for twice as many requests and applications."""
        if self._is_fixed:
            raise InternalError("the tables of a mounted scheduler cannot grow")
        self._state = larger_state(self._state)
        self._bind()

    # --- Applications and their SLOs ------------------------------------------------

    def index_of(self, application: str) -> int:
        """Return the index of an application in the tables; add a new application.

        Return -1 if the tables are full and cannot grow.
        """
        index = self._indexes.get(application)
        return self._add_application(application) if index is None else index

    def _add_application(self, application: str) -> int:
        index = len(self._indexes)
        if index == self._state.application_limit:
            if self._is_fixed:
                return -1
            self._grow()
        self._indexes[application] = index
        self._set_slo(application, index)
        self.columns.layout_factor[index] = self._layout.get(application, 1)
        self.columns.counter[APPLICATIONS] = index + 1
        return index

    def _set_slo(self, application: str, index: int) -> None:
        slo = slo_of(self._slos, application)
        self.columns.weight[index] = slo.throughput_bytes_per_s
        self.columns.latency_s[index] = slo.latency_s
        self.columns.has_slo[index] = application in self._slos

    def set_slos(self, slos: Mapping[str, Slo], now: float) -> None:  # noqa: ARG002
        """Replace the SLOs; tags and deadlines that are already set do not change."""
        self._slos = dict(slos)
        others = slo_of(self._slos, "")
        self.columns.value[OTHERS_BYTES_PER_S] = others.throughput_bytes_per_s
        for application, index in self._indexes.items():
            self._set_slo(application, index)
        for application in slos:
            self.index_of(application)

    def set_layout(self, factors: Mapping[str, int]) -> None:
        """Infer service on other servers from the number of servers in use."""
        check_layout(factors)
        self._layout = dict(factors)
        self.columns.counter[USES_LAYOUT] = 1
        for application, index in self._indexes.items():
            self.columns.layout_factor[index] = factors.get(application, 1)

    # --- Credit and caps --------------------------------------------------------------

    def set_credit(self, credit: Credit, lease_s: float, now: float) -> None:
        """Replace the credit; it holds for `lease_s` seconds."""
        self.columns.value[LEASE_ENDS_S] = now + lease_s if credit.rates else inf
        if credit.is_shared:
            self.share_storage(now + lease_s, credit.slack)
        self._replace(set_grant, self._grants, credit.rates, now)
        self._grants = dict(credit.rates)
        for name, index in self._indexes.items():
            self.columns.mount_part[index] = credit.parts.get(name, 1.0)

    def set_caps(self, caps: Mapping[str, float], now: float) -> None:
        """Replace what applications may draw at most (bytes/s)."""
        self._replace(set_cap, self._caps, caps, now)
        self._caps = dict(caps)

    def _replace(
        self,
        set_rate: Callable[..., None],
        old: Mapping[str, float],
        new: Mapping[str, float],
        now: float,
    ) -> None:
        for name in {**old, **new}:
            index = self.index_of(name)
            if index >= 0:
                rate = max(new.get(name, inf), MIN_BYTES_PER_S)
                self._run(set_rate, index, rate, now)

    def use(self, now: float) -> dict[str, ApplicationUse]:
        """Return what each application has used so far, for a report."""
        table = self.columns
        uses = {}
        for name, i in self._indexes.items():
            if table.changed_s[i] == -inf:
                continue
            busy_s, present_s = table.busy_s[i], table.present_s[i]
            if table.present[i]:
                busy_s += now - table.changed_s[i]
                present_s += table.present[i] * (now - table.changed_s[i])
            # An application that its cap holds up cannot use more credit.
            is_capped = table.cap_rate[i] <= table.granted_rate[i]
            uses[name] = ApplicationUse(
                float(table.passed_bytes[i]),
                float(table.done_bytes[i]),
                busy_s,
                0 if is_capped else table.blocked[i],
                self._slack(i, now),
                float(present_s),
            )
        return uses

    def _slack(self, index: int, now: float) -> float:
        """Return the slack factor of an application that has or had requests lately."""
        table = self.columns
        recent_s = 2 * table.value[WINDOW_S]
        is_recent = now - table.slack_s[index] <= recent_s or table.present[index] > 0
        return max(table.slack[index], 0.0) if is_recent else inf

    # --- Service on other servers -----------------------------------------------------

    def record_remote_service(
        self,
        server: str,
        served_bytes: Mapping[str, float],
        now: float,
    ) -> None:
        """Record a report: what another server has served since it started."""
        for application, more_bytes in self._reported.new(server, served_bytes).items():
            index = self.index_of(application)
            if index >= 0:
                self.columns.pending_bytes[index] += more_bytes
                self._count_remote_service(index, now)

    def _count_remote_service(self, index: int, now: float) -> None:
        """Count the pending service of an application elsewhere at once."""

    # --- What the scheduler tells -----------------------------------------------------

    @property
    def wake_s(self) -> float:
        """When `dispatch` must be called again if nothing happens before."""
        return min(self.columns.value[WAKE_S], self.columns.value[PASS_S])

    @property
    def waiting(self) -> int:
        """Number of queued requests, including those that wait for credit."""
        return self.columns.counter[WAITING] + self.columns.counter[BLOCKED]

    @property
    def outstanding(self) -> int:
        """Number of requests at the storage."""
        return self.columns.counter[OUTSTANDING]

    @property
    def depth(self) -> float:
        """Maximum number of requests at the storage; inf: no maximum."""
        return self.columns.value[DEPTH]

    @property
    def refused(self) -> int:
        """Number of requests for which the tables had no room."""
        return self.columns.counter[REFUSED]

    @property
    def served_bytes(self) -> Mapping[str, int]:
        """Cost of the requests sent minus refunds, in the order of the first ones."""
        names, columns = tuple(self._indexes), self.columns
        served = (columns.served[k] for k in range(columns.counter[SERVED]))
        return {names[i]: columns.served_bytes[i] for i in served}

    @property
    def guarantees(self) -> Guarantees:
        """What the scheduler guarantees."""
        return self._guarantees

    def _run(self, kernel: Callable[..., Any], *arguments: float) -> Any:
        """Run a kernel of the control plane on the state."""
        return self._runnable(kernel)(self._table, *arguments)
