# SPDX-License-Identifier: MIT
"""Instance files: exact round trips, and one message with a place per mistake."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings

from penstock.errors import InputError
from penstock.model import (
    Instance,
    instance_to_document,
    read_instance,
    write_instance,
)
from penstock.model.files import instance_from_document
from unit.samples import document, instances, make, pair

Change = Callable[[dict[str, Any]], None]


def _read(tmp_path: Path, content: Any) -> Instance:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(content))
    return read_instance(path)


def _assert_equal(one: Instance, other: Instance) -> None:
    assert one.digest() == other.digest()
    for a, b in zip(one.applications, other.applications, strict=True):
        assert a.work.tobytes() == b.work.tobytes()
        assert a.volume.tobytes() == b.volume.tobytes()


# --- There and back ---------------------------------------------------------------


@given(instances())
def test_a_document_gives_the_same_instance_again(instance: Instance) -> None:
    text = json.dumps(instance_to_document(instance))
    _assert_equal(instance_from_document(json.loads(text)), instance)


@pytest.mark.parametrize("ending", ["json", "json.gz"])
@settings(max_examples=30)
@given(instance=instances())
def test_a_file_gives_the_same_instance_again(
    tmp_path_factory: pytest.TempPathFactory, ending: str, instance: Instance
) -> None:
    path = tmp_path_factory.getbasetemp() / f"round-trip.{ending}"
    write_instance(instance, path)
    _assert_equal(read_instance(path), instance)


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_the_same_instance_is_written_as_the_same_bytes(
    tmp_path: Path, ending: str
) -> None:
    for name in ("a", "b"):
        write_instance(pair(), tmp_path / f"{name}.{ending}")
    one, other = (tmp_path / f"{name}.{ending}" for name in ("a", "b"))
    assert one.read_bytes() == other.read_bytes()


def test_a_gz_file_is_compressed(tmp_path: Path) -> None:
    write_instance(pair(), tmp_path / "a.json")
    write_instance(pair(), tmp_path / "a.json.gz")
    plain = (tmp_path / "a.json").read_bytes()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == plain
    assert json.loads(plain)["penstock"] == 1


def test_a_path_may_be_text(tmp_path: Path) -> None:
    write_instance(pair(), str(tmp_path / "a.json"))
    _assert_equal(read_instance(str(tmp_path / "a.json")), pair())


def test_units_in_strings(tmp_path: Path) -> None:
    instance = _read(tmp_path, document())
    assert instance.platform.bandwidth == 10 * 2.0**30
    assert instance.platform.node_bandwidth == 2.0**30
    assert (instance.window.begin, instance.window.end) == (0.0, 3600.0)
    climate, fusion = instance.applications
    assert climate.work.tolist() == [600.0, 7200.0]
    assert climate.volume.tolist() == [500 * 2.0**30]
    assert fusion.work.tolist() == [0.0, 0.0, 7200.0]
    assert fusion.volume.tolist() == [1024.0, 1000.0]
    assert (fusion.release, fusion.done_work, fusion.period) == (-1200.0, 1080.0, 60.0)
    assert (fusion.user, fusion.group) == ("ada", "physics")


def test_start_is_the_release_without_a_history() -> None:
    content = document()
    content["applications"][0]["release"] = "5 min"
    assert instance_from_document(content).applications[0].start == 300.0


@pytest.mark.parametrize("history", [{"done_work": 10}, {"done_volume": "1 MiB"}])
def test_start_is_the_begin_of_the_window_with_a_history(history: Any) -> None:
    content = document()
    content["window"] = ["30 min", "1 h"]
    content["applications"][0].update(history)
    assert instance_from_document(content).applications[0].start == 1800.0


def test_a_history_of_nothing_is_none() -> None:
    content = document()
    content["window"] = ["30 min", "1 h"]
    content["applications"][0].update({"done_work": 0, "done_volume": 0})
    assert instance_from_document(content).applications[0].start == 0.0


def test_start_may_be_given() -> None:
    content = document()
    content["applications"][0]["start"] = "1 min"
    assert instance_from_document(content).applications[0].start == 60.0


def test_optional_keys_are_left_out_where_they_say_nothing() -> None:
    written = instance_to_document(pair())["applications"][0]
    assert set(written) == {"name", "nodes", "release", "start", "phases"}


# --- Mistakes ---------------------------------------------------------------------


def _put(*path: Any) -> Change:
    """Return a function that sets the place `path[:-1]` of a document to `path[-1]`."""
    *outer, key, value = path

    def change(content: Any) -> None:
        for step in outer:
            content = content[step]
        content[key] = value

    return change


def _drop(*path: Any) -> Change:
    *outer, key = path

    def change(content: Any) -> None:
        for step in outer:
            content = content[step]
        del content[key]

    return change


def _app(number: int, key: str, value: Any) -> Change:
    return _put("applications", number, key, value)


MISTAKES: list[tuple[str, Change, str]] = [
    ("top-missing", _drop("window"), "key 'window' is missing"),
    ("top-unknown", _put("windows", 1), "unknown key 'windows' (did you mean 'window'"),
    ("format", _put("penstock", 2), "penstock: format 2 is not known"),
    ("format-text", _put("penstock", "1"), "penstock: format '1' is not known"),
    ("format-true", _put("penstock", True), "penstock: format True is not known"),
    ("platform-list", _put("platform", []), "platform: not an object"),
    (
        "platform-missing",
        _drop("platform", "bandwidth"),
        "platform: key 'bandwidth' is missing",
    ),
    (
        "platform-unknown",
        _put("platform", "nodes", 3),
        "platform: unknown key 'nodes'",
    ),
    (
        "bandwidth-zero",
        _put("platform", "bandwidth", 0),
        "platform.bandwidth: 0.0 is not a positive bandwidth",
    ),
    (
        "bandwidth-unit",
        _put("platform", "node_bandwidth", "3 GiB"),
        "platform.node_bandwidth: unknown unit 'GiB'",
    ),
    ("period-zero", _app(1, "period", 0), "applications[1].period: 0 is not positive"),
    (
        "period-text-zero",
        _app(0, "period", "0 s"),
        "applications[0].period: '0 s' is not positive (leave it out",
    ),
    (
        "target-of-none",
        _app(0, "targets", [5]),
        "applications[0].targets: some of [5] do not exist (use target 0,",
    ),
    ("window-object", _put("window", {}), "window: {} is not a window"),
    ("window-short", _put("window", [0]), "window: [0] is not a window"),
    ("window-empty", _put("window", [5, 5]), "window: the window [5.0, 5.0] is empty"),
    ("window-nan", _put("window", [0, "nan"]), "window[1]: 'nan' is not a finite time"),
    ("window-null", _put("window", [None, 1]), "window[0]: None is not a time"),
    ("applications-object", _put("applications", {}), "applications: not a list"),
    ("applications-none", _put("applications", []), "applications: no application"),
    (
        "application-text",
        _put("applications", 1, "fusion"),
        "applications[1]: not an object",
    ),
    (
        "application-missing",
        _drop("applications", 1, "nodes"),
        "applications[1]: key 'nodes' is missing",
    ),
    (
        "application-unknown",
        _app(1, "phase", []),
        "applications[1]: unknown key 'phase' (did you mean 'phases'",
    ),
    ("name-empty", _app(0, "name", ""), "applications[0].name: '' is not a name"),
    ("name-number", _app(0, "name", 5), "applications[0].name: 5 is not a name"),
    (
        "name-twice",
        _app(1, "name", "climate"),
        "applications[1].name: the name 'climate' is already used by applications[0]",
    ),
    (
        "user-null",
        _app(1, "user", None),
        "applications[1].user: None is not a name",
    ),
    (
        "nodes-zero",
        _app(1, "nodes", 0),
        "applications[1].nodes: 0 is not a number of nodes",
    ),
    (
        "nodes-float",
        _app(1, "nodes", 2.0),
        "applications[1].nodes: 2.0 is not a number of nodes",
    ),
    (
        "nodes-true",
        _app(1, "nodes", True),
        "applications[1].nodes: True is not a number of nodes",
    ),
    (
        "nodes-huge",
        _app(1, "nodes", 10**30),
        "applications[1].nodes: 1000000000000000000000000000000 is not a number",
    ),
    (
        "release-text",
        _app(0, "release", "soon"),
        "applications[0].release: 'soon' is not a time",
    ),
    (
        "release-late",
        _app(0, "release", "1 h"),
        "applications[0]: 'climate' is released at 3600",
    ),
    (
        "release-huge",
        _app(0, "release", 10**400),
        "applications[0].release: 1000",
    ),
    (
        "start-early",
        _app(0, "start", -1),
        "applications[0].start: start -1.0 is earlier than release 0.0",
    ),
    (
        "history-negative",
        _app(1, "done_work", -1),
        "applications[1].done_work: -1.0 is negative or not finite",
    ),
    (
        "history-unit",
        _app(1, "done_volume", "1 s"),
        "applications[1].done_volume: unknown unit 's'",
    ),
    (
        "history-too-good",
        _app(1, "done_work", "1 h"),
        "applications[1]: done_work and done_volume make 3600 s of progress",
    ),
    (
        "phases-object",
        _app(0, "phases", {}),
        "applications[0].phases: not a list",
    ),
    (
        "phase-text",
        _put("applications", 0, "phases", 1, "io"),
        "applications[0].phases[1]: 'io' is not a phase",
    ),
    (
        "phase-long",
        _put("applications", 0, "phases", 1, ["io", 1, 2]),
        "applications[0].phases[1]: ['io', 1, 2] is not a phase",
    ),
    (
        "phase-kind",
        _put("applications", 0, "phases", 2, ["wrok", 1]),
        "applications[0].phases[2]: unknown kind of phase 'wrok' (did you mean 'work'",
    ),
    (
        "phase-kind-list",
        _put("applications", 0, "phases", 2, [["io"], 1]),
        "applications[0].phases[2]: unknown kind of phase",
    ),
    (
        "phase-negative",
        _put("applications", 1, "phases", 0, ["io", -1]),
        "applications[1].phases[0]: -1.0 is negative or not finite",
    ),
    (
        "phase-true",
        _put("applications", 1, "phases", 0, ["io", True]),
        "applications[1].phases[0]: True is not a volume",
    ),
    (
        "phase-unit",
        _put("applications", 1, "phases", 0, ["io", "3 min"]),
        "applications[1].phases[0]: unknown unit 'min'",
    ),
    (
        "targets-text",
        _app(1, "targets", [0, "x"]),
        "applications[1].targets: [0, 'x'] is not a list of storage targets",
    ),
    (
        "sharing",
        _put("platform", "sharing", "tiem"),
        "platform.sharing: unknown sharing 'tiem' (did you mean 'time'?",
    ),
    (
        "profile-number",
        _app(1, "bandwidth", 3),
        "applications[1].bandwidth: not a list",
    ),
    (
        "profile-empty",
        _app(1, "bandwidth", []),
        "applications[1].bandwidth: the list of bandwidths is empty",
    ),
    (
        "profile-gap",
        _app(1, "bandwidth", [1, None, 3]),
        "applications[1].bandwidth[1]: the bandwidth is missing",
    ),
    (
        "profile-zero",
        _app(1, "bandwidth", [1, 2, 0]),
        "applications[1].bandwidth[2]: 0 is not a positive bandwidth",
    ),
    (
        "profile-negative",
        _app(1, "bandwidth", [1, "-2 GiB/s"]),
        "applications[1].bandwidth[1]: '-2 GiB/s' is not a positive bandwidth",
    ),
    (
        "phase-nan",
        _put("applications", 1, "phases", 2, ["work", "nan"]),
        "applications[1].phases[2]: 'nan' is not a finite time",
    ),
]


@pytest.mark.parametrize(
    ("change", "message"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES]
)
def test_every_mistake_gives_one_message_with_its_place(
    tmp_path: Path, change: Change, message: str
) -> None:
    content = document()
    change(content)
    with pytest.raises(InputError) as caught:
        _read(tmp_path, content)
    text = str(caught.value)
    assert text.startswith(f"{tmp_path / 'file.json'}: {message}")
    assert "\n" not in text


@pytest.mark.parametrize("content", [[], "text", 3, None])
def test_a_document_is_an_object(tmp_path: Path, content: Any) -> None:
    with pytest.raises(InputError) as caught:
        _read(tmp_path, content)
    assert str(caught.value).startswith(f"{tmp_path / 'file.json'}: not an object")


def test_the_same_mistake_of_several_is_always_reported(tmp_path: Path) -> None:
    content = document()
    for key in "zyxwvu":
        content["applications"][0][key] = 1
    with pytest.raises(InputError, match="unknown key 'u'"):
        _read(tmp_path, content)


def test_an_unreadable_instance_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the file: No such file"):
        read_instance(tmp_path / "none.json")


def test_a_failed_write_leaves_the_instance_file_alone(tmp_path: Path) -> None:
    write_instance(pair(), tmp_path / "a.json")
    before = (tmp_path / "a.json").read_bytes()
    with pytest.raises(AttributeError):
        write_instance(cast("Instance", None), tmp_path / "a.json")
    assert (tmp_path / "a.json").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_names_with_any_character_survive(tmp_path: Path) -> None:
    content = document()
    content["applications"][0]["name"] = 'Grâce "x" \\ \xa0 火'
    instance = _read(tmp_path, content)
    write_instance(instance, tmp_path / "b.json")
    _assert_equal(read_instance(tmp_path / "b.json"), instance)
    assert make(*instance.applications[:1], window=(0, 9)).applications
