# SPDX-License-Identifier: MIT
"""``penstock generate``: instances as files, in a folder, or on standard output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.model import instance_to_document, read_instance
from penstock.workloads import WORKLOADS, Synthetic

SMALL = ("--set", "horizon=2000", "--set", "pressure=1")
WORKLOAD = Synthetic(horizon=2000.0, pressure=1.0)


@pytest.mark.parametrize("name", ["one.json", "one.json.gz"])
def test_one_instance_is_written_into_the_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    assert main(["generate", "synthetic", *SMALL, "--seed", "7", "-o", str(path)]) == 0
    assert read_instance(path).digest() == WORKLOAD.instance(7, 0).digest()


def test_standard_output_is_one_line_of_json(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert main(["generate", "synthetic", *SMALL, "--seed", "7"]) == 0
    out, err = capfdbinary.readouterr()
    assert (out.count(b"\n"), out[-1:], err) == (1, b"\n", b"")
    expected = instance_to_document(WORKLOAD.instance(7, 0))
    assert json.loads(out) == json.loads(json.dumps(expected, default=list))


def test_several_instances_have_the_seed_and_their_index_in_the_name(
    tmp_path: Path,
) -> None:
    words = ("--seed", "2", "--instances", "3", "-o", str(tmp_path))
    assert main(["generate", "synthetic", *SMALL, *words]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"synthetic-s2-000{index}.json" for index in range(3)]
    for index, name in enumerate(names):
        expected = WORKLOAD.instance(2, index).digest()
        assert read_instance(tmp_path / name).digest() == expected


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("-", "--output: 2 instances do not fit into one file (name a folder)"),
        ("a.json", "--output: 2 instances do not fit into one file (name a folder)"),
        ("file", "file: cannot make the folder: File exists (name another folder)"),
        ("file/x", "file/x: cannot make the folder: Not a directory (name another"),
    ],
)
def test_several_instances_need_a_folder(
    output: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("kept")
    words = ("--instances", "2", "-o", output)
    assert main(["generate", "synthetic", *SMALL, *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"penstock: {message}")
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert Path("file").read_text() == "kept"


@pytest.mark.parametrize("words", [(), ("--instances", "1")])
def test_a_name_without_ending_is_a_folder(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert main(["generate", "synthetic", *SMALL, *words, "-o", f"{tmp_path}/gen"]) == 0
    (path,) = (tmp_path / "gen").iterdir()
    assert path.name == "synthetic-s1-0000.json"
    assert read_instance(path).digest() == WORKLOAD.instance(1, 0).digest()


def test_a_device_is_written_to(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "synthetic", *SMALL, "-o", "/dev/null"]) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("count", [1, 2])
def test_missing_folders_are_made(tmp_path: Path, count: int) -> None:
    output = tmp_path / "a" / "b" / ("c.json" if count == 1 else "c")
    words = ("--instances", str(count), "-o", str(output))
    assert main(["generate", "synthetic", *SMALL, *words]) == 0
    assert output.is_file() if count == 1 else len(list(output.iterdir())) == count


def test_a_folder_that_cannot_be_made_is_reported_before_the_instance_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Synthetic, "instance", lambda *_: pytest.fail("drawn"))
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "below" / "one.json"
    assert main(["generate", "synthetic", "-o", str(path)]) == 2
    assert f"cannot write to {tmp_path / 'file'}" in capsys.readouterr().err


def test_help_lists_every_workload_with_its_parameters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["generate", "help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line.split(":")[0] for line in lines if not line.startswith(" ")]
    assert lines[0] == "[...]: symbol of the parameter in the paper"
    assert heads[1:] == list(WORKLOADS)
    assert all(line.split(": ", 1)[1] for line in lines if not line.startswith(" "))
    assert any(line.startswith("  ") and "horizon" in line for line in lines)


def test_an_unknown_workload_is_refused_with_the_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["generate", "sinthetic"]) == 2
    message = capsys.readouterr().err
    assert "unknown workload 'sinthetic'" in message
    assert "synthetic" in message.split("'sinthetic'")[1]
