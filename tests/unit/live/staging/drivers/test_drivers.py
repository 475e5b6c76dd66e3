# SPDX-License-Identifier: MIT
"""Target drivers: links of plain directories, and the commands of file systems."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from penstock.errors import InputError, UnavailableError, UnknownNameError
from penstock.live.staging.drivers import DRIVERS, get_driver


@pytest.fixture
def targets(tmp_path: Path) -> Path:
    root = tmp_path / "targets"
    for name in ("a", "b", "c", "d"):
        (root / name).mkdir(parents=True)
    return root


def _led_to(directory: Path) -> list[str]:
    return [p.resolve().name for p in sorted(directory.iterdir())]


def test_slots_lead_to_the_partition(targets: Path, tmp_path: Path) -> None:
    driver = get_driver("directories", targets)
    driver.assign(tmp_path / "job", ["b", "d"])
    assert _led_to(tmp_path / "job") == ["b", "d", "b", "d"]
    (tmp_path / "job" / "1" / "old").write_text("x")
    driver.assign(tmp_path / "job", ["a"])
    assert _led_to(tmp_path / "job") == ["a"] * 4
    (tmp_path / "job" / "1" / "new").write_text("x")
    assert (targets / "d" / "old").exists()
    assert (targets / "a" / "new").exists()


def test_assigning_again_changes_nothing(targets: Path, tmp_path: Path) -> None:
    driver = get_driver("directories", targets)
    for _ in range(2):
        driver.assign(tmp_path / "job", ["c", "c", "a"])
        assert _led_to(tmp_path / "job") == ["c", "a", "c", "a"]


def test_a_failed_assignment_leaves_the_links(targets: Path, tmp_path: Path) -> None:
    driver = get_driver("directories", targets)
    driver.assign(tmp_path / "job", ["a"])
    with pytest.raises(UnknownNameError, match=r"unknown target 'z'.*a, b, c, d"):
        driver.assign(tmp_path / "job", ["b", "z"])
    assert _led_to(tmp_path / "job") == ["a"] * 4


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tools that note how they are called; `fail` beside them makes them fail."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("lfs", "beegfs-ctl", "mfsscadmin", "mfssetsclass"):
        (tools / name).write_text(
            f'#!/bin/sh\necho "{name} $*" >>"{tools}/calls"\n'
            f'[ ! -e "{tools}/fail" ] || {{ echo "no such OST" >&2; exit 1; }}\n'
        )
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    return tools


@pytest.mark.parametrize(
    ("name", "chosen", "commands"),
    [
        (
            "lustre",
            ["4", "7"],
            ["lfs setstripe --stripe-count 2 --ost 4,7 /fs/job"],
        ),
        (
            "beegfs",
            ["2"],
            ["beegfs-ctl --setpattern --mount=/fs --storagepoolid=2 job"],
        ),
        (
            "moosefs",
            ["B", "A"],
            [
                "mfsscadmin /fs list",
                "mfsscadmin /fs create -m s A+B penstock_AB",
                "mfssetsclass penstock_AB /fs/job",
            ],
        ),
    ],
)
def test_commands(
    recorder: Path, name: str, chosen: list[str], commands: list[str]
) -> None:
    get_driver(name, Path("/fs")).assign(Path("/fs/job"), chosen)
    assert (recorder / "calls").read_text().splitlines() == commands


def test_a_failing_tool_is_quoted(recorder: Path) -> None:
    (recorder / "fail").touch()
    with pytest.raises(InputError, match=r"/fs/job: lfs setstripe .*: no such OST"):
        get_driver("lustre", Path("/fs")).assign(Path("/fs/job"), ["99"])


def test_a_missing_tool_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="lfs is not installed"):
        get_driver("lustre", Path("/fs")).assign(Path("/fs/job"), ["0"])


def test_a_silent_tool_is_given_up(
    recorder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(arguments: list[str], **options: float) -> None:
        raise subprocess.TimeoutExpired(arguments, options["timeout"])

    monkeypatch.setattr(subprocess, "run", never)
    with pytest.raises(UnavailableError, match="did not answer within 30 s"):
        get_driver("lustre", Path("/fs")).assign(Path("/fs/job"), ["0"])


@pytest.mark.parametrize(
    ("name", "chosen", "what"),
    [
        ("lustre", ["OST0"], "'OST0' is not the index of an OST"),
        ("beegfs", ["1", "2"], "2 storage pools for one directory"),
        ("beegfs", ["one"], "'one' is not the identifier"),
        ("moosefs", ["AB"], "'AB' is not the label"),
        ("lustre", [], "no target"),
    ],
)
def test_what_cannot_be_a_target(
    recorder: Path, name: str, chosen: list[str], what: str
) -> None:
    with pytest.raises(InputError, match=what):
        get_driver(name, Path("/fs")).assign(Path("/fs/job"), chosen)
    assert not (recorder / "calls").exists()


def test_bad_roots_and_names(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no targets"):
        get_driver("directories", tmp_path)
    with pytest.raises(InputError, match="No such file"):
        get_driver("directories", tmp_path / "nowhere")
    with pytest.raises(UnknownNameError, match=", ".join(sorted(DRIVERS))):
        get_driver("lustres", tmp_path)
