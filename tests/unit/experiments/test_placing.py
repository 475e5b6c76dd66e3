# SPDX-License-Identifier: MIT
"""Plans: the decision, the simulated slowdowns, and the order; computed by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings

from penstock.errors import InputError, PolicyError
from penstock.experiments.placing import (
    PlanComparison,
    compare_plans,
    make_plan,
    simulate_plan,
)
from penstock.model import Application, Problem
from penstock.placement import (
    ALLOCATIONS,
    PLACEMENTS,
    get_allocation,
    get_placement,
)
from penstock.policies import get_policy
from unit.placement.problems import application, problem, problems

FAIR = get_policy("fair-share")


def shared() -> Problem:
    """Return two applications of 2 s of work and 3 s of I/O on the same target."""
    twins = [application(name, [1.0], work=2.0, volume=3.0) for name in "ab"]
    return problem(1, *twins, compute_nodes=4)


def narrow() -> Problem:
    """Return one application that is twice as fast on two targets, and one on one."""
    wide = application("wide", [1.0, 2.0], work=2.0, volume=4.0)
    slim = application("slim", [1.0], work=8.0, volume=4.0)
    return problem(3, wide, slim)


def test_a_plan_has_the_targets_of_every_application() -> None:
    plan = make_plan(
        narrow(), get_allocation("best-bandwidth"), get_placement("random:seed=7")
    )
    assert (plan.allocator, plan.placer) == ("best-bandwidth", "random:seed=7")
    assert plan.allocation == (2, 1)
    assert [len(targets) for targets in plan.placement] == [2, 1]
    # 2 x 2 / (2 + 2) and 4 / (8 + 4), over 3 targets.
    assert plan.io_load == pytest.approx((1 + 1 / 3) / 3)


@pytest.mark.parametrize(
    "odd", [application("odd"), application("odd", [1.0], work=0.0, volume=0.0)]
)
def test_a_load_may_not_be_known(odd: Application) -> None:
    pair = problem(2, application("a", [1.0]), odd)
    plan = make_plan(pair, get_allocation("static"), get_placement("random"))
    assert plan.io_load is None
    with pytest.raises(InputError, match="of 'odd' is not known"):
        simulate_plan(plan, FAIR)


def test_two_that_share_a_target_wait_for_one_another() -> None:
    plan = make_plan(shared(), get_allocation("t-cpu"), get_placement("random"))
    assert plan.io_load == pytest.approx(2 * 3 / 5)
    felt = simulate_plan(plan, FAIR)
    # Both post at 2 and end at 8.
    assert felt.window_s == 8.0
    assert felt.in_io_s.tolist() == [6.0, 6.0]
    assert felt.rho_io.tolist() == [1.0, 1.0]
    assert felt.rho_con.tolist() == [1.0, 1.0]
    assert felt.metrics.slowdowns.tolist() == [2.0, 2.0]
    assert felt.metrics.machine_idletime == pytest.approx(12 / (8 * 4))
    assert felt.policy == "fair-share"
    assert felt.incomplete == 0


def test_an_unfinished_operation_counts_pro_rata() -> None:
    short = application("short", [1.0], work=2.0, volume=3.0)
    long = application("long", [1.0], work=2.0, volume=30.0)
    plan = make_plan(
        problem(1, short, long), get_allocation("static"), get_placement("random")
    )
    felt = simulate_plan(plan, FAIR)
    # As above, but the other application has 27 bytes left at 8.
    assert felt.metrics.slowdowns.tolist() == [2.0, 2.0]
    assert felt.incomplete == 1


def test_too_few_targets_cost_time_too() -> None:
    plan = make_plan(narrow(), get_allocation("mckp"), get_placement("exclusive"))
    assert plan.allocation == (2, 1)
    slow = make_plan(narrow(), get_allocation("n-sys"), get_placement("exclusive"))
    assert slow.allocation == (1, 1)
    # Alone on a target: 4 s instead of 2; it ends at 6, before the other posts.
    with pytest.raises(InputError, match="'slim' has transferred nothing"):
        simulate_plan(slow, FAIR)


def test_a_run_without_any_transfer_is_refused() -> None:
    plan = make_plan(shared(), get_allocation("static"), get_placement("random"))
    with pytest.raises(InputError, match="'a' has transferred nothing"):
        simulate_plan(plan, get_policy("support.adversaries.never_grant"))


@given(problems(most_applications=4))
@settings(max_examples=25)
def test_parts_add_up_to_the_slowdown(task: Problem) -> None:
    plan = make_plan(task, get_allocation("t-cpu"), get_placement("greedy-clairvoyant"))
    try:
        felt = simulate_plan(plan, FAIR)
    except InputError:
        return
    assert felt.metrics.rho_io == pytest.approx(felt.rho_io.mean())
    assert felt.metrics.rho_con == pytest.approx(felt.rho_con.mean(), abs=1e-12)
    assert (felt.rho_con >= -1e-9 * felt.rho_io).all()
    assert (felt.in_io_s <= felt.window_s * (1 + 1e-12)).all()


# --- Side by side -----------------------------------------------------------------


def _everything(
    instance: Problem, *policies: str, **options: Callable[[int, int], None]
) -> PlanComparison:
    return compare_plans(
        instance,
        [get_allocation(name) for name in ALLOCATIONS],
        [get_placement(name) for name in PLACEMENTS],
        [get_policy(name) for name in policies],
        **options,
    )


def test_every_combination_is_there_once_and_the_best_is_first() -> None:
    shown: list[tuple[int, int]] = []
    phases = [("work", 2.0), ("io", 3.0)] * 2
    twins = [Application.from_phases(n, 1, phases, profile=[1.0]) for n in "ab"]
    comparison = _everything(
        problem(1, *twins),
        "fair-share",
        "fcfs",
        progress=lambda *seen: shown.append(seen),
    )
    assert comparison.refusals == ()
    names = [(p.allocator, p.placer, e.policy) for p, e in comparison.outcomes]
    assert len(set(names)) == len(names) == 2 * len(ALLOCATIONS) * len(PLACEMENTS)
    slowdowns = [e.metrics.mean_io_slowdown for _, e in comparison.outcomes]
    assert slowdowns == sorted(slowdowns)
    # First come, first served: a is in I/O from 2 to 5 and from 7 to 11, b from 2
    # to 8 and from 10 on; it has transferred its first 3 bytes when a ends.
    assert comparison.outcomes[0][1].policy == "fcfs"
    assert slowdowns[0] == pytest.approx((7 / 6 + 7 / 3) / 2)
    assert slowdowns[-1] == 2.0
    assert shown == [(n, len(names)) for n in range(len(names) + 1)]


def test_refused_combinations_have_a_reason() -> None:
    twins = [application(name, [1.0, 3.0], work=2.0, volume=6.0) for name in "abc"]
    comparison = _everything(problem(4, *twins), "fair-share")
    refused = {(r.allocator, r.placer): r.reason for r in comparison.refusals}
    assert ("best-bandwidth", "exclusive") in refused
    assert refused["best-bandwidth", "exclusive"].startswith(
        "placement exclusive: the allocation gives the applications 6 targets of"
    )
    assert len(comparison.outcomes) + len(refused) == len(ALLOCATIONS) * len(PLACEMENTS)


def test_a_comparison_of_refused_combinations_is_not_an_error() -> None:
    comparison = _everything(
        problem(2, application("a"), application("b")), "fair-share"
    )
    assert comparison.outcomes == ()
    reasons = {(r.allocator, r.placer): r.reason for r in comparison.refusals}
    assert len(reasons) == len(ALLOCATIONS) * len(PLACEMENTS)
    assert "allocation t-cpu needs b_j, which is not" in reasons["t-cpu", "random"]
    assert "the bandwidth of 'a' is not known" in reasons["static", "random"]


def test_a_broken_algorithm_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_broken.py").write_text(
        "NEEDS = frozenset()\ndef allocate(problem): return [0, 0]\n"
    )
    monkeypatch.chdir(tmp_path)
    broken = get_allocation("my_broken.allocate")
    with pytest.raises(PolicyError, match="0 is not a number of targets"):
        compare_plans(shared(), [broken], [get_placement("random")], [FAIR])
