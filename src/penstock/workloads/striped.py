# SPDX-License-Identifier: MIT
"""Random placement problems with an intended I/O-load (target allocation, section 5.3).

There are K applications, N storage targets and Q compute nodes. Each application is
drawn independently:

- a bandwidth profile b_j, uniformly from the set, and 2 to 20 phases, uniformly;
- X = T_cpu / T_io(1), uniform in [0, b], where log(1 + b) = b c and c = Theta N / K;
  the mean of I/O-Stress(j, 1) = 1 / (1 + X) is then log(1 + b) / b = c;
- T_cpu + T_io(1) = horizon: V_io = horizon b_j(1) / (1 + X) and
  T_cpu = horizon (1 - 1 / (1 + X)), divided into equal phases, work first.

The mean of I/O-load(pi_1) is therefore Theta.

Nodes: 10 % of the applications (large) have 75 % of the nodes, 30 % (medium) have 20 %,
60 % (small) have 5 %. The paper does not say how to round; here, the applications and
nodes of a class are rounded to the nearest number, half up; at least one application is
large. Every application has at least one node. If the small applications need more than
their share for this, the medium ones get fewer, then the large ones, so that the sum
never exceeds Q. (For K = 60 and Q = 480: 360 nodes for the 6 large, 84 instead of 96
for the 18 medium, 36 instead of 24 for the 36 small applications.) The nodes of a class
are divided evenly; the first applications get one more. Large applications come first.

Instances, for policies that share bandwidth: two algorithms of `penstock.placement`
choose the targets of the problem. The window is [0, smallest dedicated duration], so no
application ends inside it under any policy.

Seeds: as in `iterative`, also for algorithms that draw at random.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final, TypeVar

import numpy as np
from numpy.random import Generator, default_rng

from penstock.errors import InputError
from penstock.model import Application, Instance, Problem, Window
from penstock.placement import (
    ALLOCATIONS,
    PLACEMENTS,
    Allocator,
    Placement,
    Placer,
    get_allocation,
    get_placement,
)
from penstock.workloads.parameters import (
    MOST_APPLICATIONS,
    check_parameters,
    parameter,
)
from penstock.workloads.profiles.profiles import CASES, profiles
from penstock.workloads.random_streams import seed_sequence

__all__ = [
    "Striped",
    "dedicated_window",
    "largest_ratio",
    "minimum_load",
    "node_counts",
    "seeded",
]

_Algorithm = TypeVar("_Algorithm", Allocator, Placer)

_APPLICATIONS_PERCENT: Final = (10, 30)
_NODES_PERCENT: Final = (75, 20, 5)
_PHASES: Final = (2, 20)


@dataclass(frozen=True, slots=True)
class Striped:
    """Parameters of the placement problems."""

    load: float = parameter(1.0, "Theta", "intended I/O-load with one target each")
    applications: int = parameter(
        60, "K", "number of applications", low=1, high=MOST_APPLICATIONS
    )
    targets: int = parameter(
        20, "N", "storage targets (or I/O nodes)", low=1, high=MOST_APPLICATIONS
    )
    compute_nodes: int = parameter(480, "Q", "compute nodes of the machine", low=1)
    horizon: float = parameter(
        5_000.0, "h", "length of an application alone on one target (s)", low=1.0
    )
    case: str = parameter("io-nodes", "case", "set of profiles", choices=CASES)
    allocation: str = parameter(
        "t-cpu", "pi", "how many targets for each", choices=tuple(ALLOCATIONS)
    )
    placement: str = parameter(
        "greedy-non-clairvoyant",
        "placement",
        "which targets for each",
        choices=tuple(PLACEMENTS),
    )

    #: Instances per piece of a study; each takes milliseconds.
    batch: ClassVar[int] = 10

    def __post_init__(self) -> None:
        check_parameters(self)
        if not 0 < self.stress < 1:
            most = self.applications / self.targets
            raise InputError(
                f"{self.applications} applications cannot have an I/O-load of "
                f"{self.load:g} on {self.targets} targets",
                where="load",
                remedy=f"give more than 0 and less than K / N = {most:g}",
            )
        if self.applications > self.compute_nodes:
            raise InputError(
                f"{self.applications} applications do not fit on "
                f"{self.compute_nodes} nodes",
                where="applications",
                remedy="give at least one compute node per application",
            )

    @property
    def stress(self) -> float:
        """The mean of I/O-Stress(j, 1): c = Theta N / K."""
        return self.load * self.targets / self.applications

    def problem(self, seed: int, index: int) -> Problem:
        """Return problem `index` of `seed`."""
        nodes = node_counts(self.applications, self.compute_nodes)
        streams = seed_sequence(seed, index).spawn(self.applications)
        bound = largest_ratio(self.stress)
        applications = tuple(
            self._application(number, nodes[number], bound, default_rng(stream))
            for number, stream in enumerate(streams)
        )
        return Problem(self.targets, self.compute_nodes, applications)

    def instance(self, seed: int, index: int) -> Instance:
        """Return problem `index` of `seed` with allocated and placed targets."""
        problem = self.problem(seed, index)
        allocator = seeded(get_allocation(self.allocation), seed, index)
        placer = seeded(get_placement(self.placement), seed, index)
        placement = placer.place(problem, allocator.allocate(problem))
        return problem.instance(placement, dedicated_window(problem, placement))

    def _application(
        self, number: int, nodes: int, bound: float, generator: Generator
    ) -> Application:
        known = profiles(self.case)
        profile = known[generator.integers(len(known))]
        phases = int(generator.integers(*_PHASES, endpoint=True))
        io_share = 1.0 / (1.0 + generator.uniform(0.0, bound))
        volume = self.horizon * float(profile.bandwidth[0]) * io_share
        work = np.full(phases + 1, self.horizon * (1.0 - io_share) / phases)
        work[-1] = 0.0
        return Application(
            name=f"app{number}",
            nodes=nodes,
            work=work,
            volume=np.full(phases, volume / phases),
            group=profile.name,
            profile=profile.bandwidth,
        )


def largest_ratio(stress: float) -> float:
    """Return the solution b > 0 of log(1 + b) = b c, for c = `stress` in (0, 1).

    With u = 1 + b the equation is -c u exp(-c u) = -c exp(-c). Its solution on the
    branch W_-1 is u = -W(-c exp(-c)) / c; the branch W_0 gives u = 1, that is b = 0.
    """
    from scipy.special import lambertw  # noqa: PLC0415 - slow to import

    bound = float(-lambertw(-stress * np.exp(-stress), -1).real / stress) - 1.0
    # Near the branch point, 1 - c < 1e-4, SciPy returns -1 or nan. The error of the
    # mean stress is then less than 5e-5.
    return bound if bound > 0 else 0.0


def node_counts(applications: int, compute_nodes: int) -> list[int]:
    """Return the number of nodes Q_j of every application, large ones first."""
    sizes = _class_sizes(applications)
    nodes = [
        max(_percent(share, compute_nodes) if size else 0, size)
        for share, size in zip(_NODES_PERCENT, sizes, strict=True)
    ]
    excess = sum(nodes) - compute_nodes
    for rank in (1, 0):
        cut = min(max(excess, 0), nodes[rank] - sizes[rank])
        nodes[rank] -= cut
        excess -= cut
    return [
        total // size + (number < total % size)
        for total, size in zip(nodes, sizes, strict=True)
        for number in range(size)
    ]


def minimum_load(problem: Problem) -> float:
    """Return I/O-load(pi_sys), the smallest I/O-load of any allocation."""
    widths = [problem.n_sys(j) for j in range(len(problem.applications))]
    return problem.io_load(widths)


def dedicated_window(problem: Problem, placement: Placement) -> Window:
    """Return the window from 0 to the smallest dedicated duration T_cpu + T_io(n)."""
    durations = (
        application.dedicated_times(problem.bandwidth(j, len(placement[j])))[-1]
        for j, application in enumerate(problem.applications)
    )
    return Window(0.0, float(min(durations)))


def seeded(algorithm: _Algorithm, seed: int, index: int) -> _Algorithm:
    """Return `algorithm` with the random stream (seed, index) as its seed.

    An algorithm that is not random, or that was given a seed, is returned unchanged.
    """
    if "seed" not in algorithm.settings or "seed" in algorithm.given:
        return algorithm
    (stream,) = seed_sequence(seed, index).generate_state(1).tolist()
    return replace(algorithm, settings={**algorithm.settings, "seed": stream})


def _class_sizes(applications: int) -> tuple[int, int, int]:
    """Return the numbers of large, medium and small applications."""
    large, medium = (_percent(share, applications) for share in _APPLICATIONS_PERCENT)
    large = max(large, 1)
    medium = min(medium, applications - large)
    return large, medium, applications - large - medium


def _percent(share: int, whole: int) -> int:
    """Return `share` percent of `whole`, rounded to the nearest, half up."""
    return (2 * share * whole + 100) // 200
