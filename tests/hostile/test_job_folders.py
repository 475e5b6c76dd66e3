# SPDX-License-Identifier: MIT
"""A user prepares a folder that root will put on storage targets."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.live.staging.partitioner import Partitioner
from support.users import NEEDS_ROOT, NOBODY, as_user, open_for_all
from support.waiting import until

pytestmark = NEEDS_ROOT


@pytest.fixture
def partitioner(tmp_path: Path) -> Iterator[Partitioner]:
    """Return one whose folders of jobs are where all users can make folders."""
    for name in ("targets/x", "targets/y", "scratch", "precious"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "scratch").chmod(0o1777)
    (tmp_path / "precious").chmod(0o700)
    (tmp_path / "precious" / "0").write_text("of root")
    open_for_all(tmp_path)
    targets, folder = f"directories:{tmp_path}/targets:x,y", "scratch/{job}/out"
    made = Partitioner.of(targets, f"{tmp_path}/{folder}", logging.getLogger("test"))
    yield made
    made.close()


@pytest.mark.parametrize("link", ["a", "a/out"])
def test_root_does_not_follow_the_links_of_a_user(
    tmp_path: Path, partitioner: Partitioner, link: str
) -> None:
    place = tmp_path / "scratch" / link

    def prepare() -> None:
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(tmp_path / "precious")

    as_user(NOBODY, prepare)
    key = f"{os.geteuid()}:a"
    partitioner.move({key: (0, 1)})
    until(lambda: key in partitioner.failures)
    assert "is not a folder that belongs to you" in partitioner.failures[key]
    precious = tmp_path / "precious"
    assert [path.name for path in precious.iterdir()] == ["0"]
    assert (precious / "0").read_text() == "of root"


def test_a_user_does_not_move_the_folder_of_another_one(
    tmp_path: Path, partitioner: Partitioner
) -> None:
    """Its job has the same name, on a node whose agent serves all users."""
    own, other = f"{os.geteuid()}:a", f"{NOBODY}:a"
    partitioner.move({own: (0,)})
    slot = tmp_path / "scratch" / "a" / "out" / "1"
    until(slot.is_symlink)
    partitioner.move({other: (1,), f"{NOBODY}:next": (1,)})
    partitioner.move({f"{os.geteuid()}:last": (0,)})
    until((tmp_path / "scratch" / "last" / "out" / "1").is_symlink)
    assert slot.resolve().name == "x"
    assert not (tmp_path / "scratch" / "next").exists()
    assert set(partitioner.failures) == {other, f"{NOBODY}:next"}
