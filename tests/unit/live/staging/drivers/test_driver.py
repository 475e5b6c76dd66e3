# SPDX-License-Identifier: MIT
"""How target drivers call the tools of a file system, and the table of drivers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.errors import InputError, UnavailableError, UnknownNameError
from penstock.live import ending
from penstock.live.staging.drivers import DRIVERS, driver, get_driver
from penstock.live.staging.drivers.driver import (
    PlacedInFolder,
    SubFolderError,
    call,
    distinct,
    folders_below,
    walk_below,
)
from support.users import NEEDS_ROOT, NOBODY
from support.waiting import until


def _python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


def test_the_output_of_the_tool_is_returned() -> None:
    assert call(_python("print('one'); print('two')"), where="x") == "one\ntwo\n"


def test_the_tool_cannot_read_the_standard_input_of_penstock() -> None:
    assert call(_python("import sys; print(sys.stdin.read())"), where="x") == "\n"


def test_arguments_are_not_read_by_a_shell(tmp_path: Path) -> None:
    word = f"$(touch {tmp_path}/made); *"
    code = "import sys; print(sys.argv[1])"
    assert call([*_python(code), word], where="x") == f"{word}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("print('usage'); sys.exit('first\\nno such OST')", "no such OST"),
        ("print('no such pool'); sys.exit(1)", "no such pool"),
        ("sys.exit(3)", "exit status 3"),
    ],
    ids=["error", "output", "silent"],
)
def test_the_last_line_of_a_tool_that_fails_is_quoted(code: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        call(_python(f"import sys; {code}"), where="/fs/job")
    assert str(caught.value).startswith("/fs/job: ")
    assert str(caught.value).endswith(f": {reason}")


def test_a_tool_that_is_not_installed_is_named() -> None:
    with pytest.raises(InputError, match=r"/fs: lfs-of-nobody is not installed \(inst"):
        call(["lfs-of-nobody", "osts"], where="/fs")


def test_a_tool_that_does_not_answer_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driver, "TOOL_TIMEOUT_S", 0.01)
    with pytest.raises(
        UnavailableError, match=r"sleep did not answer within 0.01 s \("
    ):
        call(["sleep", "600"], where="/fs")


def test_nobody_waits_for_a_tool_that_cannot_be_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process in state D does not end when it is killed."""
    started: list[subprocess.Popen[str]] = []

    def kill(process: subprocess.Popen[str]) -> None:
        started.append(process)

    with monkeypatch.context() as patched:
        patched.setattr(driver, "TOOL_TIMEOUT_S", 0.01)
        patched.setattr(ending, "KILL_S", 0.01)
        patched.setattr(subprocess.Popen, "kill", kill)
        with pytest.raises(UnavailableError, match=r"process \d+ cannot be killed"):
            call(["sleep", "600"], where="/fs")
    (process,) = started
    assert process.poll() is None
    process.kill()
    # The next call reaps it when it has ended.
    until(lambda: call(["true"], where="/fs") == "" and process.poll() is not None)


def test_repeated_targets_count_once_in_the_given_order() -> None:
    assert distinct(["b", "a", "b", "c", "a"], where="x") == ("b", "a", "c")


def test_an_application_needs_a_target() -> None:
    with pytest.raises(InputError, match=r"/fs/job: no target \(give every"):
        distinct([], where="/fs/job")


@pytest.mark.parametrize("name", ["beegfs", "lustre", "moosefs"])
def test_every_driver_of_a_file_system_needs_a_target(name: str) -> None:
    with pytest.raises(InputError, match="no target"):
        get_driver(name, Path("/fs")).assign(Path("/fs/job"), [])


def test_an_unknown_driver_is_refused_with_the_names(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=", ".join(sorted(DRIVERS))):
        get_driver("lustres", tmp_path)


# --- Sub-folders ----------------------------------------------------------------------


def test_links_and_folders_that_others_can_replace_are_not_entered(
    tmp_path: Path,
) -> None:
    for name in ("own/in", "open/in", "sticky/in"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "sticky").chmod(0o1777)
    (tmp_path / "own" / "link").symlink_to(tmp_path / "sticky")
    found = {os.path.relpath(path, tmp_path) for path in folders_below(tmp_path)}
    assert found == {"own", "own/in", "open", "sticky", "sticky/in"}
    assert list(folders_below(tmp_path / "gone")) == []


@NEEDS_ROOT
def test_folders_of_other_users_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "theirs" / "in").mkdir(parents=True)
    os.chown(tmp_path / "theirs", NOBODY, NOBODY)
    assert list(folders_below(tmp_path)) == []


def test_a_folder_that_is_replaced_by_a_link_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "job" / "a").mkdir(parents=True)
    (tmp_path / "elsewhere" / "a" / "b").mkdir(parents=True)
    walk = folders_below(tmp_path / "job")
    assert next(walk) == str(tmp_path / "job" / "a")
    # Both the folder of the job and the one that was just found.
    (tmp_path / "job").rename(tmp_path / "gone")
    (tmp_path / "job").symlink_to(tmp_path / "elsewhere")
    assert list(walk) == []
    walk = folders_below(tmp_path / "gone")
    assert next(walk) == str(tmp_path / "gone" / "a")
    (tmp_path / "gone" / "a").rmdir()
    (tmp_path / "gone" / "a").symlink_to(tmp_path / "elsewhere" / "a")
    assert list(walk) == []


def test_entries_that_are_no_folders_count_for_the_limit(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"file{number}").touch()
        (tmp_path / f"folder{number}").mkdir()
    before = os.listdir("/proc/self/fd")  # noqa: PTH208
    opened = os.open(tmp_path, os.O_RDONLY)
    assert len(list(walk_below(opened, 100))) == 50
    assert sum(1 for _ in walk_below(opened, 0)) == 0
    (tmp_path / "folder0" / "in").mkdir()
    assert 0 < sum(1 for _ in walk_below(opened, 60)) <= 50
    next(walk_below(opened))
    os.close(opened)
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208


def test_a_folder_that_vanishes_costs_no_other_its_targets(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    assigned: list[str] = []

    def assign(folders: Sequence[str]) -> None:
        if len(folders) > 1:
            (tmp_path / "b").rmdir()
        if not all(Path(folder).exists() for folder in folders):
            raise InputError("no such folder")
        assigned.extend(folders)

    PlacedInFolder().assign_all(tmp_path, assign)
    names = {os.path.relpath(folder, tmp_path) for folder in assigned}
    assert names == {".", "a", "c"}


def test_a_sub_folder_that_is_refused_costs_no_other_its_targets(
    tmp_path: Path,
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    assigned: list[str] = []

    def assign(folders: Sequence[str]) -> None:
        if str(tmp_path / "b") in folders:
            raise InputError("not permitted")
        assigned.extend(os.path.relpath(folder, tmp_path) for folder in folders)

    with pytest.raises(SubFolderError, match=r"1 sub-folders keep.*not permitted"):
        PlacedInFolder().assign_all(tmp_path, assign)
    assert sorted(assigned) == [".", "a", "c"]
