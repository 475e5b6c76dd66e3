# SPDX-License-Identifier: MIT
"""Where the folders of jobs are, and what of them is refused."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.staging.job_folder import JobFolder, folder_name

OWN = os.geteuid()
NAME = pwd.getpwuid(OWN).pw_name
UNKNOWN = 4_000_000_000


def test_users_without_a_name_are_numbers() -> None:
    assert folder_name(OWN) == NAME
    assert folder_name(UNKNOWN) == str(UNKNOWN)
    assert folder_name(2**40) == str(2**40)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/fs/{job}", "/fs/sim"),
        ("/fs/{user}/{job}", f"/fs/{NAME}/sim"),
        ("/fs/of-{user}/jobs/run-{job}/out", f"/fs/of-{NAME}/jobs/run-sim/out"),
    ],
)
def test_names_are_put_into_the_pattern(pattern: str, path: str) -> None:
    assert JobFolder(pattern).path(OWN, "sim") == Path(path)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "a\0b"])
def test_a_name_does_not_lead_elsewhere(name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name of a folder"):
        JobFolder("/fs/{user}/{job}").path(OWN, name)


@pytest.mark.parametrize("pattern", ["/fs/{job}", "/fs/{user}-{job}", "/{job}/{user}"])
def test_where_there_are_many_users_each_has_a_folder(pattern: str) -> None:
    JobFolder(pattern)
    with pytest.raises(InputError, match="no folder for each user"):
        JobFolder(pattern, all_users=True)
    folders = JobFolder("/fs/of-{user}/jobs/{job}", all_users=True)
    assert folders.top_of_user(OWN) == Path(f"/fs/of-{NAME}")


def test_a_folder_is_made_and_found_again(tmp_path: Path) -> None:
    folders = JobFolder(f"{tmp_path}/fs/{{user}}/{{job}}/out")
    assert not folders.is_there(OWN, "sim")
    made = folders.make(OWN, "sim")
    assert made == tmp_path / "fs" / NAME / "sim" / "out"
    assert made.is_dir()
    assert folders.is_there(OWN, "sim")
    assert not folders.is_there(OWN, "other")
    assert folders.make(OWN, "sim") == made


def test_a_link_in_the_place_of_a_folder_is_looked_at_and_not_followed(
    tmp_path: Path,
) -> None:
    """It may lead to where no call returns."""
    folders = JobFolder(f"{tmp_path}/{{user}}/{{job}}")
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "sim").symlink_to("nowhere")
    assert folders.is_there(OWN, "sim")
    (tmp_path / NAME).rename(tmp_path / "elsewhere")
    (tmp_path / NAME).symlink_to(tmp_path / "elsewhere")
    assert not folders.is_there(OWN, "sim")


@pytest.mark.parametrize("link", ["users/{user}", "users/{user}/sim"])
def test_links_and_files_are_refused(tmp_path: Path, link: str) -> None:
    place = tmp_path / link.replace("{user}", NAME)
    place.parent.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    folders = JobFolder(f"{tmp_path}/users/{{user}}/{{job}}")
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is not a folder that belongs to you"):
        folders.make(OWN, "sim")
    place.unlink()
    place.write_text("a file")
    with pytest.raises(InputError, match="is not a folder that belongs to you"):
        folders.make(OWN, "sim")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    folders = JobFolder(f"{tmp_path}/{{user}}/{{job}}")
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    folders.make(OWN, "sim")
    (tmp_path / NAME / "bad").write_text("a file")
    with pytest.raises(InputError):
        folders.make(OWN, "bad")
    for job in ("sim", "missing"):
        folders.is_there(OWN, job)
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208


def test_only_the_user_has_access_to_a_folder_that_is_made(tmp_path: Path) -> None:
    folders = JobFolder(f"{tmp_path}/{{user}}/{{job}}")
    made = folders.make(OWN, "sim")
    assert [path.stat().st_mode & 0o777 for path in (made, made.parent)] == [0o700] * 2
    # A mode that the user has chosen stays.
    made.chmod(0o750)
    folders.make(OWN, "sim")
    assert made.stat().st_mode & 0o777 == 0o750
