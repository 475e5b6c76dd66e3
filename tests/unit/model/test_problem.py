# SPDX-License-Identifier: MIT
"""Placement problems: characteristic values, files, and mistakes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from penstock.errors import InputError
from penstock.model import Application, Sharing, Window
from penstock.model.problem import (
    Problem,
    problem_from_document,
    problem_to_document,
    read_problem,
    write_problem,
)
from penstock.sim import simulate
from unit.placement.problems import application, problem, problems

EXAMPLE = Path(__file__).parents[3] / "examples" / "problem.json"


def document() -> dict[str, Any]:
    """Return a fresh document: all known, n_perf alone known, nothing known."""
    return {
        "penstock": 1,
        "resources": 4,
        "compute_nodes": 64,
        "applications": [
            {
                "name": "climate",
                "nodes": 32,
                "phases": [["work", "10 min"], ["io", "6 GiB"], ["work", 60]],
                "bandwidth": ["1 GiB/s", "2 GiB/s", 3221225472],
            },
            {"name": "fusion", "nodes": 16, "best_targets": 3, "phases": [["io", 5]]},
            {"name": "genome", "nodes": 4},
        ],
    }


def sample() -> Problem:
    """Return two applications on three targets; times are whole numbers."""
    # T_io: 10, 6, 5, (4) and 3, 3, 3.
    return problem(
        3,
        application("a", [6, 10, 12, 15], work=10.0, volume=60.0, nodes=4),
        application("b", [20, 20, 20], work=1.0, volume=60.0, nodes=2),
        compute_nodes=8,
    )


# --- Characteristic values --------------------------------------------------------


def test_times_and_volumes_are_sums_over_the_phases() -> None:
    phases = [("work", 1.0), ("io", 5.0), ("work", 2.0), ("io", 7.0), ("work", 4.0)]
    two = problem(1, Application.from_phases("a", 1, phases, profile=[4.0]))
    assert two.compute_time == (7.0,)
    assert two.volume == (12.0,)
    assert two.io_time(0, 1) == 3.0


def test_characteristic_values_by_hand() -> None:
    task = sample()
    assert [task.bandwidth(0, n) for n in (1, 2, 3)] == [6.0, 10.0, 12.0]
    assert [task.io_time(0, n) for n in (1, 2, 3)] == [10.0, 6.0, 5.0]
    assert [task.io_ratio(0, n) for n in (1, 2)] == [0.5, 0.375]
    assert [task.stress(0, n) for n in (1, 2, 3)] == [0.5, 0.75, 1.0]
    assert [task.cpu_load(0, n) for n in (1, 2)] == [2.0, 2.5]
    assert [task.stress(1, n) for n in (1, 2, 3)] == [0.75, 1.5, 2.25]


def test_numbers_go_up_to_what_there_is_and_was_measured() -> None:
    task = sample()
    # The fourth bandwidth of a is the highest, but there are three targets only.
    assert [task.most_targets(j) for j in (0, 1)] == [3, 3]
    assert task.n_perf(0) == 3
    assert problem(9, *task.applications).most_targets(0) == 4
    assert problem(9, *task.applications).n_perf(0) == 4
    assert problem(9, application("a")).most_targets(0) == 9


def test_ties_go_to_the_smallest_number() -> None:
    assert problem(4, application("a", [3, 5, 5, 5])).n_perf(0) == 2
    # T_io = 6, 2, 1, 1 s and T_cpu = 2 s: stress 3/4, 1, 1, 4/3.
    assert problem(4, application("a", [1, 3, 6, 6], work=2, volume=6)).n_sys(0) == 1
    # T_io = 6, 1, 0.6 s and T_cpu = 2 s: stress 3/4, 2/3, 9/13.
    assert problem(4, application("a", [1, 6, 10], work=2, volume=6)).n_sys(0) == 2
    # T_cpu = 2 s, T_io = 2, 2/3 s: stress 1/2 both.
    assert problem(4, application("a", [1, 3], work=2, volume=2)).n_sys(0) == 1
    assert problem(4, application("a", [2, 8], volume=0.0)).n_sys(0) == 1


def test_io_load_by_hand() -> None:
    assert sample().io_load((2, 1)) == (0.75 + 0.75) / 3
    assert sample().io_load([3, 3]) == (1.0 + 2.25) / 3


@given(problems(most_resources=8, most_measured=9))
def test_lemma_1_n_sys_is_at_most_n_perf(task: Problem) -> None:
    for j in range(len(task.applications)):
        assert 1 <= task.n_sys(j) <= task.n_perf(j) <= task.most_targets(j)


@given(problems())
def test_no_allocation_has_a_lower_io_load_than_n_sys(task: Problem) -> None:
    everyone = range(len(task.applications))
    least = task.io_load([task.n_sys(j) for j in everyone])
    for n in range(1, task.resources + 1):
        other = task.io_load([min(n, task.most_targets(j)) for j in everyone])
        assert other >= least * (1 - 1e-12)


@pytest.mark.parametrize(
    ("allocation", "message"),
    [
        (
            (1,),
            "allocation: 1 entries for 2 applications",
        ),
        ((0, 1), "applications[0]: 0 is not a number of targets for 'a' (give 1 to 3"),
        ((1, 4), "applications[1]: 4 is not a number of targets for 'b' (give 1 to 3"),
        ((1, True), "applications[1]: True is not a number of targets"),
        ((1, 1.0), "applications[1]: 1.0 is not a number of targets"),
    ],
)
def test_an_unlawful_allocation_is_refused(allocation: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        sample().io_load(allocation)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda task: task.bandwidth(1, 1),
            "applications[1]: the bandwidth of 'fusion'",
        ),
        (
            lambda task: task.n_sys(1),
            "applications[1]: the bandwidth of 'fusion' is not",
        ),
        (
            lambda task: task.n_perf(2),
            "applications[2]: n_perf of 'genome' is not known",
        ),
    ],
)
def test_unknown_values_are_refused(
    ask: Callable[[Problem], Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        ask(problem_from_document(document()))
    assert str(caught.value).startswith(message)


def test_an_application_that_does_nothing_has_no_stress() -> None:
    idle = problem(2, application("a", [1.0], work=0.0, volume=0.0))
    assert not idle.has_phases(0)
    with pytest.raises(InputError, match=r"the work of 'a' .*give \"phases\""):
        idle.stress(0, 1)


# --- Instances --------------------------------------------------------------------


def test_an_instance_has_the_targets_and_no_other_limit() -> None:
    history = Application.from_phases(
        "late",
        2,
        [("work", 5.0), ("io", 8.0), ("work", 90.0)],
        release=3.0,
        start=9.0,
        done_work=2.0,
        profile=[4.0, 8.0],
    )
    task = problem(3, history, application("b", [1.0, 7.0, 2.0], work=90.0))
    placed = task.instance([(0, 2), (1,)], Window(0.0, 20.0))
    assert placed.platform.targets == 3
    assert placed.platform.sharing is Sharing.TIME
    assert placed.platform.bandwidth == 8.0 + 7.0
    assert placed.platform.node_bandwidth == 8.0
    assert [a.targets for a in placed.applications] == [(0, 2), (1,)]
    assert [(a.release, a.start) for a in placed.applications] == [(0.0, 0.0)] * 2
    assert placed.applications[0].done_work == 0.0
    assert placed.caps.tolist() == [8.0, 1.0]
    assert task.applications[0].release == 3.0


@pytest.mark.parametrize(
    ("placement", "message"),
    [
        ([(0,)], "placement: 1 entries for 2 applications"),
        ([(0,), (1, 1)], "applications[1].targets: [1, 1] are not different"),
        ([(0,), ()], "applications[1].targets: [] are not different"),
        ([(0,), (3,)], "applications[1].targets: some of [3] do not exist"),
        ([(0,), (-1,)], "applications[1].targets: some of [-1] do not exist"),
    ],
)
def test_an_unlawful_placement_is_refused(placement: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        sample().instance(placement, Window(0.0, 1.0))
    assert str(caught.value).startswith(message)


def test_the_default_window_is_long_enough_for_one_application() -> None:
    # On target 0: 6 s of a and 3 s of b; on target 1: 6 s of a. b ends by 1 + 9.
    assert sample().instance([(0, 1), (0,)]).window == Window(0.0, 20.0)
    # a alone: by 10 + 6 + 6; b alone: by 1 + 3.
    assert sample().instance([(0, 1), (2,)]).window == Window(0.0, 8.0)


@given(task=problems(), policy=st.sampled_from(["fair-share", "fcfs", "greedy-com"]))
@settings(max_examples=25)
def test_an_application_ends_in_the_default_window(task: Problem, policy: str) -> None:
    placement = [range(task.most_targets(j)) for j in range(len(task.applications))]
    instance = task.instance(placement)
    run = simulate(instance, policy, until_first_end=True)
    assert run.instance.window.end <= 0.5 * instance.window.end * (1 + 1e-12)


def test_a_window_needs_the_phases() -> None:
    idle = problem(1, application("a", [1.0], work=0.0, volume=0.0))
    with pytest.raises(InputError, match="the work of 'a' is not known"):
        idle.instance([(0,)])


def test_an_instance_needs_the_bandwidths() -> None:
    with pytest.raises(InputError, match="the bandwidth of 'fusion' is not known"):
        problem_from_document(document()).instance([(0,)] * 3, Window(0.0, 1.0))


# --- There and back ---------------------------------------------------------------


def _assert_equal(one: Problem, other: Problem) -> None:
    assert one.resources == other.resources
    assert one.compute_nodes == other.compute_nodes
    assert one.best_targets == other.best_targets
    for a, b in zip(one.applications, other.applications, strict=True):
        assert (a.name, a.nodes) == (b.name, b.nodes)
        for column in ("work", "volume", "profile"):
            assert getattr(a, column).tobytes() == getattr(b, column).tobytes()


@given(problems())
def test_a_document_gives_the_same_problem_again(task: Problem) -> None:
    text = json.dumps(problem_to_document(task))
    _assert_equal(problem_from_document(json.loads(text)), task)


def test_unknown_values_are_left_out() -> None:
    written = problem_to_document(problem_from_document(document()))["applications"]
    assert [set(item) for item in written] == [
        {"name", "nodes", "phases", "bandwidth"},
        {"name", "nodes", "phases", "best_targets"},
        {"name", "nodes"},
    ]


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_a_file_gives_the_same_problem_again(tmp_path: Path, ending: str) -> None:
    one, other = (tmp_path / f"{name}.{ending}" for name in "ab")
    task = problem_from_document(document())
    write_problem(task, one)
    write_problem(read_problem(one), str(other))
    _assert_equal(read_problem(str(other)), task)
    assert one.read_bytes() == other.read_bytes()
    if ending == "json.gz":
        assert json.loads(gzip.decompress(one.read_bytes()))["resources"] == 4


def test_units_in_strings() -> None:
    task = problem_from_document(document())
    assert task.compute_time == (660.0, 0.0, 0.0)
    assert task.volume == (6 * 2.0**30, 5.0, 0.0)
    assert task.applications[0].profile.tolist() == [2.0**30, 2.0**31, 3 * 2.0**30]
    assert task.n_perf(1) == 3
    assert task.best_targets == (0, 3, 0)


def test_the_example_has_all_shapes_and_a_choice_to_make() -> None:
    task = read_problem(EXAMPLE)
    everyone = range(len(task.applications))
    best = [task.n_perf(j) for j in everyone]
    most = [task.most_targets(j) for j in everyone]
    flat = [a.profile.max() < 1.1 * a.profile.min() for a in task.applications]
    assert any(n == m and not f for n, m, f in zip(best, most, flat, strict=True))
    assert any(1 < n < m and not f for n, m, f in zip(best, most, flat, strict=True))
    assert any(n == 1 and not f for n, f in zip(best, flat, strict=True))
    assert any(flat)
    assert task.io_load([task.n_sys(j) for j in everyone]) < 1 < task.io_load(best)


# --- Mistakes ---------------------------------------------------------------------


def _put(*path: Any) -> Callable[[Any], None]:
    """Return a function that sets the place `path[:-1]` of a document to `path[-1]`."""
    *outer, key, value = path

    def change(content: Any) -> None:
        for step in outer:
            content = content[step]
        content[key] = value

    return change


FIRST, SECOND = ("applications", 0), ("applications", 1)
MISTAKES: dict[str, tuple[Callable[[Any], None], str]] = {
    "format": (_put("penstock", 2), "penstock: format 2 is not known"),
    "key": (_put("nodes", 2), "unknown key 'nodes' (known: applications, "),
    "missing": (lambda d: d.pop("resources"), "key 'resources' is missing"),
    "no target": (_put("resources", 0), "resources: 0 is not a number of resources"),
    "targets": (_put("resources", 2.0), "resources: 2.0 is not a number of resources"),
    "too many": (_put("resources", 10**9), "resources: 1000000000 is not a number"),
    "nodes": (_put("compute_nodes", "x"), "compute_nodes: 'x' is not a number of"),
    "crowd": (
        _put("compute_nodes", 51),
        "compute_nodes: the applications use 52 compute nodes, but the machine has 51",
    ),
    "list": (_put("applications", {}), "applications: not a list"),
    "nobody": (_put("applications", []), "applications: no application"),
    "object": (_put(*FIRST, 3), "applications[0]: not an object"),
    "unknown": (_put(*FIRST, "bandwith", []), "applications[0]: unknown key 'bandwith"),
    "name": (_put(*FIRST, "name", ""), "applications[0].name: '' is not a name"),
    "twice": (
        _put(*SECOND, "name", "climate"),
        "applications[1].name: the name 'climate' is already used by applications[0]",
    ),
    "node": (_put(*FIRST, "nodes", 0), "applications[0].nodes: 0 is not a number of"),
    "phases": (_put(*FIRST, "phases", "x"), "applications[0].phases: not a list"),
    "phase": (
        _put(*FIRST, "phases", 1, ["io", "3 s"]),
        "applications[0].phases[1]: unknown unit 's'",
    ),
    "negative phase": (
        _put(*FIRST, "phases", 1, ["io", -3]),
        "applications[0].phases[1]: -3.0 is negative",
    ),
    "endless": (
        _put(*FIRST, "phases", [["work", 1e308], ["work", 1e308]]),
        "applications[0].",
    ),
    "endless io": (
        _put(*FIRST, "bandwidth", [1e-300]),
        "applications[0].phases: the sum of the phases is too large",
    ),
    "profile": (_put(*FIRST, "bandwidth", 5), "applications[0].bandwidth: not a list"),
    "no profile": (
        _put(*FIRST, "bandwidth", []),
        "applications[0].bandwidth: the list of bandwidths is empty",
    ),
    "gap": (
        _put(*FIRST, "bandwidth", 1, None),
        "applications[0].bandwidth[1]: the bandwidth is missing (interpolate",
    ),
    "zero": (
        _put(*FIRST, "bandwidth", 2, 0),
        "applications[0].bandwidth[2]: 0 is not a positive bandwidth",
    ),
    "negative": (
        _put(*FIRST, "bandwidth", 0, "-1 GiB/s"),
        "applications[0].bandwidth[0]: '-1 GiB/s' is not a positive bandwidth",
    ),
    "unit": (
        _put(*FIRST, "bandwidth", 0, "1 GiB"),
        "applications[0].bandwidth[0]: unknown unit 'GiB'",
    ),
    "infinite": (
        _put(*FIRST, "bandwidth", 0, "inf"),
        "applications[0].bandwidth[0]: 'inf' is not a finite bandwidth",
    ),
    "best": (
        _put(*SECOND, "best_targets", 5),
        "applications[1].best_targets: 5 targets are best, but there are only 4",
    ),
    "no best": (
        _put(*SECOND, "best_targets", 0),
        "applications[1].best_targets: 0 is not a number of best targets",
    ),
    "both": (
        _put(*FIRST, "best_targets", 2),
        "applications[0].best_targets: the bandwidth already determines",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_gets_one_message_with_its_place(tmp_path: Path, case: str) -> None:
    change, message = MISTAKES[case]
    content = document()
    change(content)
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError) as caught:
        read_problem(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the file: No such file"):
        read_problem(tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(InputError, match=r"broken\.json: not JSON"):
        read_problem(broken)
    (tmp_path / "plain.json.gz").write_text("{}")
    with pytest.raises(InputError, match="cannot read the file"):
        read_problem(tmp_path / "plain.json.gz")


def test_best_targets_are_one_for_each() -> None:
    with pytest.raises(InputError, match="best_targets: 1 entries for 2 applications"):
        problem(3, application("a"), application("b"), best_targets=(1,))
