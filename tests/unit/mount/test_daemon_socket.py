# SPDX-License-Identifier: MIT
"""The socket of a mount: if it cannot be made, that is what is said."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyfuse3")

from penstock.errors import InputError
from penstock.mount import daemon
from penstock.mount.limiter import Limits
from penstock.mount.points import Mounted


def test_a_folder_that_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(daemon, "mounted_at", lambda _: Mounted("m", "0:1", "fuse"))
    monkeypatch.setattr(daemon, "widen", lambda *_: None)
    mount = daemon.Mount("b", "m", Limits(), tmp_path / "file" / "mounts", None)
    with (
        pytest.raises(InputError, match=r"0-1\.sock: cannot be made: Not a directory"),
        daemon._listening(mount),
    ):
        pass
