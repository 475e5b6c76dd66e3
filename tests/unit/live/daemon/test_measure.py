# SPDX-License-Identifier: MIT
"""How fast a folder is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.live.daemon.measure import measure_bandwidth


def test_a_folder(tmp_path: Path) -> None:
    assert measure_bandwidth(tmp_path, 0.05) > 0.0
    assert list(tmp_path.iterdir()) == []


def test_not_a_folder() -> None:
    with pytest.raises(InputError, match=r"^/no/where: .*\(give --bandwidth\)$"):
        measure_bandwidth(Path("/no/where"))
