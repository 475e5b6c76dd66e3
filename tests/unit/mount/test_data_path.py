# SPDX-License-Identifier: MIT
"""The data path without a mount: what Python sets and reads."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.mount.data_path import DataPath, Totals
from penstock.mount.limits import Limits
from penstock.qos import KINDS
from support.native_mount import driver


@pytest.fixture
def data_path(tmp_path: Path) -> DataPath:
    driver()  # skips the test where the library cannot be built
    return DataPath(str(tmp_path))


def test_a_new_data_path_has_moved_nothing(data_path: DataPath) -> None:
    totals, *waiting = data_path.totals()
    assert totals == dict.fromkeys(KINDS, Totals(0, 0, 0.0))
    assert waiting == [0, 0]
    assert data_path.operation_counts() == {}
    data_path.set_limits(Limits(total=1e6, read=inf, write=5.0))
    data_path.measure(3, 0.5, None)
    service = data_path.service(3)
    assert (service.requests, service.p95_s, service.queued) == (0, None, 0)
    with data_path.locked():
        data_path.dispatch()


def test_a_folder_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    driver()
    with pytest.raises(InputError, match="No such file"):
        DataPath(str(tmp_path / "no"))


def test_a_mount_point_that_does_not_exist_is_reported(
    data_path: DataPath, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"cannot be mounted: .*No such file"):
        data_path.attach(str(tmp_path / "no"), ["default_permissions"])
