# SPDX-License-Identifier: MIT
"""The control plane: SLOs, limits and rules reach the data path; refused changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.mount.data_path import DataPath
from penstock.mount.limits import Limits
from penstock.mount.service import MountService, why_unmet
from penstock.mount.slo_settings import slo_settings_from
from support.native_mount import driver

RATE = 1e6
LIMITS = Limits(total=RATE)


BULK = {"throughput": 0.7 * RATE, "latency": 2.0}


def document(**changes: Any) -> dict[str, Any]:
    return {
        "scheduler": "edf",
        "default": "bulk",
        "applications": {
            "tight": {"throughput": 0.2 * RATE, "latency": 0.05, "operations": 50},
            "bulk": {"throughput": 0.7 * RATE, "latency": 2.0, "bandwidth": RATE},
        },
    } | changes


class RecordingDataPath(DataPath):
    """Records what the control plane sets."""

    def __init__(self, backing: str) -> None:
        super().__init__(backing)
        self.replaced: dict[int, int] = {}
        self.rules: dict[str, Any] = {}
        self.limits: list[Limits] = []

    def replace(self, application: int, by: int) -> None:
        self.replaced[application] = by
        super().replace(application, by)

    def set_rules(self, ask: Any, paths: Any, **conditions: bool) -> None:
        self.rules = {"ask": ask, "paths": paths, **conditions}
        super().set_rules(ask, paths, **conditions)

    def set_limits(self, limits: Limits) -> None:
        self.limits.append(limits)
        super().set_limits(limits)


@pytest.fixture
def data_path(tmp_path: Path) -> RecordingDataPath:
    driver()  # skips the test where the library cannot be built
    return RecordingDataPath(str(tmp_path))


def service(data_path: DataPath, **changes: Any) -> MountService:
    return MountService(data_path, LIMITS, slo_settings_from(document(**changes)))


def test_the_status_shows_applications_and_their_slos(
    data_path: RecordingDataPath,
) -> None:
    status = service(data_path).scheduler_status()
    assert status is not None
    assert (status.scheduler, status.depth, status.outstanding) == ("edf", 8, 0)
    lines = {
        a.name: (a.latency_s, a.operations_per_s, a.cap_bytes_per_s)
        for a in status.applications
    }
    assert lines == {"tight": (0.05, 50.0, None), "bulk": (2.0, None, RATE)}
    assert status.unmet == ""
    assert MountService(data_path, LIMITS, None).scheduler_status() is None


def test_slos_that_exceed_the_limit_are_shown(data_path: RecordingDataPath) -> None:
    made = service(data_path)
    made.set_limits(Limits(total=0.5 * RATE))
    assert data_path.limits == [LIMITS, Limits(total=0.5 * RATE)]
    status = made.scheduler_status()
    assert status is not None
    assert "900 kB/s" in status.unmet
    assert why_unmet(None, LIMITS) == ""


def test_open_files_of_an_application_that_is_gone_belong_to_the_default(
    data_path: RecordingDataPath,
) -> None:
    made = service(data_path)
    changed = document()
    del changed["applications"]["tight"]
    changed["applications"]["new"] = {"throughput": 1, "latency": 9}
    changed["applications"]["bulk"]["latency"] = 7
    made.set_slo(changed)
    status = made.scheduler_status()
    assert status is not None
    assert {a.name: a.latency_s for a in status.applications} == {
        "bulk": 7.0,
        "new": 9.0,
    }
    tight, bulk, new = 0, 1, 2
    assert data_path.replaced == {tight: bulk, bulk: bulk, new: new}
    made.set_slo(document())
    assert data_path.replaced == {tight: tight, bulk: bulk, new: bulk}


def test_the_data_path_asks_for_applications_by_index(
    data_path: RecordingDataPath,
) -> None:
    rules = [
        {"application": "tight", "path": "/fast"},
        {"application": "tight", "user": 12, "program": "no-such-program"},
    ]
    service(data_path, rules=rules)
    assert data_path.rules["paths"] == ["/fast"]
    assert data_path.rules["by_process"]
    assert data_path.rules["by_program"]
    ask = data_path.rules["ask"]
    assert ask(os.getpid(), 12, b"/fast/file") == 0
    assert ask(os.getpid(), 12, b"/slow/file") == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scheduler": "fifo"}, "scheduler: cannot be changed"),
        ({"exchange": {}}, "exchange: cannot be changed"),
        ({"metadata_depth": 3}, "metadata_depth: cannot be changed"),
        ({"default": "no"}, "unknown application"),
        *[
            ({"applications": {"bulk": BULK | {limit: 0}}}, f"{limit}.*not positive")
            for limit in ("operations", "bandwidth")
        ],
    ],
)
def test_a_refused_change_changes_nothing(
    data_path: RecordingDataPath, changes: dict[str, Any], message: str
) -> None:
    made = service(data_path)
    before = made.scheduler_status()
    with pytest.raises(InputError, match=message):
        made.set_slo(document(**changes))
    assert made.scheduler_status() == before
    with pytest.raises(InputError, match="without --slo"):
        MountService(data_path, LIMITS, None).set_slo(document())


def test_the_number_of_applications_in_the_life_of_a_mount_is_bounded(
    data_path: RecordingDataPath,
) -> None:
    made = service(data_path)
    entry = {"throughput": 1, "latency": 1}

    def change(turn: int) -> None:
        names = {f"{turn}-{n}": entry for n in range(200)}
        made.set_slo(document(applications=names, default=f"{turn}-0"))

    for turn in range(5):
        change(turn)
    with pytest.raises(InputError, match="more than 1023 applications"):
        change(5)


def test_no_link_without_an_exchange(data_path: RecordingDataPath) -> None:
    assert service(data_path).open_link() is None
    assert MountService(data_path, LIMITS, None).open_link() is None


def test_a_mount_without_promises_needs_neither_numpy_nor_numba() -> None:
    script = (
        "import sys; sys.modules.update(numpy=None, numba=None); "
        "import penstock.mount.daemon, penstock.mount.service"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
