# SPDX-License-Identifier: MIT
"""Figures: same data, same bytes; and shares that add up to the volume."""

from __future__ import annotations

import itertools
import warnings
from colorsys import rgb_to_hsv
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from penstock.analysis.shares import shares_between
from penstock.errors import InputError
from penstock.experiments.comparison import compare
from penstock.experiments.output.plots import (
    colour_of,
    comparison_chart,
    save_figure,
    timeline,
)
from penstock.experiments.runners.executors import Inline
from penstock.experiments.source import Source
from penstock.experiments.study import Point, Row
from penstock.model import Instance, Platform, Sharing, Window
from penstock.policies import POLICIES, get_policy
from penstock.sim import simulate
from unit.samples import app, make, pair, steady_three

FACTS = {"version": "1.0", "command": "penstock compare <x> & y"}
#: Bandwidth on 1, 2 and 3 targets.
PROFILES = ([3.0], [2.0, 3.0], [2.0, 3.0, 6.0])
MAGIC = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    source = Source(Point("synthetic", (("horizon", 20_000.0),)), count=3, seed=3)
    names = ("fcfs", "fair-share", "set-10:initial=weight")
    return compare(source, [*map(get_policy, names)], Inline())


def _many() -> Any:
    """Return an instance with too many applications for a stacked timeline."""
    phases = [("work", 1.0), ("io", 1.0)] * 5
    return make(*(app(f"a{n}", *phases, ("work", 99.0)) for n in range(15)))


def _figure(kind: str, rows: list[Row]) -> Any:
    if kind == "comparison":
        return comparison_chart(rows)
    if kind == "one-instance":
        return comparison_chart([row for row in rows if row["instance"] == 0])
    instance = steady_three() if kind == "stacked" else _many()
    return timeline([simulate(instance, p, record=True) for p in ("fcfs", "set-10")])


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        *(("comparison", "svg"), ("comparison", "png"), ("comparison", "pdf")),
        *(("stacked", "svg"), ("stacked", "png"), ("rows", "svg"), ("rows", "png")),
    ],
)
def test_the_same_data_give_the_same_bytes(
    tmp_path: Path, rows: list[Row], kind: str, ending: str
) -> None:
    paths = [tmp_path / f"{name}.{ending}" for name in "ab"]
    for path in paths:
        save_figure(_figure(kind, rows), str(path), FACTS)
    one, other = (path.read_bytes() for path in paths)
    assert one == other
    assert one.startswith(MAGIC[ending])


@pytest.mark.parametrize("kind", ["comparison", "one-instance", "stacked", "rows"])
def test_an_svg_is_complete_and_names_its_command(
    tmp_path: Path, rows: list[Row], kind: str
) -> None:
    path = tmp_path / "a.SVG"
    save_figure(_figure(kind, rows), str(path), FACTS)
    root = ET.fromstring(path.read_bytes())  # noqa: S314 - our own file
    text = " ".join(root.itertext())
    assert root.tag.endswith("svg")
    assert "penstock 1.0: penstock compare <x> & y" in text


def test_texts_of_the_figures(tmp_path: Path, rows: list[Row]) -> None:
    texts = {}
    for kind in ("comparison", "stacked"):
        save_figure(_figure(kind, rows), str(tmp_path / "a.svg"), FACTS)
        texts[kind] = (tmp_path / "a.svg").read_text()
    for word in ("MinYield", "Efficiency", "no scheduler exceeds", "set-10:initial"):
        assert word in texts["comparison"]
    for word in ("time (s)", "fcfs", "set-10", ">a<", ">b<", ">c<"):
        assert word in texts["stacked"]


@pytest.mark.parametrize("name", ["a.foo", "a", "a.jpeg", "svg", ".svg"])
def test_another_ending_is_refused_and_no_file_made(
    tmp_path: Path, rows: list[Row], name: str
) -> None:
    path = str(tmp_path / name)
    with pytest.raises(InputError, match=r"use \.svg, \.png or \.pdf"):
        save_figure(comparison_chart(rows), path, FACTS)
    assert list(tmp_path.iterdir()) == []


def _words(rows: list[Row]) -> list[str]:
    """Return all texts inside the panel of a comparison."""
    return [text.get_text() for text in comparison_chart(rows).axes[0].texts]


def test_without_a_bound_no_bound_is_drawn(rows: list[Row]) -> None:
    bare = [{**row, "bound": None} for row in rows]
    assert not [word for word in _words(bare) if "no scheduler" in word]
    bound = np.mean([row["bound"].min_yield for row in rows if row["policy"] == "fcfs"])
    assert f"no scheduler exceeds a MinYield of {bound:.3f}" in _words(rows)


def _row(policy: str, min_yield: float, efficiency: float) -> Row:
    facts = {"instance": 0, "pressure": 0.8, "bound": None}
    return {**facts, "policy": policy, "min_yield": min_yield, "efficiency": efficiency}


def test_policies_are_sorted_and_their_values_written() -> None:
    rows = [_row("fcfs", 0.7, 0.9), _row("set-10", 0.8, 0.95), _row("mine", 0.9, 0.8)]
    panel = comparison_chart(rows).axes[0]
    names = [tick.get_text() for tick in panel.get_yticklabels()]
    assert names == ["mine", "set-10", "fcfs"]
    assert panel.yaxis_inverted()
    assert _words(rows)[:6] == ["0.900", "0.800", "0.800", "0.950", "0.700", "0.900"]


def test_the_means_of_the_instances_are_drawn() -> None:
    rows = [_row("fcfs", 0.7, 0.9), _row("fcfs", 0.9, 0.95)]
    assert _words(rows)[:2] == ["0.800", "0.925"]


def test_a_policy_far_behind_does_not_stretch_the_axis() -> None:
    near = [_row(name, 0.96, 0.97) for name in ("a", "b", "c")]
    figure = comparison_chart([*near, _row("far", 0.2, 0.95)])
    low, high = figure.axes[0].get_xlim()
    assert 0.85 < low < 0.95
    assert 1.0 < high < 1.05
    assert [line.get_marker() for line in figure.axes[0].lines].count("<") == 1
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "MinYield further left" in labels


def test_percentiles_are_explained_only_if_there_are_several_instances() -> None:
    one = [_row("fcfs", 0.7, 0.9)]
    for rows, explained in ((one, False), ([*one, _row("fcfs", 0.9, 0.95)], True)):
        entries = comparison_chart(rows).legends[0].get_texts()
        labels = [entry.get_text() for entry in entries]
        assert ("its 10th to 90th percentile" in labels) is explained


def test_neighbours_in_a_timeline_have_different_hues() -> None:
    phases = ("work", 1.0), ("io", 1.0), ("work", 99.0)
    instance = make(*(app(f"a{n}", *phases) for n in range(12)))
    figure = timeline([simulate(instance, "fcfs", record=True)])
    areas: list[Any] = list(figure.axes[0].collections)
    colours = [tuple(area.get_facecolor()[0]) for area in areas]
    assert len(set(colours)) == 12
    hues = [rgb_to_hsv(*colour[:3]) for colour in colours]
    for (hue, grey, _), (other, other_grey, _) in pairwise(hues):
        apart = abs(hue - other)
        assert min(apart, 1 - apart) > 0.04 or min(grey, other_grey) < 0.1


@pytest.mark.parametrize(("count", "named"), [(15, 15), (130, 44)])
def test_the_rows_of_a_timeline_are_named(count: int, named: int) -> None:
    phases = ("work", 1.0), ("io", 1.0), ("work", 99.0)
    instance = make(*(app(f"a{n}", *phases) for n in range(count)))
    figure = timeline([simulate(instance, "fcfs", record=True)])
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(labels) == named
    assert labels[:2] == ["a0", f"a{-(-count // 60)}"]


def test_every_efficiency_is_inside_the_axis() -> None:
    rows = [_row("a", 0.99, 0.99), _row("b", 0.99, 0.99), _row("c", 0.1, 0.2)]
    assert comparison_chart(rows).axes[0].get_xlim()[0] < 0.2


def test_a_comparison_without_delays_is_drawn() -> None:
    low, high = comparison_chart([_row("fcfs", 1.0, 1.0)]).axes[0].get_xlim()
    assert low < 1.0 < high


ODD_NAMES = ("模型 🌊", "x" * 300, "_hidden", r"$\nosuch{$", "a$b")


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_any_name_is_drawn_without_a_warning(tmp_path: Path, ending: str) -> None:
    phases = ("work", 1.0), ("io", 1.0), ("work", 99.0)
    instance = make(*(app(name, *phases) for name in ODD_NAMES))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = timeline([simulate(instance, "fcfs", record=True)])
        save_figure(figure, str(tmp_path / f"a.{ending}"), FACTS)
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == ["模型 🌊", f"{'x' * 39}…", "_hidden", r"\$\nosuch{\$", r"a\$b"]


# --- Shares -----------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fcfs", "fair-share", "set-10"])
@pytest.mark.parametrize("columns", [1, 7, 1200])
def test_shares_integrate_to_the_volume(policy: str, columns: int) -> None:
    instance = steady_three()
    run = simulate(instance, policy, record=True)
    window = instance.window
    edges = np.linspace(window.begin, window.end, columns + 1)
    shares = shares_between(run, edges)
    assert shares.shape == (3, columns)
    volumes = shares @ np.diff(edges) * instance.platform.bandwidth
    assert volumes == pytest.approx(run.volume, rel=1e-9)
    assert shares.min() >= -1e-9
    assert shares.sum(axis=0).max() <= 1 + 1e-9


@pytest.mark.parametrize("sharing", Sharing)
@pytest.mark.parametrize("policy", ["fcfs", "fair-share"])
def test_shares_integrate_to_the_volume_on_many_targets(
    sharing: Sharing, policy: str
) -> None:
    instance = _striped(sharing)
    run = simulate(instance, policy, record=True)
    edges = np.linspace(0.0, 40.0, 801)
    shares = shares_between(run, edges)
    platform = instance.platform
    whole = np.full(3, platform.bandwidth)
    if sharing is Sharing.TIME:
        used = np.array([len(a.targets) for a in instance.applications])
        whole = instance.caps / used * platform.targets
        # The busy time of the targets is the sum of the shares of the applications.
        busy = shares @ np.diff(edges) * platform.targets
        assert busy.sum() == pytest.approx(run.occupied.sum(), rel=1e-9)
    assert shares @ np.diff(edges) * whole == pytest.approx(run.volume, rel=1e-9)
    assert shares.sum(axis=0).max() <= 1 + 1e-9


def _striped(sharing: Sharing) -> Instance:
    """Return three applications on one, two and three of three targets."""
    applications = tuple(
        app(
            name,
            *[("work", 1.0), ("io", 5.0)] * 30,
            nodes=4,
            targets=tuple(range(count)),
            profile=profile if sharing is Sharing.TIME else [],
        )
        for name, count, profile in zip("abc", (1, 2, 3), PROFILES, strict=True)
    )
    return Instance(Platform(6.0, 2.0, 3, sharing), Window(0.0, 40.0), applications)


def test_one_that_holds_all_targets_holds_all() -> None:
    alone = app("a", ("io", 100.0), ("work", 100.0), targets=(0, 1))
    instance = Instance(Platform(10.0, 10.0, 2), Window(0.0, 20.0), (alone,))
    run = simulate(instance, "fcfs", record=True)
    assert shares_between(run, np.array([0.0, 10.0, 20.0])).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("sharing", "label"),
    [(Sharing.BANDWIDTH, "bandwidth"), (Sharing.TIME, "time of the targets")],
)
def test_the_axis_of_a_timeline_names_the_shared_quantity(
    sharing: Sharing, label: str
) -> None:
    figure = timeline([simulate(_striped(sharing), "fcfs", record=True)])
    assert figure.axes[0].get_ylabel() == f"share of {label}"


def test_shares_by_hand() -> None:
    run = simulate(pair(), "fcfs", record=True)
    shares = shares_between(run, np.arange(11.0))
    assert shares.tolist() == [
        [0, 0, 1, 1, 1, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 1, 1, 1, 0, 0],
    ]
    shares = shares_between(run, np.array([0.0, 4.0, 6.0]))
    assert shares.tolist() == [[0.5, 0.5], [0, 0.5]]


def test_an_application_without_io_has_no_share() -> None:
    instance = make(app("a", ("work", 20.0)), app("b", ("io", 20.0)))
    run = simulate(instance, "fcfs", record=True)
    assert shares_between(run, np.array([0.0, 10.0])).tolist() == [[0.0], [1.0]]


def test_a_run_without_a_record_is_refused() -> None:
    with pytest.raises(ValueError, match="not recorded"):
        timeline([simulate(pair(), "fcfs")])


# --- Colours ----------------------------------------------------------------------


def test_every_policy_of_the_table_has_its_own_colour() -> None:
    colours = {name: colour_of(name) for name in POLICIES}
    for one, other in itertools.combinations(POLICIES, 2):
        assert colours[one] != colours[other]


def test_other_policies_have_a_colour_too() -> None:
    assert colour_of("set-10:initial=weight") == colour_of("set-10")
    assert colour_of("mine.policy") == colour_of("mine.policy")
    for name in ("mine.policy", "mine.policy:x=1"):
        assert colour_of(name).startswith("#")


def test_a_figure_below_a_file_is_reported(tmp_path: Path, rows: list[Row]) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write the file"):
        save_figure(comparison_chart(rows), str(tmp_path / "file" / "a.svg"), FACTS)


def test_a_timeline_ends_with_the_last_application() -> None:
    instance = make(app("a", ("work", 1.0), ("io", 1.0)), window=(0.0, 3600.0))
    run = simulate(instance, "fcfs", record=True, steady=False)
    assert timeline([run]).axes[0].get_xlim() == (0.0, float(run.ended[0]))
    assert run.ended[0] < 3600.0
