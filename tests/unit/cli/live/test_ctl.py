# SPDX-License-Identifier: MIT
"""``penstock ctl``: the request of every action, mistakes, changes of SLOs."""

from __future__ import annotations

import argparse
from math import inf
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.live import ctl
from penstock.errors import InputError, UnknownNameError
from penstock.live.wire import messages


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    ctl.setup_parser(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "request_message"),
    [
        ("status", messages.GetStatus()),
        ("explain climate", messages.ExplainJob("climate")),
        ("policy fcfs", messages.SetPolicy("fcfs")),
        ("bandwidth 2GB/s", messages.SetBandwidth(2e9)),
        ("limit climate 1MB/s", messages.SetLimit("climate", 1e6)),
        ("limit climate none", messages.SetLimit("climate", inf)),
        ("hint climate 3GB", messages.HintVolume("climate", 3e9)),
        ("on", messages.SetMode("control")),
        ("dry-run", messages.SetMode("dry-run")),
        ("off", messages.SetMode("off")),
    ],
)
def test_every_action_sends_its_request(words: str, request_message: object) -> None:
    assert ctl._request_of(parsed(*words.split())) == request_message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bandwidth", "0 B/s"), "RATE: 0 is not positive"),
        (("bandwidth", "5"), "RATE: '5' has no unit"),
        (("limit", "a", "-1 MB/s"), "RATE: "),
        (("hint", "a", "0 B"), "VOLUME: 0 is not positive"),
    ],
)
def test_quantities_must_be_positive_and_have_units(
    words: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ctl._request_of(parsed(words[0], "--", *words[1:]))


@pytest.mark.parametrize(
    "words",
    [
        "--folder /f --json - ACTION",
        "ACTION --folder /f --json -",
        "--json - ACTION --folder /f",
        "--folder /other --json x ACTION --folder=/f --json=-",
    ],
)
@pytest.mark.parametrize("action", ["status", "limit job 1MB/s", "slo /mnt new.toml"])
def test_options_stand_before_or_after_the_action(words: str, action: str) -> None:
    arguments = parsed(*words.replace("ACTION", action).split())
    assert (arguments.setting_folder, arguments.json) == ("/f", "-")
    assert arguments.settings is None
    assert arguments.action == action.split(maxsplit=1)[0]


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("control", "policy fcfs shares 2 GB/s"),
        ("dry-run", "policy fcfs shares 2 GB/s on paper, and no call is held up"),
        ("off", "no call is held up"),
    ],
)
def test_a_change_of_the_mode_says_what_it_means(mode: str, text: str) -> None:
    status = messages.StatusDocument(mode, "fcfs", 2e9, None, ["n"], 1, [], [])
    assert ctl._effect(status) == text


BEFORE: dict[str, Any] = {
    "scheduler": "sfq",
    "applications": {
        "viz": {"throughput": "1 MB/s", "latency": "1 s"},
        "bulk": {"throughput": "2 MB/s", "latency": "2 s"},
    },
}


def test_one_slo_is_changed_and_the_rest_stays() -> None:
    after = ctl._changed_document(["viz", "5 MB/s", "30 ms"], BEFORE)
    assert after["applications"]["viz"] == {"throughput": "5 MB/s", "latency": "30 ms"}
    assert after["applications"]["bulk"] == BEFORE["applications"]["bulk"]
    assert after["scheduler"] == "sfq"


def test_a_file_replaces_the_whole_document(tmp_path: Path) -> None:
    file = tmp_path / "slo.toml"
    file.write_text('[applications.new]\nthroughput = "1 MB/s"\nlatency = "1 s"\n')
    assert list(ctl._changed_document([str(file)], BEFORE)) == ["applications"]
    file.write_text("")
    with pytest.raises(InputError, match="is empty"):
        ctl._changed_document([str(file)], BEFORE)


def test_wrong_changes_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="vis"):
        ctl._changed_document(["vis", "5 MB/s", "30 ms"], BEFORE)
    with pytest.raises(InputError, match="THROUGHPUT: '5' has no unit"):
        ctl._changed_document(["viz", "5", "30 ms"], BEFORE)
    with pytest.raises(InputError, match="LATENCY: '30' has no unit"):
        ctl._changed_document(["viz", "5 MB/s", "30"], BEFORE)
    with pytest.raises(InputError, match="2 words given"):
        ctl._changed_document(["viz", "5 MB/s"], BEFORE)
