# SPDX-License-Identifier: MIT
"""Targets that are plain directories: links lead files to the partition."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.errors import InputError, UnknownNameError
from penstock.live.staging.drivers.directories import Directories
from support.users import NEEDS_ROOT, NOBODY


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "targets"
    for name in ("a", "b", "c", "d"):
        (root / name).mkdir(parents=True)
    return root


def _targets_of_links(directory: Path) -> list[str]:
    return [p.resolve().name for p in sorted(directory.iterdir())]


def test_the_targets_are_the_subdirectories_by_name(root: Path) -> None:
    (root / "notes.txt").write_text("not a target")
    (root / "e").symlink_to(root / "a")
    (root / "broken").symlink_to(root / "nowhere")
    assert Directories(root).targets == ("a", "b", "c", "d", "e")


def test_slots_lead_to_the_partition(root: Path, tmp_path: Path) -> None:
    Directories(root).assign(tmp_path / "job", ["b", "d"])
    assert _targets_of_links(tmp_path / "job") == ["b", "d", "b", "d"]


def test_new_files_go_to_the_new_targets_and_old_files_stay(
    root: Path, tmp_path: Path
) -> None:
    driver, job = Directories(root), tmp_path / "job"
    driver.assign(job, ["b", "d"])
    (job / "1" / "old").write_text("x")
    driver.assign(job, ["a"])
    (job / "1" / "new").write_text("x")
    assert _targets_of_links(job) == ["a"] * 4
    assert (root / "d" / "old").exists()
    assert (root / "a" / "new").exists()


def test_assigning_again_changes_nothing(root: Path, tmp_path: Path) -> None:
    driver = Directories(root)
    for _ in range(2):
        driver.assign(tmp_path / "job", ["c", "c", "a"])
        assert _targets_of_links(tmp_path / "job") == ["c", "a", "c", "a"]


def test_a_link_left_by_an_interrupted_assignment_is_replaced(
    root: Path, tmp_path: Path
) -> None:
    job = tmp_path / "job"
    job.mkdir()
    (job / f".0.{os.getpid()}").symlink_to(root / "d")
    Directories(root).assign(job, ["b"])
    assert _targets_of_links(job) == ["b"] * 4


def test_links_stay_valid_if_the_root_is_a_relative_path(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Directories(Path("targets")).assign(Path("deep/job"), ["c"])
    assert (tmp_path / "deep" / "job" / "0").readlink() == root / "c"


def test_an_unknown_target_leaves_the_links(root: Path, tmp_path: Path) -> None:
    driver = Directories(root)
    driver.assign(tmp_path / "job", ["a"])
    with pytest.raises(UnknownNameError, match=r"unknown target 'z'.*a, b, c, d"):
        driver.assign(tmp_path / "job", ["b", "z"])
    assert _targets_of_links(tmp_path / "job") == ["a"] * 4


def test_a_file_in_place_of_the_directory_is_refused(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "job").write_text("x")
    with pytest.raises(InputError, match="job: File exists"):
        Directories(root).assign(tmp_path / "job", ["a"])


def test_a_root_without_targets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no targets \(make a directory for each"):
        Directories(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        Directories(tmp_path / "nowhere")


def test_the_files_of_a_user_are_in_a_folder_of_the_user(
    root: Path, tmp_path: Path
) -> None:
    driver = Directories(root).for_user("ann")
    for _ in range(2):
        driver.assign(tmp_path / "job", ["b", "d"])
    link = tmp_path / "job" / "1"
    assert link.resolve() == (root / "d" / "ann").resolve()
    assert (root / "d" / "ann").stat().st_mode & 0o777 == 0o700
    assert not (root / "a" / "ann").exists()
    assert driver.roots(tmp_path) == tuple(
        root.resolve() / name / "ann" for name in "abcd"
    )
    # The driver of all users is as before.
    assert Directories(root).roots(tmp_path)[0] == root.resolve() / "a"


def test_a_link_in_the_place_of_a_users_folder_is_refused(
    root: Path, tmp_path: Path
) -> None:
    (root / "b" / "ann").symlink_to(tmp_path)
    with pytest.raises(InputError, match=r"b/ann: is not a folder that belongs to you"):
        Directories(root).for_user("ann").assign(tmp_path / "job", ["b"])


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_target_on_which_others_can_replace_the_folder_is_refused(
    root: Path, tmp_path: Path, mode: int
) -> None:
    driver = Directories(root).for_user("ann")
    (root / "b").chmod(mode)
    with pytest.raises(InputError, match=r"b: lets other users replace folders"):
        driver.assign(tmp_path / "job", ["b"])
    assert list((tmp_path / "job").iterdir()) == []
    (root / "b").chmod(mode | 0o1000)
    driver.assign(tmp_path / "job", ["b"])
    assert (tmp_path / "job" / "0").resolve() == (root / "b" / "ann").resolve()


@NEEDS_ROOT
def test_a_target_of_another_user_is_refused(root: Path, tmp_path: Path) -> None:
    """Its owner can replace folders of other users, sticky bit or not."""
    os.chown(root / "b", NOBODY, NOBODY)
    with pytest.raises(InputError, match=r"b: belongs neither to root nor to you"):
        Directories(root).for_user("ann").assign(tmp_path / "job", ["b"])
