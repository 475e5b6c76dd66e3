# SPDX-License-Identifier: MIT
"""The functions of a notebook.

`compare`, `bound`, `place`, `import_logs` and `advise` give the numbers of ``penstock
compare``, ``bound``, ``place``, ``import`` and ``advise``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from penstock.advice.evidence import of_instances, of_logs
from penstock.advice.importing.importer import Imported, ImportOptions
from penstock.advice.importing.importer import import_logs as import_files
from penstock.advice.importing.instances import Assumptions
from penstock.advice.logs.bursts import DEFAULT_GAP_S
from penstock.advice.study import advise_on
from penstock.analysis import Bound, min_yield_bound
from penstock.api.construction import Quantity
from penstock.api.results import AdviceResult, ComparisonResult, SimulationResult
from penstock.errors import InputError, UnknownNameError
from penstock.experiments.comparison import compare as compare_policies
from penstock.experiments.output.provenance import provenance
from penstock.experiments.placing import PlacementPlan, make_plan
from penstock.experiments.runners.executors import local_executor
from penstock.experiments.source import Source, read_input
from penstock.experiments.study import MOST_INSTANCES, Point
from penstock.model import Instance, Problem, read_problem
from penstock.model.documents import inside, parsed
from penstock.placement import get_allocation, get_placement, placement_for
from penstock.policies import POLICIES, get_policy
from penstock.policies.policy import Policy, bind
from penstock.policies.view import Allocate
from penstock.sim import simulate as run_policy
from penstock.units import parse_bandwidth, parse_time, parse_whole
from penstock.workloads import WORKLOADS, Workload, get_workload

__all__ = [
    "PolicyLike",
    "advise",
    "bound",
    "compare",
    "import_logs",
    "place",
    "read",
    "simulate",
    "workload",
]

#: A label of a policy, a policy, or a function ``allocate(view, rates)``.
PolicyLike: TypeAlias = str | Policy | Allocate
#: The name of a file or folder.
PathLike: TypeAlias = str | os.PathLike[str]
#: An instance, or the name of its file.
InstanceLike: TypeAlias = Instance | PathLike
#: Other options of `import_logs`, as in `ImportOptions`.
_IMPORT_OPTIONS: Final = ("format", "journal", "periods", "strict", "workers")


@dataclass(frozen=True, slots=True)
class _InMemory(Point):
    """A point whose only instance is given."""

    only: Instance | None = None

    def family(self) -> Workload:
        """Return a workload of this instance."""
        return _OneInstance(self.only)


@dataclass(frozen=True, slots=True)
class _OneInstance:
    only: Any

    def instance(self, seed: int, index: int) -> Instance:
        """Return the instance, whatever the seed."""
        del seed, index
        only: Instance = self.only
        return only


def read(path: PathLike) -> Instance:
    """Read an instance file.

    >>> round(ps.read("examples/three.json").pressure(), 3)
    0.711
    """
    document = read_input(str(path))
    if isinstance(document, dict):
        raise InputError("this is a result, not an instance", where=str(path))
    return document


def workload(name: str, **settings: float | str) -> Workload:
    """Return a workload; ``.instance(seed=1, index=0)`` draws an instance of it.

    >>> small = ps.workload("synthetic", applications=6, horizon=20_000)
    >>> len(small.instance(seed=1, index=0).applications)
    6
    """
    if not isinstance(name, str):
        raise UnknownNameError("workload", repr(name), WORKLOADS, where="workload")
    return get_workload(name, [f"{key}={value}" for key, value in settings.items()])


def simulate(
    instance: InstanceLike, policy: PolicyLike, *, steady: bool = False
) -> SimulationResult:
    """Run a policy on an instance, or on that of a file.

    The policy is a label, e.g. ``"set-10:period=given"``, or a function
    ``allocate(view, rates)`` of your own. With `steady`, it is an error that an
    application ends inside the window, as it is by default in `compare`; without,
    ``.ended`` of the result tells which ones do.

    >>> three = ps.read("examples/three.json")
    >>> round(ps.simulate(three, "soft-deadline").min_yield, 3)
    0.899
    """
    chosen = _policy(policy)
    run = run_policy(_instance(instance), chosen, steady=steady, record=True)
    return SimulationResult(run)


def _policy(policy: PolicyLike) -> Policy:
    """Return a policy; a function becomes a policy with the name of the function."""
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str):
        return get_policy(policy)
    if not callable(policy):
        raise InputError(
            f"{policy!r} is not a policy",
            where="policy",
            remedy="give a label, or a function allocate(view, rates)",
        )
    return bind(getattr(policy, "__name__", "policy"), policy)


def _policies(policies: Sequence[PolicyLike] | None) -> list[Policy]:
    """Return the policies; raise `InputError` if two have the same label."""
    if isinstance(policies, str) or not isinstance(policies, Iterable | None):
        name = getattr(policies, "__name__", repr(policies))
        raise InputError(
            f"{name} is not a list of policies",
            where="policies",
            remedy=f"write [{name}]",
        )
    chosen = [_policy(each) for each in (POLICIES if policies is None else policies)]
    labels = [policy.label for policy in chosen]
    for label in labels:
        if labels.count(label) > 1:
            raise InputError(
                f"policy {label!r} is given twice",
                where="policies",
                remedy="leave one out, or give your function another name",
            )
    if not chosen:
        raise InputError("no policy", where="policies", remedy="give at least one")
    return chosen


def compare(
    instances: InstanceLike | Sequence[InstanceLike] | int | None = None,
    policies: Sequence[PolicyLike] | None = None,
    *,
    workload: str | None = None,
    seed: int = 1,
    jobs: int = 1,
    steady: bool = True,
    **settings: float | str,
) -> ComparisonResult:
    """Compare policies on instances, or on instances of a workload.

    ``compare(instance)``, ``compare([one, two], policies=["fcfs"])`` or
    ``compare(workload="synthetic", pressure=0.8, instances=10, seed=1)``.

    >>> three = ps.read("examples/three.json")
    >>> ps.compare(three, ["fair-share", "soft-deadline"]).recommended
    'soft-deadline'

    Parameters
    ----------
    instances
        The instances or names of their files; with `workload`, how many to draw
        (default: 10).
    policies
        Labels of policies, or functions ``allocate(view, rates)`` of your own;
        default: all policies of penstock.
    jobs
        Number of processes; 1 is used for given instances and for functions of your
        own.
    steady
        True if no application may end inside the window; False for `--open`.
    """
    jobs, seed = _whole(jobs, "jobs", 1), _whole(seed, "seed", 0)
    if workload is not None or isinstance(instances, int) or instances is None:
        if instances is not None and not isinstance(instances, int):
            raise InputError(
                "instances are given beside a workload",
                where="compare",
                remedy="give a number of instances, or no workload",
            )
        source = drawn = _drawn(workload or "synthetic", instances, seed, settings)
    else:
        source, drawn = _given(instances, settings), None
        jobs = 1
    chosen = _policies(policies)
    own = [policy for policy in chosen if policy.label not in (policies or POLICIES)]
    executor = local_executor(1 if own else min(jobs, source.count))
    rows = compare_policies(source, chosen, executor, steady=steady, own=own)
    return ComparisonResult(
        tuple(rows), source.instance(0), steady, tuple(chosen), drawn
    )


def _drawn(
    name: str, count: int | None, seed: int, settings: dict[str, float | str]
) -> Source:
    with inside("instances"):
        count = parse_whole(
            10 if count is None else count, least=1, most=MOST_INSTANCES
        )
    return Source(Point(name, tuple(settings.items())), count, seed)


def _whole(value: int, where: str, least: int) -> int:
    """Return a whole number; the limits are those of the command line."""
    with inside(where):
        return parse_whole(value, least=least)


def _given(
    instances: InstanceLike | Sequence[InstanceLike], settings: dict[str, float | str]
) -> Source:
    if settings:
        raise InputError(
            f"unknown argument {next(iter(settings))!r}",
            where="compare",
            remedy="parameters of a workload go with workload=NAME",
        )
    points = [_InMemory("given", only=one) for one in _listed(instances, "compare")]
    return Source(points[0], len(points), more=tuple(points[1:]))  # type: ignore[arg-type]


def _listed(
    instances: InstanceLike | Sequence[InstanceLike], where: str
) -> list[Instance]:
    """Return a list of instances; raise `InputError` if there is none."""
    if isinstance(instances, str | os.PathLike) or not isinstance(instances, Iterable):
        return [_instance(instances)]
    listed = [_instance(each) for each in instances]
    if not listed:
        raise InputError("no instance", where=where, remedy="give at least one")
    return listed


def _instance(instance: InstanceLike) -> Instance:
    """Return an instance; read it if a file is named."""
    if isinstance(instance, str | os.PathLike):
        return read(instance)
    if not isinstance(instance, Instance):
        raise InputError(
            f"{instance!r} is not an instance",
            where="instance",
            remedy="give ps.read(PATH), ps.Instance(...) or the name of a file",
        )
    return instance


def bound(instance: InstanceLike) -> Bound:
    """Return the MinYield that no scheduler can exceed.

    >>> round(ps.bound(ps.read("examples/three.json")).min_yield, 3)
    0.968
    """
    return min_yield_bound(_instance(instance))


def place(
    problem: Problem | PathLike, allocation: str = "t-cpu", placement: str | None = None
) -> PlacementPlan:
    """Choose how many and which storage targets every application gets.

    The problem is one of `penstock.model`, or the name of its file.

    >>> ps.place("examples/problem.json").allocation
    (6, 4, 3, 5, 1, 1, 1, 1)
    """
    if isinstance(problem, str | os.PathLike):
        problem = read_problem(os.fspath(problem))
    placer = placement or placement_for(allocation)
    return make_plan(problem, get_allocation(allocation), get_placement(placer))


def import_logs(
    sources: PathLike | Iterable[PathLike],
    *,
    bandwidth: Quantity | None = None,
    node_bandwidth: Quantity | None = None,
    align: bool = False,
    gap: Quantity = DEFAULT_GAP_S,
    io_fraction: float = 0.1,
    **options: Any,
) -> Imported:
    """Make an instance of logs; ``.instance`` is the instance, ``.jobs`` the jobs.

    >>> logs = ps.import_logs("examples/logs/sacct.txt", bandwidth="10 GB/s")
    >>> [job.name for job in logs.jobs]
    ['climate-811', 'fusion-812']

    Parameters
    ----------
    sources
        Logs, and folders of them.
    align
        Let all jobs begin together, whatever their logs say.
    gap
        Time without I/O that ends an operation, in seconds or with a unit.
    io_fraction
        Part of its time that a job spends in I/O if the log does not say.
    options
        ``format``, ``journal``, ``periods``, ``strict`` and ``workers``: fields of
        `penstock.advice.importing.importer.ImportOptions`.
    """
    for name in options:
        if name not in _IMPORT_OPTIONS:
            raise UnknownNameError("option", name, _IMPORT_OPTIONS, where="import_logs")
    chosen = ImportOptions(
        gap_s=parsed(parse_time, gap, "gap"),
        assumptions=Assumptions(
            bandwidth=_rate(bandwidth, "bandwidth"),
            node_bandwidth=_rate(node_bandwidth, "node_bandwidth"),
            align=align,
            io_fraction=io_fraction,
        ),
        **options,
    )
    names = [sources] if isinstance(sources, str | os.PathLike) else sources
    return import_files([os.fspath(name) for name in names], chosen)


def advise(
    evidence: InstanceLike | Imported | Sequence[InstanceLike],
    *,
    now: str | None = None,
    bandwidth: Quantity | None = None,
    scenarios: int = 20,
    uncertainty: float | None = None,
    targets: int | None = None,
    seed: int = 1,
) -> AdviceResult:
    """Advise which policy helps: on instances, or on the result of `import_logs`.

    Instances may be given by the names of their files.

    `now` is the policy in use. None: that of the last past job of penstock, else
    fair-share, which is what storage does without control. `bandwidth` replaces that
    of the instances.

    >>> ps.advise(ps.read("examples/three.json"), now="fair-share", scenarios=4).policy
    'soft-deadline'
    """
    scenarios, seed = _whole(scenarios, "scenarios", 1), _whole(seed, "seed", 0)
    if targets is not None:
        targets = _whole(targets, "targets", 1)
    if isinstance(evidence, Imported):
        if bandwidth is not None:
            raise InputError(
                "the bandwidth of logs is given to import_logs",
                where="bandwidth",
                remedy='ps.import_logs(..., bandwidth="10 GB/s")',
            )
        found = of_logs(evidence, scenarios, seed)
    else:
        found = of_instances(_listed(evidence, "advise"), _rate(bandwidth, "bandwidth"))
    document = advise_on(
        found,
        now=now,
        scenarios=scenarios,
        uncertainty=uncertainty,
        targets=targets,
        seed=seed,
        facts=provenance(seed=seed),
    )
    return AdviceResult(document, found.instances[0])


def _rate(rate: Quantity | None, where: str) -> float | None:
    if rate is None:
        return None
    parsed_rate = parsed(parse_bandwidth, rate, where)
    if not parsed_rate > 0:
        raise InputError(
            f"{rate!r} is not positive", where=where, remedy='write e.g. "10 GB/s"'
        )
    return parsed_rate
