# SPDX-License-Identifier: MIT
"""All kinds of files: reading, and mistakes with their places."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.model.documents import (
    checked_fields,
    inside,
    listed,
    parsed,
    parsed_name,
    parsed_phases,
    parsed_profile,
    read_document,
    top_fields,
    write_document,
)
from penstock.units import parse_time

CONTENT = json.dumps({"penstock": 1, "window": [0, 1.5], "name": "x" * 99}).encode()

# --- There and back ---------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_a_written_document_is_read_back(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"file.{ending}"
    write_document({"a": [1, 2.5, "x", None]}, path)
    assert read_document(str(path)) == {"a": [1, 2.5, "x", None]}
    first = path.read_bytes()
    assert (first[:2] == b"\x1f\x8b") == (ending == "json.gz")
    write_document({"a": [1, 2.5, "x", None]}, str(path))
    assert path.read_bytes() == first


# --- Places -----------------------------------------------------------------------


def test_quantities_come_in_base_units() -> None:
    assert parsed(parse_time, "2 min", "window[0]") == 120.0
    phases = parsed_phases([["work", "1 h"], ["io", "2 KiB"], ["io", 5]])
    assert phases == [("work", 3600.0), ("io", 2048.0), ("io", 5.0)]
    assert parsed_profile(["1 kB/s", 2]) == [1000.0, 2.0]
    assert parsed_name("climate") == "climate"
    assert checked_fields({"a": 1, "b": 2}, {"a"}, {"b", "c"}) == {"a": 1, "b": 2}


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "format": (lambda: top_fields({"penstock": 2}, set()), "penstock: format 2 is not"),
    "missing": (lambda: top_fields({"penstock": 1}, {"a"}), "key 'a' is missing"),
    "unknown": (lambda: checked_fields({"b": 1}, set(), {"a"}), "unknown key 'b' (k"),
    "object": (lambda: checked_fields([], set()), "not an object (write {...})"),
    "list": (lambda: listed({}, "phases"), "phases: not a list (write [...])"),
    "name": (lambda: parsed_name(3), "name: 3 is not a name"),
    "time": (
        lambda: parsed(parse_time, "soon", "start"),
        "start: 'soon' is not a time",
    ),
    "phases": (lambda: parsed_phases("x"), "phases: not a list"),
    "phase": (lambda: parsed_phases([["io", 1], 3]), "phases[1]: 3 is not a phase"),
    "kind": (lambda: parsed_phases([["oi", 1]]), "phases[0]: unknown kind of phase"),
    "profile": (lambda: parsed_profile(3), "bandwidth: not a list"),
    "empty": (lambda: parsed_profile([]), "bandwidth: the list of bandwidths is empty"),
    "gap": (
        lambda: parsed_profile([1, None]),
        "bandwidth[1]: the bandwidth is missing",
    ),
    "zero": (lambda: parsed_profile([0]), "bandwidth[0]: 0 is not a positive"),
    "negative": (lambda: parsed_profile([1, -1]), "bandwidth[1]: -1 is not a positive"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_gets_one_message_with_its_place(case: str) -> None:
    read, message = MISTAKES[case]
    with pytest.raises(InputError) as caught:
        read()
    assert str(caught.value).startswith(message)


def test_places_nest() -> None:
    with (
        pytest.raises(InputError, match=r"^f\.json: platform\.rate: too low$"),
        inside("f.json: "),
        inside("platform"),
    ):
        raise InputError("too low", where="rate")


# --- What cannot be read ----------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b'{"penstock": 1,}',
        b'{"penstock": NaN}',
        b'{"penstock": Infinity}',
        b'{"penstock": 1e999}',
        b'{"penstock": 1} x',
        b'{"pen\xff": 1}',
        b"\x00\x01",
        b"a = " + b"[" * 100_000,
        b"[" * 100_000,
        b'{"a": {"x": 1, "y": 2, "x": 3}}',
    ],
    ids=lambda data: ascii(data[:16]),
)
def test_a_file_that_is_not_json_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_document(path)
    assert str(caught.value).startswith(f"{path}: not JSON")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b" \n", "the file is empty"),
        (b"\x80\xfe\x00\x17", "it is not text in UTF-8"),
        (b"\xef\xbb\xbf{}", "begins with a byte-order mark"),
        ('{"a": 1}'.encode("utf-16"), "begins with a byte-order mark"),
        (b'{"a": 1,\n\n  "b" 2}', "Expecting ':' delimiter: line 3, column 7"),
        (b'{"a": 1,\n', "line 2, column 1"),
        (b'{"a": "NaN",\n "b": [1, NaN]}', "NaN is not a number: line 2, column 11"),
        (b'{"\\"Infinity": -Infinity}', "-Infinity is not a number: line 1, column 16"),
    ],
)
def test_an_error_in_json_is_reported_with_its_place(
    tmp_path: Path, data: bytes, message: str
) -> None:
    (tmp_path / "file.json").write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_document(tmp_path / "file.json")
    assert caught.value.what.startswith("not JSON: ")
    assert message in caught.value.what


def test_an_incomplete_gz_file_is_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "file.json.gz"
    whole = gzip.compress(b'{"penstock": 1}')
    for data in (whole[:-10], whole[:5], b"no gzip"):
        path.write_bytes(data)
        with pytest.raises(InputError, match="the file is damaged or incomplete"):
            read_document(path)


def test_a_missing_format_is_shown_as_it_must_be_written() -> None:
    with pytest.raises(InputError) as caught:
        top_fields({"a": 1}, {"a"})
    assert str(caught.value) == "key 'penstock' is missing (add \"penstock\": 1)"


#: Expected kind of file -> its keys, and the other kinds that are recognised.
OTHERS = {
    "an instance": (
        {"platform", "window"},
        {"resources": 3},
        "this is a placement problem",
    ),
    "a problem": ({"resources"}, {"platform": {}, "window": []}, "this is an instance"),
    "a result": (
        {"resources"},
        {"penstock": 1, "provenance": {}},
        "this is a result of",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_another_kind_of_file_is_named(case: str) -> None:
    required, document, message = OTHERS[case]
    with pytest.raises(InputError) as caught:
        top_fields(document, required)
    assert str(caught.value).startswith(message)


def test_a_study_file_is_recognised_though_it_is_not_json(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("[sweep]\npressure = [0.5]\n")
    with pytest.raises(
        InputError, match=r"s\.toml: this is a study \(penstock study read"
    ):
        read_document(path)


def _damaged(position: int) -> bytes:
    data = bytearray(gzip.compress(CONTENT, mtime=0))
    data[position] ^= 0xFF
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", _damaged(0), _damaged(10), _damaged(40), _damaged(-6)],
    ids=["empty", "plain", "magic", "block", "middle", "checksum"],
)
def test_a_damaged_gz_file_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file.json.gz"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        read_document(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_truncated_gz_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.json.gz"
    path.write_bytes(gzip.compress(CONTENT)[:-9])
    with pytest.raises(InputError, match="cannot read the file"):
        read_document(path)


def test_a_duplicate_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text('{"penstock": 1, "applications": [], "penstock": 1}')
    with pytest.raises(InputError, match="not JSON: the key 'penstock' occurs twice"):
        read_document(path)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the file: No such file"):
        read_document(tmp_path / "none.json")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read the file: Is a directory"):
        read_document(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text("{}")
    path.chmod(0)
    with pytest.raises(InputError, match="cannot read the file: Permission denied"):
        read_document(path)


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[0m", "", 3])
def test_a_name_is_one_line(name: object) -> None:
    with pytest.raises(InputError, match="is not a name"):
        parsed_name(name)


def test_a_device_has_no_end() -> None:
    with pytest.raises(InputError, match="/dev/zero: this is a device"):
        read_document("/dev/zero")


@pytest.mark.parametrize("version", [2, "1", None, True])
def test_the_version_is_checked_before_the_keys(version: object) -> None:
    with pytest.raises(InputError, match=r"^penstock: format .* is not known"):
        top_fields({"penstock": version, "novelty": 1}, {"window"})
