# SPDX-License-Identifier: MIT
"""The functions of a notebook; each does what the command of the same name does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from penstock.advice.evidence import of_instances, of_logs
from penstock.advice.importing.importer import Imported, ImportOptions
from penstock.advice.importing.importer import import_logs as import_files
from penstock.advice.importing.instances import Assumptions
from penstock.advice.study import advise_on
from penstock.analysis import Bound, min_yield_bound
from penstock.api.construction import Quantity
from penstock.api.results import AdviceResult, ComparisonResult, SimulationResult
from penstock.errors import InputError
from penstock.experiments.comparison import compare as compare_policies
from penstock.experiments.output.provenance import provenance
from penstock.experiments.placing import PlacementPlan, make_plan
from penstock.experiments.runners.executors import local_executor
from penstock.experiments.source import Source, read_input
from penstock.experiments.study import Point
from penstock.model import Instance, Problem, read_problem
from penstock.placement import get_allocation, get_placement, placement_for
from penstock.policies import POLICIES, get_policy
from penstock.policies.policy import Policy, bind
from penstock.policies.view import Allocate
from penstock.sim import simulate as run_policy
from penstock.units import parse_bandwidth
from penstock.workloads import Workload, get_workload

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


def read(path: str) -> Instance:
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
    return get_workload(name, [f"{key}={value}" for key, value in settings.items()])


def simulate(
    instance: Instance, policy: PolicyLike, *, steady: bool = False
) -> SimulationResult:
    """Run a policy on an instance.

    The policy is a label, e.g. ``"set-10:period=given"``, or a function
    ``allocate(view, rates)`` of your own. With `steady`, it is an error that an
    application ends inside the window.

    >>> three = ps.read("examples/three.json")
    >>> round(ps.simulate(three, "soft-deadline").min_yield, 3)
    0.899
    """
    chosen = _policy(policy)
    return SimulationResult(run_policy(instance, chosen, steady=steady, record=True))


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
    instances: Instance | Sequence[Instance] | int | None = None,
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
        The instances; with `workload`, how many to draw (default: 10).
    policies
        Labels of policies, or functions ``allocate(view, rates)`` of your own;
        default: all policies of penstock.
    jobs
        Number of processes.
    steady
        True if no application may end inside the window; False for `--open`.
    """
    if workload is not None or isinstance(instances, int) or instances is None:
        if instances is not None and not isinstance(instances, int):
            raise InputError(
                "instances are given beside a workload",
                where="compare",
                remedy="give a number of instances, or no workload",
            )
        source = _drawn(workload or "synthetic", instances, seed, settings)
    else:
        source = _given(instances, settings)
        jobs = 1
    chosen = _policies(policies)
    own = [policy for policy in chosen if policy.label not in (policies or POLICIES)]
    executor = local_executor(1 if own else min(jobs, source.count))
    rows = compare_policies(source, chosen, executor, steady=steady, own=own)
    return ComparisonResult(tuple(rows), source.instance(0), steady, tuple(chosen))


def _drawn(
    name: str, count: int | None, seed: int, settings: dict[str, float | str]
) -> Source:
    return Source(
        Point(name, tuple(settings.items())), 10 if count is None else count, seed
    )


def _given(
    instances: Instance | Sequence[Instance], settings: dict[str, float | str]
) -> Source:
    if settings:
        raise InputError(
            f"unknown argument {next(iter(settings))!r}",
            where="compare",
            remedy="parameters of a workload go with workload=NAME",
        )
    listed = [instances] if isinstance(instances, Instance) else list(instances)
    if not listed:
        raise InputError("no instance", where="compare", remedy="give at least one")
    points = [_InMemory("given", only=one) for one in listed]
    return Source(points[0], len(points), more=tuple(points[1:]))  # type: ignore[arg-type]


def bound(instance: Instance) -> Bound:
    """Return the MinYield that no scheduler can exceed.

    >>> round(ps.bound(ps.read("examples/three.json")).min_yield, 3)
    0.968
    """
    return min_yield_bound(instance)


def place(
    problem: Problem | str, allocation: str = "t-cpu", placement: str | None = None
) -> PlacementPlan:
    """Choose how many and which storage targets every application gets.

    The problem is one of `penstock.model`, or the name of its file.

    >>> ps.place("examples/problem.json").allocation
    (6, 4, 3, 5, 1, 1, 1, 1)
    """
    if isinstance(problem, str):
        problem = read_problem(problem)
    placer = placement or placement_for(allocation)
    return make_plan(problem, get_allocation(allocation), get_placement(placer))


def import_logs(
    sources: str | Iterable[str],
    *,
    bandwidth: Quantity | None = None,
    node_bandwidth: Quantity | None = None,
    align: bool = False,
    **options: Any,
) -> Imported:
    """Make an instance of logs; ``.instance`` is the instance, ``.jobs`` the jobs.

    >>> logs = ps.import_logs("examples/logs/sacct.txt", bandwidth="10 GB/s")
    >>> [job.name for job in logs.jobs]
    ['climate-811', 'fusion-812']
    """
    assumptions = Assumptions(
        bandwidth=_rate(bandwidth), node_bandwidth=_rate(node_bandwidth), align=align
    )
    names = [sources] if isinstance(sources, str) else [str(each) for each in sources]
    return import_files(names, ImportOptions(assumptions=assumptions, **options))


def advise(
    evidence: Instance | Imported | Sequence[Instance],
    *,
    now: str | None = None,
    bandwidth: Quantity | None = None,
    scenarios: int = 20,
    uncertainty: float | None = None,
    targets: int | None = None,
    seed: int = 1,
) -> AdviceResult:
    """Advise which policy helps: on instances, or on the result of `import_logs`.

    `now` is the policy in use. None: that of the last past job of penstock, else
    fair-share, which is what storage does without control.

    >>> ps.advise(ps.read("examples/three.json"), now="fair-share", scenarios=4).policy
    'soft-deadline'
    """
    if isinstance(evidence, Imported):
        found = of_logs(evidence, scenarios, seed)
    else:
        one = isinstance(evidence, Instance)
        found = of_instances([evidence] if one else list(evidence), _rate(bandwidth))  # type: ignore[list-item, arg-type]
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


def _rate(rate: Quantity | None) -> float | None:
    return None if rate is None else parse_bandwidth(rate)
