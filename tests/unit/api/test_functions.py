# SPDX-License-Identifier: MIT
"""``import penstock as ps``: the numbers are those of the command line, bit by bit."""

from __future__ import annotations

import doctest
import inspect
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

import penstock as ps
from penstock.api import construction, functions
from penstock.cli import main
from penstock.errors import InputError
from penstock.model import Instance, Problem, write_instance
from unit.samples import app, make, pair, steady_three


def _command(*words: str, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main([*words, "--json", "-"]) == 0
    document: dict[str, object] = json.loads(capsys.readouterr().out)
    return document


def test_a_comparison_of_a_workload_is_that_of_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = ps.compare(
        2, ["fcfs", "set-10"], workload="synthetic", seed=3, horizon=20_000.0
    )
    words = ["--instances", "2", "--seed", "3", "--set", "horizon=20000.0"]
    policies = ["--policy", "fcfs", "--policy", "set-10"]
    document = _command("compare", *words, *policies, capsys=capsys)
    frame = result.frame()
    for row in frame.iter_rows(named=True):
        expected = document["instances"][row["instance"]]  # type: ignore[index]
        outcome = expected["policies"][row["policy"]]
        for key in ("min_yield", "efficiency", "utilization", "stretch"):
            assert row[key] == outcome[key]
        assert row["bound"] == expected["bound"]["min_yield"]


def test_a_comparison_of_instances_is_that_of_their_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, instance in zip(paths, (pair(), steady_three()), strict=True):
        write_instance(instance, path)
    result = ps.compare([pair(), steady_three()], ["fcfs"])
    words = [*map(str, paths), "--policy", "fcfs"]
    document = _command("compare", *words, capsys=capsys)
    expected = [
        reached
        for each in document["instances"]  # type: ignore[attr-defined]
        for reached in each["policies"]["fcfs"]["yields"]
    ]
    assert result.yields()["yield"].to_list() == expected


def test_an_instance_is_written_with_units() -> None:
    platform = ps.Platform(bandwidth="200 GB/s", node_bandwidth="1 GB/s")
    climate = ps.Application(
        "climate", nodes=100, release=0, phases=[("work", "1 h"), ("io", "2 TB")]
    )
    instance = ps.Instance(platform, [climate], window=("0 s", "20 h"))
    assert instance.platform.bandwidth == 200e9
    assert instance.applications[0].phases() == [("work", 3600.0), ("io", 2e12)]
    assert instance.window.length == 72_000.0


def test_simulate_gives_yields_by_name() -> None:
    result = ps.simulate(pair(), "fcfs")
    assert result.yields == {"a": 1.0, "b": pytest.approx(0.7)}
    assert result.min_yield == min(result.yields.values())


def test_read_and_bound(tmp_path: Path) -> None:
    path = tmp_path / "pair.json"
    write_instance(pair(), path)
    assert ps.read(str(path)).digest() == pair().digest()
    assert 0.7 <= ps.bound(pair()).min_yield <= 1.0


def test_a_workload_draws_instances() -> None:
    drawn = ps.workload("synthetic", pressure=0.8, horizon=20_000.0).instance(1, 0)
    (row,) = ps.compare(drawn, ["fcfs"]).rows
    again = ps.compare(
        1, ["fcfs"], workload="synthetic", pressure=0.8, horizon=20_000.0
    )
    assert row["digest"] == again.rows[0]["digest"]


def test_place_plans_targets() -> None:
    problem = Problem(
        2,
        8,
        tuple(
            a.__class__.from_phases(a.name, 1, a.phases(), profile=[1.0, 2.0])
            for a in pair().applications
        ),
    )
    plan = ps.place(problem)
    assert len(plan.placement) == 2
    path = Path(__file__).parents[3] / "examples" / "problem.json"
    assert ps.place(path).allocation == ps.place(str(path)).allocation


def test_advice_is_that_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "three.json"
    write_instance(steady_three(), path)
    advice = ps.advise(steady_three(), now="fcfs", scenarios=3)
    words = ["advise", str(path), "--now", "fcfs", "--scenarios", "3"]
    document = _command(*words, capsys=capsys)
    assert advice.verdict == document["verdict"]
    assert advice.document["policies"] == document["policies"]
    assert str(advice).startswith(str(document["summary"]))
    assert advice.policy in advice.report()


def test_logs_are_imported() -> None:
    log = Path(__file__).parents[3] / "examples" / "logs" / "sacct.txt"
    imported = ps.import_logs(log, bandwidth="10 GB/s", node_bandwidth="1 GB/s")
    assert [job.detail for job in imported.jobs] == ["accounting", "accounting"]
    with pytest.raises(InputError, match="is given to import_logs"):
        ps.advise(imported, bandwidth="5 GB/s")
    assert ps.advise(imported, scenarios=4).verdict == "keep"


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: ps.Platform("200 Gb/s", "1 GB/s"),
        lambda: ps.simulate(pair(), "fcsf"),
        lambda: ps.compare(pair(), workload="synthetic"),
        lambda: ps.compare(pair(), pressure=0.8),
        lambda: ps.compare([]),
        lambda: ps.workload("synthetik"),
        lambda: ps.read("/nowhere.json"),
    ],
)
def test_mistakes_are_those_of_the_command_line(mistake: object) -> None:
    with pytest.raises(InputError):
        mistake()  # type: ignore[operator]


def test_the_signatures_are_a_contract() -> None:
    signatures = {
        name: list(inspect.signature(getattr(ps, name)).parameters)
        for name in (
            "advise",
            "bound",
            "compare",
            "import_logs",
            "place",
            "read",
            "simulate",
            "workload",
            "Application",
            "Instance",
            "Platform",
        )
    }
    assert signatures == {
        "advise": [
            "evidence",
            "now",
            "bandwidth",
            "scenarios",
            "uncertainty",
            "targets",
            "seed",
        ],
        "bound": ["instance"],
        "compare": [
            "instances",
            "policies",
            "workload",
            "seed",
            "jobs",
            "steady",
            "settings",
        ],
        "import_logs": [
            "sources",
            "bandwidth",
            "node_bandwidth",
            "align",
            "gap",
            "io_fraction",
            "options",
        ],
        "place": ["problem", "allocation", "placement"],
        "read": ["path"],
        "simulate": ["instance", "policy", "steady"],
        "workload": ["name", "settings"],
        "Application": ["name", "nodes", "phases", "release", "rest"],
        "Instance": ["platform", "applications", "window"],
        "Platform": ["bandwidth", "node_bandwidth", "rest"],
    }


def test_every_name_is_offered() -> None:
    for name in ps.__all__:
        assert getattr(ps, name) is not None
    with pytest.raises(AttributeError):
        ps.nothing  # noqa: B018


def _first_come(view: Any, rates: Any) -> float:
    """Give the active applications what they can use, in their order."""
    left = view.capacity
    for position in range(view.n_active):
        i = view.active[position]
        rates[i] = min(left, view.cap[i])
        left -= rates[i]
    return math.inf


def test_a_function_is_a_policy() -> None:
    run = ps.simulate(pair(), _first_come)
    assert run.run.policy == "_first_come"
    assert run.yields == ps.simulate(pair(), "fcfs").yields
    result = ps.compare([pair(), steady_three()], ["fcfs", _first_come], jobs=2)
    assert result.policies == ["fcfs", "_first_come"]
    assert len(result.timeline().axes) == 2
    drawn = ps.compare(2, [_first_come], workload="synthetic", horizon=20_000.0)
    assert drawn.recommended == "_first_come"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ps.simulate(pair(), "fcsf"), "did you mean 'fcfs'"),
        (
            lambda: ps.simulate(pair(), cast(Any, 3)),
            "3 is not a policy",
        ),
        (lambda: ps.compare(pair(), [_first_come, _first_come]), "given twice"),
        (lambda: ps.compare(pair(), []), "policies: no policy"),
        (lambda: ps.compare(pair(), "fcfs"), "'fcfs' is not a list of policies"),
        (lambda: ps.advise([]), "advise: no instance"),
        (lambda: ps.import_logs("x", gap=-1), "gap: -1.0 s is not a time"),
        (lambda: ps.import_logs("x", gap="5 GB"), "gap: unknown unit"),
        (lambda: ps.import_logs("x", io_fraction=1), "1 is not between 0 and 1"),
        (lambda: ps.import_logs("x", gap_s=1.0), "unknown option 'gap_s'"),
        (lambda: ps.Application("a", 1, cast(Any, [5])), "phases[0]: 5 is not a phase"),
        (lambda: ps.Platform("10", "1 GB/s"), "bandwidth: '10' has no unit"),
        (lambda: ps.Application("a", 1, [("work",)]), "phases[0]: ('work',) is not"),
        (lambda: ps.Application("a", 1, [("rest", 1)]), "unknown kind of phase 'rest'"),
        (lambda: ps.Application("a", 1, [("io", "5 s")]), "phases[0]: unknown unit"),
        (
            lambda: ps.Instance(pair().platform, [], cast(Any, ("1 h",))),
            "('1 h',) is not a window",
        ),
        (lambda: ps.read("/nowhere.json"), "/nowhere.json: cannot read the file"),
        (lambda: ps.advise(pair(), scenarios=0), "scenarios: 0 is not a whole number"),
        (lambda: ps.advise(pair(), seed=-1), "seed: -1 is not a whole number"),
        (lambda: ps.advise(pair(), targets=0), "targets: 0 is not a whole number"),
        (lambda: ps.advise(pair(), bandwidth=0), "bandwidth: 0 is not positive"),
        (lambda: ps.compare(pair(), jobs=0), "jobs: 0 is not a whole number"),
        (lambda: ps.compare(0), "instances: 0 is not a whole number"),
        (lambda: ps.compare(10**9), "instances: 1000000000 is more than the limit"),
        (lambda: ps.compare(1, seed=-1), "seed: -1 is not a whole number"),
        (
            lambda: ps.workload("synthetic").instance(-1, 0),
            "seed: -1 is not a whole number",
        ),
        (lambda: ps.workload(cast(Any, 3)), "workload: unknown workload '3'"),
        (
            lambda: ps.workload("synthetic:pressure=2"),
            "--set pressure=2, in Python pressure=2",
        ),
        (lambda: ps.compare("/no.json"), "/no.json: cannot read the file"),
        (lambda: ps.simulate("/no.json", "fcfs"), "/no.json: cannot read the file"),
        (lambda: ps.advise("/no.json"), "/no.json: cannot read the file"),
        (lambda: ps.bound(cast(Any, 3)), "instance: 3 is not an instance"),
        (lambda: ps.compare(cast(Any, 3.5)), "instance: 3.5 is not an instance"),
        (
            lambda: ps.compare(pair(), cast(Any, _first_come)),
            "_first_come is not a list of policies (write [_first_come])",
        ),
        (lambda: ps.import_logs("x", bandwidth="2 GB"), "bandwidth: unknown unit 'GB'"),
        (
            lambda: ps.import_logs("x", node_bandwidth=0),
            "node_bandwidth: 0 is not positive",
        ),
        (
            lambda: ps.compare(_short()),
            "ends at 2 s, inside the window [0, 10] (give it more phases, end the "
            "window earlier, or allow open runs: --open, in Python steady=False)",
        ),
    ],
)
def test_errors_are_those_of_the_command_line(
    call: Callable[[], object], message: str
) -> None:
    with pytest.raises(ps.InputError, match=re.escape(message)) as caught:
        call()
    assert isinstance(caught.value, ps.PenstockError)
    assert caught.value.remedy


def _short() -> Instance:
    """Return an instance whose application ends inside the window."""
    return make(app("a", ("work", 2.0)))


def test_an_application_that_ends_is_told() -> None:
    result = ps.simulate(_short(), "fcfs")
    assert result.ended == {"a": 2.0}
    assert ps.simulate(pair(), "fcfs").ended == {}
    assert ps.compare(_short(), ["fcfs"], steady=False).rows[0]["yields"] == [1.0]
    with pytest.raises(ps.InputError, match="steady=False"):
        ps.simulate(_short(), "fcfs", steady=True)


def test_files_are_named_in_place_of_instances(tmp_path: Path) -> None:
    path = tmp_path / "pair.json"
    write_instance(pair(), path)
    assert ps.bound(path) == ps.bound(pair())
    assert ps.simulate(str(path), "fcfs").yields == ps.simulate(pair(), "fcfs").yields
    assert ps.compare([path, pair()], ["fcfs"]).frame()["min_yield"].n_unique() == 1
    assert ps.advise(path, scenarios=1).policy == ps.advise(pair(), scenarios=1).policy


def test_a_function_that_fails_is_named() -> None:
    def broken(view: Any, rates: Any) -> float:
        raise KeyError("odd")

    with pytest.raises(ps.PolicyError, match="broken failed at t = 2 s: KeyError"):
        ps.simulate(pair(), broken)


@pytest.mark.parametrize("module", [construction, functions])
def test_examples_of_docstrings(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    result = doctest.testmod(module, extraglobs={"ps": ps})
    public = [name for name in module.__all__ if callable(getattr(module, name))]
    assert result.failed == 0
    assert result.attempted >= len(public)
