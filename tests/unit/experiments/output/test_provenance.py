# SPDX-License-Identifier: MIT
"""Provenance: version, command line and facts."""

from __future__ import annotations

import sys
from importlib.metadata import version

import pytest

import penstock
from penstock.experiments.output.provenance import command_line, printable, provenance


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["/usr/bin/penstock", "compare"], "penstock compare"),
        (["/x/penstock/__main__.py", "bound", "a.json"], "penstock bound a.json"),
        (
            ["penstock", "compare", "my file.json", "--policy", "set-10:a=1,b=2"],
            "penstock compare 'my file.json' --policy set-10:a=1,b=2",
        ),
        (["penstock", "compare", "$HOME"], "penstock compare '$HOME'"),
        (["penstock", "study", "s.toml", "-o", "out"], "penstock study s.toml"),
        (["penstock", "study", "-oout", "s.toml"], "penstock study s.toml"),
        (["penstock", "study", "--output=a b", "s.toml"], "penstock study s.toml"),
        (
            ["penstock", "compare", "--jobs", "2", "--open", "--dask=local"],
            "penstock compare --open",
        ),
        (["penstock", "compare", "--jobs"], "penstock compare"),
        (["penstock", "compare", "\udcff.json"], "penstock compare '\\xff.json'"),
    ],
)
def test_the_command_as_one_could_type_it_again(
    monkeypatch: pytest.MonkeyPatch, argv: list[str], command: str
) -> None:
    monkeypatch.setattr(sys, "argv", argv)
    assert command_line() == command


def test_version_command_and_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["penstock", "compare"])
    assert provenance(seed=3, workload="synthetic") == {
        "version": version("penstock"),
        "command": "penstock compare",
        "seed": 3,
        "workload": "synthetic",
    }
    assert penstock.__version__ == version("penstock")


def test_texts_that_any_file_can_hold() -> None:
    facts = provenance(file="a\udcfe", settings=["\udcff=é"], seed=1, scale=None)
    assert facts["file"] == "a\\xfe"
    assert facts["settings"] == ["\\xff=é"]
    assert (facts["seed"], facts["scale"]) == (1, None)
    assert printable({"\udcff": ("x", {"y": "\udc80"})}) == {
        "\\xff": ["x", {"y": "\\x80"}]
    }


def test_no_date_no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["penstock"])
    assert set(provenance()) == {"version", "command"}
