# SPDX-License-Identifier: MIT
"""Studies in TOML files: the study that is read, and messages about mistakes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from penstock.errors import InputError
from penstock.experiments.claims import Tables
from penstock.experiments.reproduction import Reproduction, Scale
from penstock.experiments.study import METRICS, Study
from penstock.experiments.study_file import read_study

SWEEP = "[sweep]\npressure = [0.5, 0.8]\n"
LEAST = f'policies = ["fcfs"]\n{SWEEP}'
EXAMPLE = Path(__file__).parents[3] / "examples" / "study.toml"


def _read(folder: Path, text: str) -> Reproduction:
    path = folder / "s.toml"
    path.write_text(text, encoding="utf-8")
    return read_study(str(path))


def _study(figure: Reproduction) -> Study:
    study = figure.study(Scale.PAPER)
    assert isinstance(study, Study)
    return study


def _rows(study: Study) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"policy": policy, "pressure": 0.7, "aimed_pressure": value, "n_small": 10}
            | dict.fromkeys(METRICS, 0.5)
            for policy in study.policies
            for value in (0.5, 0.8)
        ]
    )


def test_the_required_keys_are_enough(tmp_path: Path) -> None:
    figure = _read(tmp_path, LEAST)
    study = _study(figure)
    assert figure.name == figure.title == study.name == "study"
    assert (study.instances, study.seed, study.bounded) == (10, 1, False)
    assert study.policies == ("fcfs",)
    assert [(p.workload, p.settings) for p in study.points] == [
        ("synthetic", (("pressure", 0.5),)),
        ("synthetic", (("pressure", 0.8),)),
    ]
    drawn = figure.draw(Tables(_rows(study), pl.DataFrame()))
    assert [axis.get_ylabel() for axis in drawn.axes] == [
        *("MinYield", "Efficiency", "Utilization"),
    ]
    # The aimed pressure, not the measured one.
    assert [t.get_text() for t in drawn.axes[-1].get_xticklabels()] == ["0.5", "0.8"]


def test_all_keys_are_read(tmp_path: Path) -> None:
    figure = _read(
        tmp_path,
        'name = "mine-2.b"\ninstances = 3\nseed = 0\nbound = true\n'
        'policies = ["fcfs", "set-10:period=given"]\n'
        '[workload]\nname = "synthetic"\nhorizon = 20000\n'
        f'{SWEEP}n_small = [10]\n[plot]\nx = "n_small"\nmetrics = ["stretch"]\n',
    )
    study = _study(figure)
    assert (study.name, study.instances) == ("mine-2.b", 3)
    assert (study.seed, study.bounded) == (0, True)
    settings = [("horizon", 20000), ("pressure", 0.8), ("n_small", 10)]
    assert list(study.points[1].settings) == settings
    drawn = figure.draw(Tables(_rows(study), pl.DataFrame()))
    # The pressure, which is swept too, has panels of its own.
    assert [axis.get_ylabel() for axis in drawn.axes] == ["Stretch", "Stretch"]
    assert [axis.get_title() for axis in drawn.axes] == [
        *("aimed I/O pressure W = 0.5", "aimed I/O pressure W = 0.8"),
    ]
    assert drawn.axes[0].get_xlabel() == "small applications n_small"


def test_the_scale_makes_no_difference(tmp_path: Path) -> None:
    figure = _read(tmp_path, LEAST)
    assert figure.study(Scale.SMOKE) == figure.study(Scale.PAPER)


def test_the_example_can_be_read() -> None:
    study = _study(read_study(str(EXAMPLE)))
    assert study.name == "short-iterations"
    assert len(study.points) == 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "sweep: the study sweeps no parameter"),
        ('policies = ["fcfs"]\nsweep = {}', "sweep: the study sweeps no parameter"),
        (SWEEP, "policies: [] is not a list of names"),
        (f"speed = 1\n{LEAST}", "unknown key 'speed' (did you mean 'seed'?"),
        (f"name = 3\n{LEAST}", "name: 3 is not a text"),
        (f'name = ""\n{LEAST}', "name: '' cannot be the name"),
        (f'name = "../up"\n{LEAST}', "name: '../up' cannot be the name"),
        (f'name = ".hidden"\n{LEAST}', "name: '.hidden' cannot be the name"),
        (f'name = "studies"\n{LEAST}', "name: 'studies' cannot be the name"),
        (f'name = "index.html"\n{LEAST}', "name: 'index.html' cannot be the name"),
        (f'name = "live"\n{LEAST}', "name: 'live' cannot be the name"),
        (f"instances = 2.5\n{LEAST}", "instances: 2.5 is not a whole number"),
        (f"instances = true\n{LEAST}", "instances: True is not a whole number"),
        (f"instances = 0\n{LEAST}", "instances: 0 is out of range (per point: at lea"),
        (f"instances = -1\n{LEAST}", "instances: -1 is out of range"),
        (f"instances = 50001\n{LEAST}", "in all at most 100000"),
        (f"instances = 1000000000\n{LEAST}", "instances: 1000000000 is out of range"),
        (f"seed = -1\n{LEAST}", "seed: -1 is negative"),
        (f'seed = "1"\n{LEAST}', "seed: '1' is not a whole number"),
        (f"bound = 1\n{LEAST}", "bound: 1 is not true or false"),
        (f'policies = "fcfs"\n{SWEEP}', "policies: 'fcfs' is not a list"),
        (f"policies = [1]\n{SWEEP}", "policies: [1] is not a list of names"),
        (f'policies = ["nope"]\n{SWEEP}', "unknown policy 'nope'"),
        (f'policies = ["fcfs", "fcfs"]\n{SWEEP}', "policies: a policy is listed twice"),
        (f'workload = "synthetic"\n{LEAST}', "workload: 'synthetic' is not a table"),
        (f"{LEAST}[workload]\nhorizon = 1\n", "workload: key 'name' is missing"),
        (f"{LEAST}[workload]\nname = 3\n", "workload.name: 3 is not a text"),
        (f'{LEAST}[workload]\nname = "nope"\n', "unknown workload 'nope'"),
        (
            f'{LEAST}[workload]\nname = "synthetic"\nhorizn = 1\n',
            "unknown workload key 'horizn' (did you mean 'horizon'?",
        ),
        (f"{LEAST}n_smal = [1]\n", "unknown workload key 'n_smal'"),
        (f"{LEAST}n_small = 3\n", "sweep.n_small: 3 is not a list of values"),
        (f"{LEAST}n_small = [3, 4, 3]\n", "sweep.n_small: 3 is listed twice"),
        (f"{LEAST}W = [0.7]\n", "pressure is given twice"),
        (
            f'{LEAST}[workload]\nname = "synthetic"\npressure = 1\n',
            "pressure is given twice",
        ),
        (f"{LEAST}n_small = []\n", "sweep.n_small: [] is not a list of values"),
        (f'{LEAST}n_small = ["many"]\n', "n_small: 'many' is not a"),
        (f"{LEAST}[plot]\ny = 1\n", "plot: unknown key 'y'"),
        (f'plot = "x"\n{LEAST}', "plot: 'x' is not a table"),
        (
            f'{LEAST}[plot]\nx = "noise"\n',
            "plot.x: unknown key of [sweep] 'noise' (known: pressure)",
        ),
        (f"{LEAST}[plot]\nx = 3\n", "plot.x: unknown key of [sweep] '3'"),
        (
            f'{LEAST}[plot]\nmetrics = "stretch"\n',
            "plot.metrics: 'stretch' is not a li",
        ),
        (f"{LEAST}[plot]\nmetrics = []\n", "plot.metrics: [] is not a list of names"),
        (f"{LEAST}[plot]\nmetrics = [3]\n", "plot.metrics: [3] is not a list of names"),
        (
            f'{LEAST}[plot]\nmetrics = ["minyield"]\n',
            "plot.metrics: unknown metric 'minyield' (did you mean 'min_yield'?",
        ),
        ("policies = [", "not TOML: "),
        ("name = 1\nname = 2", "not TOML: "),
        ('{"penstock": 1}', "not TOML: "),
        ("a = " + "[" * 100_000, "not TOML: "),
    ],
)
def test_a_bad_file_gets_one_message_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        _read(tmp_path, text)
    error = str(caught.value)
    assert error.startswith(f"{tmp_path / 's.toml'}: ")
    assert message in error


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("three", "this is an instance (penstock compare reads it"),
        (
            "problem",
            "this is a placement problem (penstock place and penstock compare --p",
        ),
    ],
)
def test_another_kind_of_file_is_named(name: str, kind: str) -> None:
    path = EXAMPLE.with_name(f"{name}.json")
    with pytest.raises(InputError) as caught:
        read_study(str(path))
    assert str(caught.value).startswith(f"{path}: {kind}")


def test_as_many_instances_as_there_may_be(tmp_path: Path) -> None:
    assert _study(_read(tmp_path, f"instances = 50000\n{LEAST}")).instances == 50_000


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not TOML"):
        read_study(str(tmp_path / "s.toml"))


@pytest.mark.parametrize("name", ["missing.toml", "."])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot read the file"):
        read_study(str(tmp_path / name))
