# SPDX-License-Identifier: MIT
"""Schemas accept every file that penstock reads or writes, and refuse bad ones."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.advice.job_report.documents import report_document
from penstock.bench import Measurement
from penstock.cli import main
from penstock.cli.live import bench
from penstock.cli.simulation.schema import FORMATS, schema_of
from penstock.errors import InputError
from penstock.experiments.study_file import read_study
from penstock.live.settings import load_settings
from penstock.live.wire.messages import (
    BandwidthBelief,
    Delay,
    JobReport,
    JobStatus,
    PastJob,
    ReportedOperation,
    StatusDocument,
    StorageStatus,
)
from penstock.model.files import instance_from_document, instance_to_document
from penstock.model.problem import problem_from_document
from penstock.mount.slo_settings import slo_settings_from
from support.archives import record, run

jsonschema = pytest.importorskip("jsonschema", reason="checks schemas")

EXAMPLES = Path(__file__).parents[4] / "examples"
quickly = settings(deadline=None, derandomize=True, max_examples=60)


def accepts(name: str, document: object) -> bool:
    """Return True if the schema of a format accepts a document."""
    found: bool = jsonschema.Draft202012Validator(schema_of(name)).is_valid(document)
    return found


def example(name: str) -> Any:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


# --- The command ----------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_a_schema(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schema", name]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema == schema_of(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["description"]


def test_without_a_name_formats_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["format", *FORMATS]


def test_an_unknown_format_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "instances"]) == 2
    assert "did you mean 'instance'?" in capsys.readouterr().err


# --- What the readers accept ----------------------------------------------------------

NUMBERS = st.floats(0, 1e15)
NAMES = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=9
)


def amounts(*units: str) -> st.SearchStrategy[float | int | str]:
    """Draw numbers, and texts with one of these units, also written unusually."""
    texts = st.builds(
        lambda sign, number, blank, unit: f" {sign}{number}{blank}{unit} ",
        st.sampled_from(["", "+"]),
        st.sampled_from(["0", "1", "1.", ".5", "2e3", "1E-2", "007"]),
        st.sampled_from(["", " ", "\t"]),
        st.sampled_from(units),
    )
    return NUMBERS | st.integers(0, 10**12) | texts | st.sampled_from(["0", "+0.0 "])


RATES = st.floats(1, 1e12) | st.builds(
    "{} {}".format, st.integers(1, 999), st.sampled_from(["B/s", "KB/s", "EiB/s"])
)
TIMES, VOLUMES = amounts("ns", "s", "min", "d"), amounts("B", "kB", "KiB", "EB")
PHASES = st.lists(
    st.tuples(st.just("work"), TIMES) | st.tuples(st.just("io"), VOLUMES), max_size=4
).map(lambda phases: [list(phase) for phase in phases])
APPLICATIONS = st.fixed_dictionaries(
    {
        "name": NAMES,
        "nodes": st.integers(1, 10**9),
        "release": st.just(0),
        "phases": PHASES,
    },
    optional={
        "start": TIMES,
        "user": st.text(max_size=5),
        "group": st.text(max_size=5),
        "period": st.floats(0.001, 1e9) | st.just("2 h"),
        "bandwidth": st.lists(RATES, min_size=1, max_size=3),
        "targets": st.just([0]),
    },
)
INSTANCES = st.fixed_dictionaries(
    {
        "penstock": st.just(1),
        "platform": st.fixed_dictionaries(
            {"bandwidth": RATES, "node_bandwidth": RATES},
            optional={
                "targets": st.integers(1, 9),
                "sharing": st.sampled_from(["bandwidth", "time"]),
            },
        ),
        "window": st.tuples(st.just(0), st.floats(1, 1e6) | st.just("3 h")).map(list),
        "applications": st.lists(
            APPLICATIONS, min_size=1, max_size=3, unique_by=lambda a: a["name"]
        ),
    }
)


@given(document=INSTANCES)
@quickly
def test_what_the_reader_of_instances_accepts_the_schema_accepts(
    document: dict[str, Any],
) -> None:
    try:
        instance = instance_from_document(document)
    except InputError:
        return  # e.g. a number that is too large
    assert accepts("instance", document)
    written = json.loads(msgspec.json.encode(instance_to_document(instance)))
    assert accepts("instance", written)


@given(
    document=st.fixed_dictionaries(
        {
            "penstock": st.just(1),
            "resources": st.integers(1, 10**6),
            "compute_nodes": st.just(10**9),
            "applications": st.lists(
                st.fixed_dictionaries(
                    {"name": NAMES, "nodes": st.integers(1, 1000)},
                    optional={
                        "phases": PHASES,
                        "bandwidth": st.lists(RATES, min_size=1, max_size=3),
                        "best_targets": st.integers(1, 3),
                    },
                ),
                min_size=1,
                max_size=3,
                unique_by=lambda a: a["name"],
            ),
        }
    )
)
@quickly
def test_what_the_reader_of_problems_accepts_the_schema_accepts(
    document: dict[str, Any],
) -> None:
    try:
        problem_from_document(document)
    except InputError:
        return
    assert accepts("problem", document)


# --- What the readers refuse ----------------------------------------------------------

APPLICATION = ("applications", 0)
#: Format, place in the example, and a bad value there (None: the key is missing).
BAD: list[tuple[str, tuple[str | int, ...], Any]] = [
    ("instance", ("penstock",), 2),
    ("instance", ("penstock",), None),
    ("instance", ("typo",), 1),
    ("instance", ("platform", "bandwidth"), "10"),
    ("instance", ("platform", "bandwidth"), "10 GB"),
    ("instance", ("platform", "bandwidth"), 0),
    ("instance", ("platform", "sharing"), "both"),
    ("instance", ("platform", "targets"), 0),
    ("instance", ("window",), [0]),
    ("instance", ("window",), [0, "soon"]),
    ("instance", ("applications",), {}),
    ("instance", (*APPLICATION, "name"), ""),
    ("instance", (*APPLICATION, "name"), "a\nb"),
    ("instance", (*APPLICATION, "nodes"), 0),
    ("instance", (*APPLICATION, "nodes"), 1.5),
    ("instance", (*APPLICATION, "nodes"), 10**10),
    ("instance", (*APPLICATION, "release"), None),
    ("instance", (*APPLICATION, "phases"), [["work", "5 GB"]]),
    ("instance", (*APPLICATION, "phases"), [["io", "5 s"]]),
    ("instance", (*APPLICATION, "phases"), [["rest", 5]]),
    ("instance", (*APPLICATION, "phases"), [["work"]]),
    ("instance", (*APPLICATION, "phases"), [["work", -1]]),
    ("instance", (*APPLICATION, "period"), 0),
    ("instance", (*APPLICATION, "targets"), []),
    ("instance", (*APPLICATION, "bandwidth"), []),
    ("instance", (*APPLICATION, "user"), 7),
    ("problem", ("resources",), 0),
    ("problem", ("compute_nodes",), "64"),
    ("problem", ("applications",), []),
    ("problem", (*APPLICATION, "best_targets"), 0),
    ("problem", (*APPLICATION, "release"), 0),
]
READERS: dict[str, tuple[str, Callable[[object], object]]] = {
    "instance": ("three", instance_from_document),
    "problem": ("problem", problem_from_document),
}


@pytest.mark.parametrize(("name", "place", "value"), BAD)
def test_schema_and_reader_refuse_the_same(
    name: str, place: tuple[str | int, ...], value: Any
) -> None:
    file, read = READERS[name]
    document = example(file)
    read(copy.deepcopy(document))
    assert accepts(name, document)
    part = document
    for key in place[:-1]:
        part = part[key]
    if value is None:
        del part[place[-1]]
    else:
        part[place[-1]] = value
    assert not accepts(name, document)
    with pytest.raises(InputError):
        read(document)


# --- Files in TOML --------------------------------------------------------------------

SETTINGS = {
    'policy = "fcfs"\nbandwidth = "10 GB/s"\nprefixes = ["/scratch"]': True,
    'bandwidth = "learn"\nfloor = "unlimited"\nreads = true\nlend = "no"': True,
    'gap = "20 ms"\nlinger = 0\narchive_size = 2000000\nprefixes = "/a:/b"': True,
    'listen = "tcp://node1:4713"\nmetrics = "127.0.0.1:9400"\nmode = "dry-run"': True,
    "bandwidth = 20": False,
    'bandwidth = "20"': False,
    'mode = "on"': False,
    'reads = "perhaps"': False,
    'listen = "node1:4713"': False,
    'metrics = "9400"': False,
    'prefixes = ["scratch"]': False,
    'polizy = "fcfs"': False,
    "policy = 3": False,
}


@pytest.mark.parametrize("text", SETTINGS)
def test_settings(text: str, tmp_path: Path) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text(text)
    assert accepts("settings", tomllib.loads(text)) is SETTINGS[text]
    if SETTINGS[text]:
        load_settings({}, {}, str(file))
    else:
        with pytest.raises(InputError):
            load_settings({}, {}, str(file))


STUDIES = {
    'policies = ["fcfs"]\n[sweep]\npressure = [0.5]\n[plot]\nx = "pressure"': True,
    "[sweep]\npressure = [0.5]": False,
    'name = "a"\nseed = 3\npolicies = ["fcfs"]\nbound = true\n'
    '[workload]\nname = "synthetic"\nhorizon = 4000\n[sweep]\npressure = [1]': True,
    'name = "studies"\npolicies = ["fcfs"]\n[sweep]\npressure = [1]': False,
    'seed = -1\npolicies = ["fcfs"]\n[sweep]\npressure = [1]': False,
    'policies = ["fcfs"]\n[sweep]\npressure = []': False,
    'policies = ["fcfs"]\n[sweep]': False,
    'typo = 1\npolicies = ["fcfs"]\n[sweep]\npressure = [1]': False,
    "policies = []\n[sweep]\npressure = [1]": False,
    'bound = "yes"\npolicies = ["fcfs"]\n[sweep]\npressure = [1]': False,
}


@pytest.mark.parametrize("text", STUDIES)
def test_studies(text: str, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(text)
    assert accepts("study", tomllib.loads(text)) is STUDIES[text]
    if STUDIES[text]:
        read_study(str(file))
    else:
        with pytest.raises(InputError):
            read_study(str(file))


_VIZ = '[applications.viz]\nthroughput = "10 MB/s"\nlatency = "50 ms"\n'
OBJECTIVES = {
    _VIZ: True,
    f'default = "viz"\n{_VIZ}mounts = 2\n[[rules]]\napplication = "viz"\n'
    'program = "paraview*"\n': True,
    "": False,
    f"typo = 1\n{_VIZ}": False,
    f"{_VIZ}mounts = 0\n": False,
    f'{_VIZ}[[rules]]\nprogram = "a"\n': False,
}


@pytest.mark.parametrize("text", OBJECTIVES)
def test_objectives(text: str, tmp_path: Path) -> None:
    document = tomllib.loads(text)
    assert accepts("slo", document) is OBJECTIVES[text]
    if OBJECTIVES[text]:
        slo_settings_from(document, str(tmp_path))
    else:
        with pytest.raises(InputError):
            slo_settings_from(document, str(tmp_path))


# --- What penstock writes -------------------------------------------------------------

#: Type of a field -> a value.
_VALUES: dict[Any, Any] = {
    str: "a",
    int: 1,
    bool: True,
    float: 1.5,
    float | None: None,
    list[str]: ["n"],
}

THREE, PROBLEM = str(EXAMPLES / "three.json"), str(EXAMPLES / "problem.json")
WRITTEN = {
    "comparison": ["compare", THREE, "--policy", "fcfs"],
    "bound": ["bound", THREE],
    "plan": ["place", PROBLEM, "--simulate"],
    "plan-comparison": ["compare", "--problem", PROBLEM, "--policy", "fair-share"],
    "import": [
        *("import", str(EXAMPLES / "logs" / "sacct.txt"), "--bandwidth", "10 GB/s"),
        *("-o", "ensemble", "--ensemble", "2"),
    ],
    "advice": ["advise", THREE, "--scenarios", "4", "--targets", "2"],
}


@pytest.mark.parametrize("name", WRITTEN)
def test_results_fit_their_schema(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*WRITTEN[name], "--json", "result.json"]) == 0
    document = json.loads(Path("result.json").read_text())
    jsonschema.Draft202012Validator(schema_of(name)).validate(document)
    assert set(document) <= set(schema_of(name)["properties"])
    assert not accepts(name, document | {"penstock": 2})


def test_past_jobs_fit_their_schema(tmp_path: Path) -> None:
    record(tmp_path / "archive", (run("7:climate"), []))
    result = tmp_path / "result.json"
    words = ["history", "--folder", str(tmp_path), "--json", str(result)]
    assert main(words) == 0
    document = json.loads(result.read_text())
    assert document["jobs"]
    jsonschema.Draft202012Validator(schema_of("history")).validate(document)
    assert set(document) == set(schema_of("history")["properties"])


def test_the_status_fits_its_schema() -> None:
    belief = BandwidthBelief(2e9, "two jobs together", 5.0)
    storage = StorageStatus("", 2e9, True, "writes", {"writes": belief})
    facts: dict[str, Any] = {
        item.name: _VALUES[item.type]
        for item in msgspec.structs.fields(JobStatus)
        if item.required
    }
    job = JobStatus(**facts)
    status = StatusDocument(
        "control", "fcfs", 2e9, None, ["n"], 1, [], [job], [storage]
    )
    document = json.loads(msgspec.json.encode(status.document()))
    jsonschema.Draft202012Validator(schema_of("status")).validate(document)
    assert set(document) == set(schema_of("status")["properties"])
    assert not accepts("status", document | {"jobs": 3})


def test_benchmarks_fit_their_schema() -> None:
    measured = [
        Measurement("cost", 1.5, "us", most=2.0, parts={"least": 1.0}),
        Measurement("count", 3.0, ""),
    ]
    document = bench._document({"call": measured}, 0.5, {"version": "1"})
    document = json.loads(msgspec.json.encode(document))
    jsonschema.Draft202012Validator(schema_of("bench")).validate(document)
    assert set(document) == set(schema_of("bench")["properties"])


def test_reports_fit_their_schema() -> None:
    job = PastJob("a", 0, "", 1, 0.0, None, None, 5.0, 0.0, 1.0, "fcfs")
    operation = ReportedOperation(0.0, 1.0, 5.0, 0.0, 0.0, None, "fcfs", [(0.0, None)])
    report = JobReport(job, [operation], [Delay("b", 0.0, 1.0)], note="no operator")
    document = json.loads(msgspec.json.encode(report_document(report, {})))
    jsonschema.Draft202012Validator(schema_of("report")).validate(document)
    assert set(document) == set(schema_of("report")["properties"])
