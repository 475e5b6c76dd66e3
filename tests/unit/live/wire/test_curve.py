# SPDX-License-Identifier: MIT
"""Keys of controller and agents; `tests/e2e/live/test_serve_nodes.py` uses them."""

from __future__ import annotations

from pathlib import Path

import pytest
import zmq

from penstock.errors import InputError
from penstock.live.wire.curve import (
    KeyWatch,
    TrustedKeys,
    _key,
    _secret_key,
    attach,
    check_client,
    make_keys,
)


def test_keys_are_made_once_and_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    make_keys(str(folder))
    for name in ("controller", "agent"):
        secret = folder / f"{name}.key_secret"
        assert secret.stat().st_mode & 0o077 == 0
        public, private = _secret_key(secret)
        assert _key(folder / f"{name}.key") == (public, None)
        assert len(private) == 40
    with pytest.raises(InputError, match="already contains keys"):
        make_keys(str(folder))


@pytest.mark.parametrize("node", ["../n", "a/b", ".n", "agent", "controller", "n\n"])
def test_names_of_nodes_that_cannot_be_names_of_files(
    tmp_path: Path, node: str
) -> None:
    with pytest.raises(InputError, match="cannot be the name of a key file"):
        make_keys(str(tmp_path), node)
    assert list(tmp_path.iterdir()) == []


def test_only_its_own_key_speaks_for_a_node_that_has_one(tmp_path: Path) -> None:
    make_keys(str(tmp_path))
    trusted = TrustedKeys(tmp_path)
    for node in ("n1", "n2.cluster"):
        make_keys(str(tmp_path), node)
    names = ("agent", "controller", "n1", "n2.cluster")
    keys = {name: _key(tmp_path / f"{name}.key")[0] for name in names}
    assert [name for name in names if trusted.callback("", keys[name])] == ["agent"]
    trusted.load()
    assert not trusted.callback("", keys["controller"])
    pairs = {
        (name, node)
        for name in names
        for node in ("n1", "n2.cluster", "n3", "agent", "controller")
        if trusted.may_speak_for(keys[name].decode(), node)
    }
    assert pairs == {
        *(("n1", "n1"), ("n2.cluster", "n2.cluster"), ("agent", "n3")),
        *(("agent", "agent"), ("agent", "controller")),
    }
    (tmp_path / "n3.key").touch()
    with pytest.raises(InputError, match=r"n3\.key: is not a valid key file"):
        trusted.load()
    assert trusted.callback("", keys["n1"])


def test_bad_keys(tmp_path: Path) -> None:
    make_keys(str(tmp_path))
    with pytest.raises(InputError, match="contains no secret key"):
        _secret_key(tmp_path / "agent.key")
    (tmp_path / "agent.key_secret").chmod(0o640)
    with pytest.raises(InputError, match="other users can read this secret key"):
        _secret_key(tmp_path / "agent.key_secret")
    (tmp_path / "text").write_text("nothing")
    with pytest.raises(InputError, match="is not a valid key file"):
        _key(tmp_path / "text")
    with pytest.raises(InputError, match="key file does not exist"):
        _key(tmp_path / "missing")


def test_no_place_for_keys() -> None:
    with pytest.raises(InputError, match="keys cannot be created"):
        make_keys("/dev/null/keys")


@pytest.mark.parametrize("address", ["nonsense", "tcp://", "tcp://127.0.0.1:x"])
def test_bad_addresses(address: str) -> None:
    with (
        zmq.Context() as context,
        context.socket(zmq.ROUTER) as socket,
        pytest.raises(InputError, match="write tcp://HOST:PORT"),
    ):
        attach(socket.bind, address)


def test_the_keys_and_the_address_of_a_client_are_checked(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    make_keys(str(keys))
    check_client(keys, "tcp://127.0.0.1:4713")
    with pytest.raises(InputError, match="write tcp://HOST:PORT"):
        check_client(keys, "127.0.0.1")
    (keys / "controller.key").unlink()
    with pytest.raises(InputError, match="does not exist"):
        check_client(keys, "tcp://127.0.0.1:4713")


def test_new_keys_are_noticed_once_and_when_they_are_complete(tmp_path: Path) -> None:
    make_keys(str(tmp_path))
    watch = KeyWatch(tmp_path)
    assert [watch.has_changed() for _ in range(2)] == [False, False]
    for name in ("agent", "controller"):
        (tmp_path / f"{name}.key").rename(tmp_path / "kept")
        (tmp_path / f"{name}.key").write_bytes((tmp_path / "kept").read_bytes())
        # Another file may follow.
        assert not watch.has_changed()
    assert [watch.has_changed() for _ in range(3)] == [True, False, False]


def test_a_folder_that_is_gone_is_no_change(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    make_keys(str(keys))
    watch = KeyWatch(keys)
    keys.rename(tmp_path / "away")
    assert [watch.has_changed() for _ in range(3)] == [False] * 3
    (tmp_path / "away").rename(keys)
    assert [watch.has_changed() for _ in range(3)] == [False] * 3
