# SPDX-License-Identifier: MIT
"""``penstock view`` and ``penstock compare --view``."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import main
from penstock.experiments.source import read_input
from penstock.model import write_instance
from unit.samples import steady_three

POLICIES = ("--policy", "fcfs", "--policy", "fair-share", "--jobs", "1")
SMALL = ("--set", "horizon=20000", "--set", "applications=6", "--instances", "2")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder, without a desktop."""
    read_input.cache_clear()
    monkeypatch.chdir(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def compare(*words: str) -> None:
    assert main(["compare", *words, *POLICIES, "--json", "result.json"]) == 0


def data(path: str) -> dict[str, Any]:
    """Return the data of a page."""
    page = Path(path).read_text()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert found is not None
    document: dict[str, Any] = json.loads(found[1])
    return document


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the one line that says why a command is refused."""
    capsys.readouterr()
    assert main(list(words)) == 2
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert printed.out == ""
    return line


def changed(**changes: Any) -> None:
    """Change the provenance of the result."""
    document = json.loads(Path("result.json").read_text())
    document["provenance"] |= changes
    Path("result.json").write_text(json.dumps(document))
    read_input.cache_clear()


def test_a_result_of_a_workload(capsys: pytest.CaptureFixture[str]) -> None:
    compare(*SMALL)
    capsys.readouterr()
    assert main(["view", "result.json"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "result.html\n"
    assert "no desktop here" in printed.err
    shown = data("result.html")
    result = json.loads(Path("result.json").read_text())
    first, second = result["instances"]
    assert shown["instances"] == 2
    assert [each["name"] for each in shown["shown"]] == ["instance 0", "instance 1"]
    assert shown["shown"][0]["yields"]["fcfs"] == first["policies"]["fcfs"]["yields"]
    assert set(shown["shown"][0]["pictures"]) == {"fcfs", "fair-share"}
    assert shown["shown"][1]["pictures"] == {}
    assert shown["shown"][1]["bound"] == second["bound"]["min_yield"]
    assert shown["made"].startswith("penstock ")


def test_another_instance_has_the_timelines() -> None:
    compare(*SMALL)
    assert main(["view", "result.json", "--instance", "1", "-o", "page.html"]) == 0
    first, second = data("page.html")["shown"]
    assert first["name"] == "instance 1"
    assert first["pictures"]
    assert not second["pictures"]


def test_compare_writes_the_same_page_as_view() -> None:
    write_instance(steady_three(), "three.json")
    words = ("compare", "three.json", *POLICIES, "--view", "page.html")
    assert main([*words, "--json", "result.json"]) == 0
    assert main(["view", "result.json"]) == 0
    assert Path("page.html").read_bytes() == Path("result.html").read_bytes()
    assert data("page.html")["shown"][0]["pictures"]


def test_an_instance_that_has_changed_has_no_timeline() -> None:
    write_instance(steady_three(), "three.json")
    compare("three.json")
    write_instance(steady_three(21), "three.json")
    read_input.cache_clear()
    assert main(["view", "result.json"]) == 0
    (shown,) = data("result.html")["shown"]
    assert shown["pictures"] == {}
    assert "the instance has changed" in shown["note"]


def test_an_instance_that_is_gone_has_no_timeline(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_instance(steady_three(), "three.json")
    compare("three.json")
    Path("three.json").unlink()
    read_input.cache_clear()
    assert main(["view", "result.json"]) == 0
    assert "the page has no timelines: three.json" in capsys.readouterr().err
    (shown,) = data("result.html")["shown"]
    assert shown["pictures"] == {}
    assert "three.json: cannot read the file" in shown["note"]


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"workload": 5}, "does not say where its instance is from"),
        ({"workload": "no-such"}, "no-such"),
        ({"seed": "1"}, "does not say how its instance was drawn"),
        ({"settings": None}, "does not say how its instance was drawn"),
        ({"seed": 2}, "the instance has changed"),
    ],
)
def test_a_result_with_another_provenance_is_shown(
    changes: dict[str, Any], note: str
) -> None:
    compare(*SMALL)
    changed(**changes)
    assert main(["view", "result.json"]) == 0
    shown = data("result.html")["shown"][0]
    assert shown["pictures"] == {}
    assert note in shown["note"]


def test_a_result_never_imports_a_module(folder: Path) -> None:
    compare(*SMALL)
    (folder / "harmful.py").write_text("raise SystemExit(99)")
    document = json.loads(Path("result.json").read_text())
    for each in document["instances"]:
        each["policies"]["harmful.policy"] = each["policies"]["fcfs"]
    Path("result.json").write_text(json.dumps(document))
    read_input.cache_clear()
    assert main(["view", "result.json"]) == 0
    shown = data("result.html")["shown"][0]
    assert "harmful.policy" in shown["yields"]
    assert set(shown["pictures"]) == {"fcfs", "fair-share"}


def test_the_browser_of_the_desktop_gets_the_page(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    def open_one(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setenv("BROWSER", "some")
    monkeypatch.setattr("webbrowser.open", open_one)
    compare(*SMALL)
    assert main(["view", "result.json", "--no-browser"]) == 0
    assert opened == []
    assert main(["view", "result.json"]) == 0
    assert opened == [(folder / "result.html").as_uri()]


def test_refusals(capsys: pytest.CaptureFixture[str]) -> None:
    compare(*SMALL)
    write_instance(steady_three(), "three.json")
    Path("cut.json").write_text(Path("result.json").read_text()[:-20])
    Path("no.json").write_text("[]")
    assert "no such file" in refused(capsys, "view", "none.json").lower()
    assert "an instance, not a result" in refused(capsys, "view", "three.json")
    assert refused(capsys, "view", "cut.json").startswith("penstock: cut.json: ")
    assert refused(capsys, "view", "no.json").startswith("penstock: no.json: ")
    line = refused(capsys, "view", "result.json", "--instance", "2")
    assert "--instance: there is no instance 2 (the result has 0 to 1)" in line
    line = refused(capsys, "view", "result.json", "-o", "page.png")
    assert "page.png: the page is an HTML file" in line
    line = refused(capsys, "compare", "--view", "page")
    assert "page: the page is an HTML file" in line
    assert not Path("result.html").exists()


def test_a_damaged_result_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    compare(*SMALL)
    document = json.loads(Path("result.json").read_text())
    document["instances"][1]["policies"]["fcfs"]["yields"].pop()
    Path("result.json").write_text(json.dumps(document))
    read_input.cache_clear()
    line = refused(capsys, "view", "result.json")
    assert "damaged: yields are missing" in line
    document["instances"][1]["policies"] = {}
    Path("result.json").write_text(json.dumps(document))
    read_input.cache_clear()
    assert "damaged" in refused(capsys, "view", "result.json")


def test_a_result_without_instances_or_of_another_format_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    facts: dict[str, Any] = {"penstock": 1, "provenance": {}, "instances": []}
    Path("result.json").write_text(json.dumps(facts))
    line = refused(capsys, "view", "result.json")
    assert "result.json: this result of penstock compare has no instances" in line
    read_input.cache_clear()
    Path("result.json").write_text(json.dumps(facts | {"penstock": 99}))
    line = refused(capsys, "view", "result.json")
    assert "penstock: format 99 is not known (this version reads format 1)" in line


def test_missing_folders_of_the_page_are_made() -> None:
    write_instance(steady_three(), "three.json")
    compare("three.json")
    page = "new/pages/three.html"
    assert main(["view", "result.json", "-o", page, "--no-browser"]) == 0
    assert Path(page).is_file()
