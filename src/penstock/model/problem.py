# SPDX-License-Identifier: MIT
"""A placement problem: applications that need storage targets.

Target allocation, section 3. As a file:

::

    {"penstock": 1,
     "resources": 6,
     "compute_nodes": 64,
     "applications": [
       {"name": "climate", "nodes": 16,
        "phases": [["work", "10 min"], ["io", "500 GiB"], ...],
        "bandwidth": ["1.1 GiB/s", "2.0 GiB/s", ...]}]}

``bandwidth`` lists b_j(1), b_j(2), ...: the bandwidth of the application alone on 1, 2,
... targets. If only the best number of targets is known, give ``best_targets`` instead.
``bandwidth``, ``best_targets`` and ``phases`` are optional: an algorithm that needs a
missing one raises an error that names it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from penstock.errors import InputError
from penstock.model.application import MOST_NODES, Application, Column
from penstock.model.documents import (
    FORMAT,
    checked_fields,
    inside,
    listed,
    parsed_name,
    parsed_phases,
    parsed_profile,
    read_document,
    top_fields,
    write_document,
)
from penstock.model.formats import (
    ProblemApplicationFormat,
    ProblemFormat,
    optional_keys,
    required_keys,
)
from penstock.model.instance import Instance
from penstock.model.platform import MOST_TARGETS, Platform, Sharing
from penstock.model.window import Window

__all__ = [
    "Problem",
    "problem_from_document",
    "problem_to_document",
    "read_problem",
    "write_problem",
]

_MOST: Final = {"resources": MOST_TARGETS, "compute_nodes": MOST_NODES}


@dataclass(frozen=True, eq=False)
class Problem:
    """K applications, N storage targets and Q compute nodes; j counts from 0.

    A method that needs an unknown quantity of an application raises `InputError`.
    """

    resources: int
    """N: number of storage targets (or I/O nodes, or burst-buffer nodes)."""
    compute_nodes: int
    """Q: number of compute nodes, at least as many as the applications use."""
    applications: tuple[Application, ...]
    best_targets: tuple[int, ...] = ()
    """n_perf of applications whose bandwidth is not known; 0 if it is unknown too."""

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            _check_count(getattr(self, name), name, most)
        if not self.applications:
            raise InputError(
                "no application", where="applications", remedy="list at least one"
            )
        if not self.best_targets:
            object.__setattr__(self, "best_targets", (0,) * len(self.applications))
        self._check_together()
        for j in range(len(self.applications)):
            with inside(f"applications[{j}]"):
                self._check_best_targets(j)
                self._check_times(j)

    def _check_together(self) -> None:
        """Check names, nodes and `best_targets` of all applications."""
        seen: dict[str, int] = {}
        for j, application in enumerate(self.applications):
            first = seen.setdefault(application.name, j)
            if first != j:
                raise InputError(
                    f"the name {application.name!r} is already used by "
                    f"applications[{first}]",
                    where=f"applications[{j}].name",
                    remedy="give every application another name",
                )
        used = sum(application.nodes for application in self.applications)
        if used > self.compute_nodes:
            raise InputError(
                f"the applications use {used} compute nodes, but the machine has "
                f"{self.compute_nodes}",
                where="compute_nodes",
                remedy="leave out applications: they do not share nodes",
            )
        self._check_length(self.best_targets, "best_targets")

    def _check_best_targets(self, j: int) -> None:
        best = self.best_targets[j]
        if best and self.has_bandwidth(j):
            raise InputError(
                "the bandwidth already determines the best number of targets",
                where="best_targets",
                remedy='give "bandwidth" or "best_targets", not both',
            )
        if not 0 <= best <= self.resources:
            raise InputError(
                f"{best} targets are best, but there are only {self.resources}",
                where="best_targets",
                remedy=f"give a number from 1 to {self.resources}",
            )

    def _check_times(self, j: int) -> None:
        """Check that stress and load are finite: no sum and no quotient overflows."""
        slowest = float(self.applications[j].profile.min(initial=1.0))
        longest = self.compute_time[j] + self.volume[j] / slowest
        if not math.isfinite(longest * self.resources):
            raise InputError(
                "the sum of the phases is too large",
                where="phases",
                remedy="check the units: times are in seconds, volumes in bytes",
            )

    # --- Known quantities ---------------------------------------------------------

    @cached_property
    def compute_time(self) -> tuple[float, ...]:
        """T_cpu of every application: the sum of its work phases (s)."""
        return tuple(float(a.work.sum()) for a in self.applications)

    @cached_property
    def volume(self) -> tuple[float, ...]:
        """V_io of every application: the sum of its operations (bytes)."""
        return tuple(float(a.volume.sum()) for a in self.applications)

    def has_phases(self, j: int) -> bool:
        """Return True if T_cpu and V_io are known: the application has phases."""
        return self.compute_time[j] + self.volume[j] > 0

    def has_bandwidth(self, j: int) -> bool:
        """Return True if the bandwidth profile b_j is known."""
        return bool(self.applications[j].profile.size)

    def most_targets(self, j: int) -> int:
        """Return the largest n for which b_j(n) is known, at most N."""
        return min(self.applications[j].profile.size or self.resources, self.resources)

    # --- Characteristic values (target allocation, sections 3.2 and 3.3) -----------

    def bandwidth(self, j: int, n: int) -> float:
        """Return b_j(n), bandwidth of application j alone on n targets (bytes/s)."""
        profile = self._profile(j)
        self._check_width(j, n)
        return float(profile[n - 1])

    def io_time(self, j: int, n: int) -> float:
        """Return T_io(n) = V_io / b_j(n) (s)."""
        return self.volume[j] / self.bandwidth(j, n)

    def io_ratio(self, j: int, n: int) -> float:
        """Return T_io(n) / (T_cpu + T_io(n)): the fraction of time spent in I/O."""
        io_time = self.io_time(j, n)
        return io_time / self._time(j, io_time)

    def stress(self, j: int, n: int) -> float:
        """Return I/O-Stress(j, n) = n T_io(n) / (T_cpu + T_io(n)), in targets."""
        io_time = self.io_time(j, n)
        return n * io_time / self._time(j, io_time)

    def cpu_load(self, j: int, n: int) -> float:
        """Return CPUload(j, n) = Q_j T_cpu / (T_cpu + T_io(n)), in nodes."""
        computing = self.compute_time[j] / self._time(j, self.io_time(j, n))
        return self.applications[j].nodes * computing

    def n_perf(self, j: int) -> int:
        """Return n_perf = argmax b_j(n), equation 1; the smallest n."""
        if self.has_bandwidth(j):
            return int(self.applications[j].profile[: self.resources].argmax()) + 1
        if not self.best_targets[j]:
            raise self._unknown(j, "n_perf", '"bandwidth" or "best_targets"')
        return self.best_targets[j]

    def n_sys(self, j: int) -> int:
        """Return n_sys = argmin I/O-Stress(j, n), equation 2; the smallest n."""
        widths = range(1, self.most_targets(j) + 1)
        return min(widths, key=lambda n: self.stress(j, n))

    def io_load(self, allocation: Sequence[int]) -> float:
        """Return I/O-load = (1/N) sum I/O-Stress(j, n_j), equation 3.

        A value above 1 means that the storage is saturated.
        """
        self.check_allocation(allocation)
        stresses = (self.stress(j, n) for j, n in enumerate(allocation))
        return sum(stresses) / self.resources

    def check_allocation(self, allocation: Sequence[int]) -> None:
        """Raise `InputError` unless every application has a valid number of targets."""
        self._check_length(allocation, "allocation")
        for j, n in enumerate(allocation):
            self._check_width(j, n)

    def instance(
        self, placement: Sequence[Sequence[int]], window: Window | None = None
    ) -> Instance:
        """Return the instance in which application j uses the targets `placement[j]`.

        The default window is long enough for one application to end in it. All
        applications are released at 0, without a past. Targets are shared by time, so
        b_j alone limits application j. The platform's bandwidths are the sum and the
        maximum of the b_j(n_perf), which limit no application.
        """
        self._check_length(placement, "placement")
        everyone = range(len(placement))
        peaks = [float(self._profile(j)[: self.resources].max()) for j in everyone]
        for j in everyone:
            if not self.has_phases(j):
                raise self._unknown(j, "the work", '"phases"')
        platform = Platform(sum(peaks), max(peaks), self.resources, Sharing.TIME)
        applications = []
        for j, targets in enumerate(placement):
            with inside(f"applications[{j}]"):
                applications.append(_placed(self.applications[j], targets))
        if window is None:
            window = self._open_window(placement)
        return Instance(platform, window, tuple(applications))

    def _open_window(self, placement: Sequence[Sequence[int]]) -> Window:
        """Return a window in which at least one application ends.

        This holds for every policy that leaves no target idle while an application
        waits for it. The load L_r of target r is the sum of T_io(n) over the
        applications on it. While application j is in I/O, one of its targets is busy.
        So j ends not later than T_cpu plus the sum of L_r over its targets. The window
        ends at twice the smallest of these times, so that rounding does not matter.
        """
        load: defaultdict[int, float] = defaultdict(float)
        for j, targets in enumerate(placement):
            for target in targets:
                load[target] += self.io_time(j, len(targets))
        latest = (
            self._time(j, sum(load[target] for target in targets))
            for j, targets in enumerate(placement)
        )
        return Window(0.0, 2.0 * min(latest))

    def _profile(self, j: int) -> Column:
        if not self.has_bandwidth(j):
            raise self._unknown(j, "the bandwidth", '"bandwidth"')
        return self.applications[j].profile

    def _time(self, j: int, io_time: float) -> float:
        time = self.compute_time[j] + io_time
        if not time > 0:
            raise self._unknown(j, "the work", '"phases"')
        return time

    def _check_width(self, j: int, n: int) -> None:
        if type(n) is not int or not 1 <= n <= self.most_targets(j):
            raise InputError(
                f"{n!r} is not a number of targets for {self.applications[j].name!r}",
                where=f"applications[{j}]",
                remedy=f"give 1 to {self.most_targets(j)}: these targets exist, and "
                "the bandwidth on them is known",
            )

    def _check_length(self, columns: Sequence[object], where: str) -> None:
        if len(columns) != len(self.applications):
            raise InputError(
                f"{len(columns)} entries for {len(self.applications)} applications",
                where=where,
                remedy="give one entry for each application",
            )

    def _unknown(self, j: int, what: str, key: str) -> InputError:
        return InputError(
            f"{what} of {self.applications[j].name!r} is not known",
            where=f"applications[{j}]",
            remedy=f"give {key}",
        )


def _check_count(value: object, name: str, most: int) -> None:
    if type(value) is not int or not 1 <= value <= most:
        raise InputError(
            f"{value!r} is not a number of {name.replace('_', ' ')}",
            where=name,
            remedy=f"give a whole number, 1 to {most}",
        )


def _placed(application: Application, targets: Sequence[int]) -> Application:
    return replace(
        application,
        release=0.0,
        start=0.0,
        done_work=0.0,
        done_volume=0.0,
        targets=tuple(targets),
    )


# --- Files ------------------------------------------------------------------------


def read_problem(path: str | Path) -> Problem:
    """Read a problem file (``.json``, or ``.json.gz``)."""
    document = read_document(path)
    with inside(f"{path}: "):
        return problem_from_document(document)


def write_problem(problem: Problem, path: str | Path) -> None:
    """Write a problem file; an existing file is replaced only by a complete one."""
    write_document(problem_to_document(problem), path)


def problem_to_document(problem: Problem) -> dict[str, Any]:
    """Return `problem` as the JSON document that the module docstring shows."""
    return {
        "penstock": FORMAT,
        "resources": problem.resources,
        "compute_nodes": problem.compute_nodes,
        "applications": [
            _application_document(application, best)
            for application, best in zip(
                problem.applications, problem.best_targets, strict=True
            )
        ],
    }


def problem_from_document(document: object) -> Problem:
    """Return the problem that a JSON document describes."""
    top = top_fields(document, required_keys(ProblemFormat))
    applications, best_targets = [], []
    for j, item in enumerate(listed(top["applications"], "applications")):
        with inside(f"applications[{j}]"):
            application, best = _application(item)
        applications.append(application)
        best_targets.append(best)
    return Problem(
        top["resources"],
        top["compute_nodes"],
        tuple(applications),
        tuple(best_targets),
    )


def _application_document(application: Application, best: int) -> dict[str, Any]:
    a = application
    document: dict[str, Any] = {"name": a.name, "nodes": a.nodes}
    optional = {
        "phases": a.phases(),
        "bandwidth": a.profile.tolist(),
        "best_targets": best,
    }
    return document | {key: value for key, value in optional.items() if value}


def _application(item: object) -> tuple[Application, int]:
    """Return an application and its best number of targets (0: not given)."""
    fields = checked_fields(
        item,
        required_keys(ProblemApplicationFormat),
        optional_keys(ProblemApplicationFormat),
    )
    application = Application.from_phases(
        parsed_name(fields["name"]),
        fields["nodes"],
        parsed_phases(fields.get("phases", [])),
        profile=parsed_profile(fields["bandwidth"]) if "bandwidth" in fields else [],
    )
    if "best_targets" in fields:
        _check_count(fields["best_targets"], "best_targets", _MOST["resources"])
    return application, fields.get("best_targets", 0)
