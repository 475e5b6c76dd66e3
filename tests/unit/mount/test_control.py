# SPDX-License-Identifier: MIT
"""Messages of the control socket of a mount."""

from __future__ import annotations

import json
import socket
from math import inf
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.errors import InputError, UnavailableError
from penstock.mount.control import (
    ApplicationState,
    GetMountStatus,
    MountStatus,
    Moved,
    SchedulerStatus,
    SetLimits,
    SetSlo,
    Stop,
    all_statuses,
    decode_command,
    encode,
    limits_document,
    remove_dead_socket,
    send_command,
)
from penstock.mount.limits import Limits
from penstock.mount.points import MountTableEntry

RATES = st.none() | st.floats(1e-3, 1e15)


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(("total", "read", "write"), RATES))
)
def test_limits_survive_encoding_and_limits_not_given_stay(
    rates: dict[str, float | None],
) -> None:
    command = decode_command(encode(SetLimits(**rates)))
    assert isinstance(command, SetLimits)
    before = Limits(1.0, 2.0, inf)
    expected = limits_document(before) | rates
    assert limits_document(command.applied_to(before)) == expected


def test_other_commands_survive_encoding() -> None:
    for command in (GetMountStatus(), Stop(), SetSlo({"applications": {}})):
        assert type(decode_command(encode(command))) is type(command)


@given(st.binary().filter(lambda line: b"type" not in line))
@example(b'{"type":"\xff"}')
@example(b'{"type":"objectives","document":{"a":"\xff"}}')
@example(b'{"type":"objectives","document":[]}')
def test_garbage_is_refused_with_one_error(line: bytes) -> None:
    with pytest.raises(InputError, match="not a command"):
        decode_command(line)


@pytest.mark.parametrize("rate", ["0", "-1", '"fast"', "true"])
def test_invalid_rates_are_refused(rate: str) -> None:
    with pytest.raises(InputError):
        decode_command(b'{"type":"limits","total":%s}' % rate.encode())


def test_a_mount_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="does not answer"):
        send_command(
            tmp_path,
            MountTableEntry("/mnt", "0:57", "fuse.penstock"),
            GetMountStatus(),
        )


def test_only_a_socket_at_which_nobody_listens_is_removed(tmp_path: Path) -> None:
    entry = MountTableEntry("/mnt", "0:57", "fuse.penstock")
    remove_dead_socket(tmp_path, entry)
    path = tmp_path / "0-57.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        remove_dead_socket(tmp_path, entry)
        assert path.exists()
    remove_dead_socket(tmp_path, entry)
    assert not path.exists()


def test_sockets_without_a_mount_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "0-57.sock").touch()
    assert all_statuses(tmp_path) == []


def test_the_json_keys_of_a_status_are_a_contract() -> None:
    """Scripts and the metrics read these keys."""
    application = ApplicationState(
        name="viz",
        throughput_bytes_per_s=1e6,
        latency_s=0.05,
        queued=1,
        p95_s=None,
        bytes_per_s=0.0,
        requests=2,
        moved_bytes=3,
        windows=4,
        kept_windows=5,
    )
    moved = Moved(requests=1, moved_bytes=2, held_up_s=3.0)
    scheduling = SchedulerStatus("sfq", None, 0, "", [application], {})
    status = MountStatus(
        backing="/data",
        point="/mnt",
        pid=1,
        limits={"total": None},
        waiting=0,
        read=moved,
        write=moved,
        metadata={},
        scheduling=scheduling,
    )
    document = json.loads(encode(status))
    assert sorted(document) == sorted(
        [
            *("type", "backing", "point", "pid", "limits", "waiting", "read", "write"),
            *("metadata", "order", "waiting_metadata", "metadata_waited_s"),
            "backing_id",
        ]
    )
    assert document["read"] == {"requests": 1, "bytes": 2, "waited_s": 3.0}
    assert document["order"]["applications"] == [
        {
            "name": "viz",
            "throughput": 1e6,
            "latency": 0.05,
            "queued": 1,
            "p95_s": None,
            "bytes_per_s": 0.0,
            "requests": 2,
            "bytes": 3,
            "windows": 4,
            "kept": 5,
            "operations": 0,
            "queued_operations": 0,
            "operations_limit": None,
            "bandwidth_limit": None,
        }
    ]
