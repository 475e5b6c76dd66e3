# SPDX-License-Identifier: MIT
"""``penstock reproduce`` and ``penstock study``: every figure, as a user makes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from penstock.cli import main
from penstock.experiments.claims import Outcome
from penstock.papers import FIGURES, get_figure
from support.waiting import until

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
EXAMPLE = Path(__file__).parents[2] / "examples" / "study.toml"


def _run(*arguments: object, cwd: Path) -> Any:
    return subprocess.run(
        [PENSTOCK, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def _done(*arguments: object, cwd: Path) -> str:
    """Run ``penstock``, which must succeed; return its standard output."""
    done = _run(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return str(done.stdout)


def _refused(*arguments: object, cwd: Path) -> str:
    """Run ``penstock``, which must refuse in one line; return the line."""
    done = _run(*arguments, cwd=cwd)
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return str(line)


def _files(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return content and time of writing of all files."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _assert_complete(home: Path) -> dict[str, Any]:
    """Check that the files of a figure are there and valid; return its record."""
    name = home.name
    made = {f"{name}.{kind}" for kind in ("svg", "png", "parquet", "csv")}
    assert {path.name for path in home.iterdir()} == {
        *(*made, "claims.json", "index.html"),
    }
    root = ET.parse(home / f"{name}.svg").getroot()  # noqa: S314 - our own
    assert root.tag.endswith("svg")
    assert (home / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    table = pl.read_parquet(home / f"{name}.parquet")
    assert table.height > 0
    assert pl.read_csv(home / f"{name}.csv").height == table.height
    record: dict[str, Any] = json.loads((home / "claims.json").read_text())
    facts = json.loads(pl.read_parquet_metadata(home / f"{name}.parquet")["penstock"])
    assert facts == record["provenance"]
    assert facts["command"]
    page = (home / "index.html").read_text()
    assert "<svg" in page
    assert page.count('class="claim ') == len(record["claims"])
    return record


# --- The command ------------------------------------------------------------------


def test_the_list_names_every_figure(tmp_path: Path) -> None:
    lines = _done("reproduce", "--list", cwd=tmp_path).splitlines()
    assert [line.split()[0] for line in lines] == list(FIGURES)
    for line, entry in zip(lines, FIGURES.values(), strict=True):
        assert line.endswith(f"  {entry.title} ({entry.source})")


def test_an_unknown_figure_lists_the_known_ones(tmp_path: Path) -> None:
    line = _refused("reproduce", "p1-fig22", cwd=tmp_path)
    assert "unknown figure 'p1-fig22' (did you mean 'p1-fig2'?" in line
    for name in (*FIGURES, "all"):
        assert name in line
    assert list(tmp_path.iterdir()) == []


def test_no_figure_at_all(tmp_path: Path) -> None:
    line = _refused("reproduce", cwd=tmp_path)
    assert line == "penstock: no figure is named (see penstock reproduce --list)"


def test_a_figure_from_end_to_end_and_again(tmp_path: Path) -> None:
    command = ("reproduce", "p3-fig1b", "-o", "made")
    output = _done(*command, cwd=tmp_path)
    record = _assert_complete(tmp_path / "made" / "p3-fig1b")
    assert record["provenance"]["command"] == "penstock reproduce p3-fig1b"
    assert "p3-fig1b: Stretch of IO-SETS" in output
    lines = [line.split(maxsplit=1) for line in output.splitlines()]
    for claim in record["claims"]:
        words = "holds " if claim["holds"] else "DOES NOT HOLD "
        assert f"{words} {claim['says']}".split(maxsplit=1) in lines
    assert output.endswith("\npages: made/index.html, made/what-holds.html\n")
    assert "p3-fig1b/index.html" in (tmp_path / "made" / "index.html").read_text()

    before = _files(tmp_path)
    assert _done(*command, cwd=tmp_path) == output
    after = _files(tmp_path)
    assert {n: content for n, (content, _) in after.items()} == {
        n: content for n, (content, _) in before.items()
    }
    pieces = [name for name in before if "/pieces/" in name]
    assert len(pieces) == 30
    assert {n: after[n] for n in pieces} == {n: before[n] for n in pieces}


@pytest.mark.parametrize("figure", ["p3-fig1b", "p1-table2"])
def test_a_folder_that_cannot_be_made(tmp_path: Path, figure: str) -> None:
    (tmp_path / "out").write_text("a file")
    line = _refused("reproduce", figure, "-o", "out", cwd=tmp_path)
    assert "cannot write" in line
    assert (tmp_path / "out").read_text() == "a file"


def test_a_study_of_ones_own(tmp_path: Path) -> None:
    output = _done("study", EXAMPLE, "-o", "made", cwd=tmp_path)
    assert output == "page: made/short-iterations/index.html\n"
    record = _assert_complete(tmp_path / "made" / "short-iterations")
    assert record["claims"] == []
    assert record["instances"] == 4
    table = pl.read_parquet(tmp_path / "made/short-iterations/short-iterations.parquet")
    assert table.height == 3 * 2 * 4 * 3
    assert table["aimed_pressure"].unique().sort().to_list() == [0.5, 0.8, 1.0]
    assert table["policy"].unique().len() == 3


def test_a_bad_study_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('policies = ["fcfs"]\n[sweep]\nspeed = [1]\n')
    line = _refused("study", "bad.toml", cwd=tmp_path)
    assert line.startswith("penstock: bad.toml: unknown workload key 'speed'")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.toml"]


# --- Several figures at once ------------------------------------------------------

#: A table, a table of a simulation, and two figures that share a study.
SEVERAL = ("p2-fig1", "p4-fig9", "p3-fig1a", "p3-fig1b")


def _lasting(folder: Path) -> dict[str, bytes]:
    """Return the files that do not hold times."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in paths
        if path.parent.name != "pieces" and path.name != "times.parquet"
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("several")
    _done("reproduce", *SEVERAL, "-o", "out", "--jobs", 1, cwd=folder)
    return _lasting(folder / "out")


def test_two_workers_give_the_same_bytes_as_one(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    output = _done("reproduce", *SEVERAL, "-o", "out", "--jobs", 2, cwd=tmp_path)
    assert [n for n in SEVERAL if f"\n{n}: " in output] == list(SEVERAL)
    made = _lasting(tmp_path / "out")
    assert made.keys() == undisturbed.keys()
    assert [name for name in made if made[name] != undisturbed[name]] == []


def test_a_killed_run_of_several_figures_goes_on(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    arguments = ("reproduce", *SEVERAL, "-o", "out", "--jobs", "2")
    process = subprocess.Popen(
        [PENSTOCK, *arguments],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    pieces = tmp_path / "out" / "studies"
    until(lambda: len(list(pieces.glob("*/pieces/*.parquet"))) >= 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    kept = {path: path.stat().st_mtime_ns for path in pieces.glob("*/pieces/*.parquet")}
    _done(*arguments, cwd=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    made = _lasting(tmp_path / "out")
    assert [name for name in undisturbed if made[name] != undisturbed[name]] == []


# --- Every figure -----------------------------------------------------------------


@pytest.fixture(scope="module")
def gallery(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for all figures: those that need the same study share it."""
    return tmp_path_factory.mktemp("gallery")


def _leaves(numbers: dict[str, Any]) -> Iterator[Any]:
    for value in numbers.values():
        yield from _leaves(value) if isinstance(value, dict) else (value,)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_at_smoke_scale(
    gallery: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Compute, draw and judge everything; verdicts count at full scale only."""
    assert main(["reproduce", name, "-o", str(gallery), "--jobs", "1"]) == 0
    output = capsys.readouterr().out
    figure = get_figure(name)
    record = _assert_complete(gallery / name)
    assert (record["name"], record["title"]) == (name, figure.title)
    assert [c["name"] for c in record["claims"]] == [c.name for c in figure.claims]
    names = [claim["name"] for claim in record["claims"]]
    assert len(set(names)) == len(names)
    for claim in record["claims"]:
        assert claim["numbers"], claim["name"]
        # JSON has null for infinity, which is a ratio of Table 2, and for no number.
        assert name == "p1-table2" or None not in _leaves(claim["numbers"])
        assert claim["outcome"] in set(Outcome)
        assert claim["says"] in output
    if name == "p1-table2":
        assert all(claim["holds"] for claim in record["claims"])
