# SPDX-License-Identifier: MIT
"""The environment in which a program loads the preload library."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.node.launch import shim
from penstock.live.node.launch.shim import (
    shim_environment,
    staged_environment,
    unstaged_environment,
)
from penstock.live.staging.rules import Staging
from penstock.native.files import SOURCES


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Replace the preload library by a file; return its path."""
    path = tmp_path / "libpenstock.so"
    path.touch()
    monkeypatch.setattr(shim, "shim_path", lambda: path)
    return str(path)


@pytest.mark.parametrize(
    ("before", "others"),
    [
        ({}, []),
        ({"LD_PRELOAD": "/a.so"}, ["/a.so"]),
        ({"LD_PRELOAD": " a b:c "}, "abc"),
    ],
)
def test_other_preloaded_libraries_stay(
    library: str, tmp_path: Path, before: dict[str, str], others: list[str]
) -> None:
    environment = shim_environment(tmp_path / "page", [tmp_path], before)
    assert environment["LD_PRELOAD"].split(":") == [library, *others]
    again = shim_environment(tmp_path / "page", [tmp_path], environment)
    assert again == environment


def test_prefixes_are_resolved(library: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    environment = shim_environment(
        tmp_path / "page", [tmp_path / "link", tmp_path / "x"], {}
    )
    assert environment["PENSTOCK_CONTROLLED"] == f"{tmp_path}:{tmp_path / 'x'}"
    assert environment["PENSTOCK_PAGE"] == str(tmp_path / "page")


def test_staging_needs_no_page(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    staging = Staging(tmp_path / "journals", rules=("-*.log",))
    environment = staged_environment({"PATH": "/bin"}, staging)
    assert environment["PENSTOCK_CONTROLLED"] == str(tmp_path)
    assert environment["LD_PRELOAD"] == library
    assert "PENSTOCK_PAGE" not in environment
    assert Staging.of(environment) == staging
    assert (tmp_path / "journals").is_dir()


def test_staging_keeps_what_is_controlled(library: str, tmp_path: Path) -> None:
    controlled = shim_environment(tmp_path / "page", [tmp_path / "x"], {})
    staging = Staging(tmp_path / "journals")
    environment = staged_environment(controlled, staging)
    assert environment == controlled | staging.environment()


def test_a_prefix_with_a_colon_is_refused(library: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="may not contain"):
        shim_environment(tmp_path / "page", [tmp_path / "a:b"], {})


@pytest.mark.parametrize("names", [["x" * 1024], [str(i) for i in range(17)]])
def test_more_prefixes_than_the_library_holds_are_refused(
    library: str, tmp_path: Path, names: list[str]
) -> None:
    with pytest.raises(InputError, match="at most 16, of 1023 bytes"):
        shim_environment(tmp_path / "page", [Path("/") / name for name in names], {})


def test_the_room_for_prefixes_is_that_of_the_library() -> None:
    text = (SOURCES / "shim/identity.c").read_text()
    assert "PREFIXES = 16, PATH_ROOM = 1024" in text


def test_a_library_in_a_folder_with_a_blank_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a b").mkdir()
    path = tmp_path / "a b" / "libpenstock.so"
    path.touch()
    monkeypatch.setattr(shim, "shim_path", lambda: path)
    with pytest.raises(InputError, match="may not contain"):
        shim_environment(tmp_path / "page", [tmp_path], {})


def test_an_unstaged_environment_keeps_everything_but_staging(
    library: str, tmp_path: Path
) -> None:
    controlled = shim_environment(tmp_path / "page", [tmp_path], {"HOME": "/root"})
    staged = staged_environment(controlled, Staging(tmp_path / "journals"))
    assert unstaged_environment(staged) == controlled


def test_an_environment_without_a_page_drops_an_inherited_one(
    library: str, tmp_path: Path
) -> None:
    environment = shim_environment(None, [tmp_path], {"PENSTOCK_PAGE": "/old/page"})
    assert "PENSTOCK_PAGE" not in environment
