# SPDX-License-Identifier: MIT
"""Reports between mounts: encoding, signature, garbage."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.mount.exchange import (
    ExchangeSettings,
    decode_report,
    encode_report,
    read_key,
)

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
TOTALS = st.dictionaries(st.text(min_size=1, max_size=9), st.floats(0, 1e18))


@given(TOTALS)
def test_reports_survive_encoding(served: dict[str, float]) -> None:
    report = decode_report(encode_report("run", served, KEY), KEY)
    assert report is not None
    assert (report.run, report.served, report.wanting) == ("run", served, [])


def test_a_report_names_the_applications_that_want_more() -> None:
    datagram = encode_report("run", {"a": 1.0, "b": 2.0}, KEY, ("b",))
    report = decode_report(datagram, KEY)
    assert report is not None
    assert report.wanting == ["b"]


def test_a_report_without_wishes_is_valid() -> None:
    """Mounts of an earlier version do not send the field."""
    data = b'{"penstock":1,"run":"r","served":{"a":1}}'
    signature = blake2b(data, key=KEY, digest_size=16).digest()
    report = decode_report(signature + data, KEY)
    assert report is not None
    assert report.wanting == []


@given(TOTALS, st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_datagram_is_ignored(
    served: dict[str, float], place: int, change: int
) -> None:
    datagram = bytearray(encode_report("run", served, KEY))
    datagram[place % len(datagram)] ^= change
    assert decode_report(bytes(datagram), KEY) is None


@given(st.binary(max_size=200))
def test_garbage_is_ignored(data: bytes) -> None:
    assert decode_report(data, KEY) is None


def test_another_key_or_a_short_datagram_is_ignored() -> None:
    datagram = encode_report("run", {"a": 1.0}, KEY)
    assert decode_report(datagram, OTHER_KEY) is None
    assert decode_report(encode_report("run", {}, KEY)[:20], KEY) is None


def test_another_version_is_ignored() -> None:
    data = b'{"penstock":2,"run":"r","served":{}}'
    signature = blake2b(data, key=KEY, digest_size=16).digest()
    assert decode_report(signature + data, KEY) is None


def test_addresses_are_resolved() -> None:
    settings = ExchangeSettings("127.0.0.1:0", ("localhost:9",), KEY, 1.0)
    assert settings.listen_address() == ("127.0.0.1", 0)
    assert settings.peer_addresses() == [("127.0.0.1", 9)]
    wrong = ExchangeSettings("127.0.0.1:0", ("localhost:9", "localhost:-1"), KEY, 1.0)
    with pytest.raises(InputError, match=r"exchange\.peers\[1\]: .*not between"):
        wrong.peer_addresses()


@pytest.mark.parametrize("length", [0, 15, 65])
def test_a_key_of_the_wrong_length_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "key"
    path.write_bytes(bytes(length))
    path.chmod(0o600)
    with pytest.raises(InputError, match=f"not a valid key file: {length} bytes"):
        read_key(str(path))
    path.write_bytes(bytes(16))
    assert read_key(str(path)) == bytes(16)
