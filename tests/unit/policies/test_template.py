# SPDX-License-Identifier: MIT
"""The template for new policies: it runs as it is, and keeps the contract."""

from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path

import pytest

from penstock.policies import _template, get_policy
from penstock.sim import simulate
from support.views import Scene, decide, make_view, random_scene, used_memory
from unit.samples import steady_three

NAME = "penstock.policies._template"


def test_it_is_selected_by_its_dotted_name() -> None:
    policy = get_policy(f"{NAME}:patience=0.1")
    assert policy.allocate is _template.allocate
    assert policy.parameters.tolist() == [0.1]
    assert policy.label == f"{NAME}:patience=0.1"
    assert get_policy(NAME).parameters.tolist() == [0.2]


def test_a_copy_of_it_runs_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(Path(_template.__file__), tmp_path / "my_copy.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    try:
        copy_run = simulate(steady_three(), "my_copy.allocate:patience=0.1")
    finally:
        sys.modules.pop("my_copy", None)
    template_run = simulate(steady_three(), f"{NAME}:patience=0.1")
    assert copy_run.lost.tobytes() == template_run.lost.tobytes()


@pytest.mark.parametrize("patience", [0.0, 0.1, 0.2, 0.9])
def test_compiled_and_interpreted_give_the_same_bits(patience: float) -> None:
    instance, name = steady_three(), f"{NAME}:patience={patience}"
    compiled = simulate(instance, name, validate=True)
    plain = simulate(instance, name, validate=True, compiled=False)
    assert compiled.lost.tobytes() == plain.lost.tobytes()
    assert compiled.decisions == plain.decisions


@pytest.mark.parametrize("seed", range(40))
def test_rates_are_lawful_and_leave_nothing_unused(seed: int) -> None:
    scene = random_scene(seed)
    rates, wake = decide(NAME, scene)
    wanted = sum(scene.cap[i] for i in scene.active_indices)
    for i, rate in enumerate(rates):
        assert 0 <= rate <= scene.cap[i]
        assert i in scene.active_indices or rate == 0
    assert math.fsum(rates) == pytest.approx(min(wanted, scene.capacity), rel=1e-12)
    assert wake == math.inf


@pytest.mark.parametrize("seed", range(10))
def test_a_decision_depends_on_nothing_but_the_view(seed: int) -> None:
    scene = random_scene(seed)
    parameters = get_policy(NAME).parameters.tolist()
    first = make_view(scene, parameters, dirt=1)
    expected = decide(NAME, scene, view=first)
    assert decide(NAME, scene, dirt=2) == expected
    again = used_memory(first, make_view(scene, parameters, dirt=3))
    assert decide(NAME, scene, view=again) == expected


def test_most_nodes_first_but_for_the_impatient() -> None:
    calm = Scene(cap=[1.0, 1.0, 1.0], nodes=[2, 8, 4], lost=[20.0, 0.0, 0.0])
    assert decide(NAME, calm)[0] == [0.0, 1.0, 0.0]
    hurt = Scene(cap=[1.0, 1.0, 1.0], nodes=[2, 8, 4], lost=[20.1, 0.0, 0.0])
    assert decide(NAME, hurt)[0] == [1.0, 0.0, 0.0]
