# SPDX-License-Identifier: MIT
"""The file of --slo: what it says, and one message for what is wrong with it."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.mount.limiter import Limits
from penstock.mount.objectives import objectives_from, read_document
from penstock.mount.rules import Rule
from penstock.mount.service import why_unmet
from penstock.qos import Slo

BASE = """
scheduler = "sfq:depth=3"
default = "bulk"
[applications.viz]
throughput = "10 MB/s"
latency = "50 ms"
[applications.bulk]
throughput = 40e6
latency = 1
[[rules]]
application = "viz"
program = "para*"
path = "frames/"
user = 12
"""


def document(text: str = BASE, **changes: Any) -> dict[str, Any]:
    return tomllib.loads(text) | changes


def test_a_file_says_all_there_is() -> None:
    found = objectives_from(document())
    assert found.scheduler.label == "sfq:depth=3"
    assert found.slos == {"viz": Slo(10e6, 0.05), "bulk": Slo(40e6, 1.0)}
    assert found.rules == (Rule("viz", program="para*", path="/frames", user=12),)
    assert found.default == "bulk"
    assert found.present("viz") == "viz"
    assert found.present("gone") == "bulk"


def test_what_may_be_left_out() -> None:
    found = objectives_from({"applications": {}})
    assert found.scheduler.name == "two-level"
    assert (found.slos, found.rules, found.default) == ({}, (), "other")


def application(**changes: Any) -> dict[str, Any]:
    told = {"throughput": "1 MB/s", "latency": "1 s"} | changes
    return document(applications={"viz": told, "bulk": told})


@pytest.mark.parametrize(
    ("given", "where", "what"),
    [
        (application(throughput=0), "applications.viz.throughput", "not positive"),
        (application(throughput="-5 MB/s"), "applications.viz.throughput", "positive"),
        (application(latency="0 s"), "applications.viz.latency", "not positive"),
        (application(latency=-1.0), "applications.viz.latency", "not positive"),
        (application(latency="fast"), "applications.viz.latency", "not a time"),
        (application(latency="nan"), "applications.viz.latency", "finite"),
        (application(mounts=0), "applications", ">= 1"),
        (application(share=1), "applications", "share"),
        (document(default="no"), "default", "unknown application 'no'"),
        (
            document(rules=[{"application": "wiz", "user": 1}]),
            "rules[0].application",
            "did you mean 'viz'",
        ),
        (document(rules=[{"application": "viz"}]), "rules[0]", "no condition"),
        (
            document(rules=[{"application": "viz", "user": "no such user"}]),
            "rules[0].user",
            "no user",
        ),
        (document(rules=[{"application": "viz", "color": 1}]), "rules", "color"),
        (document(scheduler="lifo"), "", "unknown scheduler 'lifo'"),
        (document(scheduler="sfq:depth=-1"), "depth", "out of range"),
        (document(colour="red"), "", "colour"),
        ({}, "", "applications"),
        (document(applications=[1]), "applications", "object"),
        (
            document(applications={"x" * 65: {"throughput": 1, "latency": 1}}),
            "applications",
            "no name",
        ),
        (
            document(
                applications={
                    f"a{n}": {"throughput": 1, "latency": 1} for n in range(257)
                }
            ),
            "applications",
            "too many",
        ),
    ],
)
def test_what_is_wrong_gets_one_message_with_its_place(
    given: dict[str, Any], where: str, what: str
) -> None:
    with pytest.raises(InputError) as caught:
        objectives_from(given)
    assert where in caught.value.where
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_sum_beyond_the_capacity_is_said_with_both() -> None:
    found = objectives_from(document())
    assert why_unmet(found, Limits(total=60e6)) == ""
    assert why_unmet(found, Limits()) == ""
    text = why_unmet(found, Limits(total=40e6))
    assert "47.68 MiB/s" in text
    assert "38.15 MiB/s" in text


def link(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    key = tmp_path / "key"
    key.write_bytes(bytes(32))
    key.chmod(0o600)
    told = {"listen": "127.0.0.1:0", "peers": ["127.0.0.1:9"], "key": str(key)}
    return document(exchange=told | changes)


def test_other_mounts(tmp_path: Path) -> None:
    found = objectives_from(link(tmp_path, threshold="2 MB")).link
    assert found is not None
    assert (found.threshold, found.key) == (2e6, bytes(32))
    assert found.others() == [("127.0.0.1", 9)]


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"listen": "nowhere"}, "exchange.listen"),
        ({"peers": ["127.0.0.1:port"]}, "exchange.peers[0]"),
        ({"peers": ["127.0.0.1:99999"]}, "exchange.peers[0]"),
        ({"threshold": 0}, "exchange.threshold"),
        ({"key": "/no/such/key"}, "exchange.key"),
    ],
)
def test_what_is_wrong_with_other_mounts(
    tmp_path: Path, changes: dict[str, Any], where: str
) -> None:
    with pytest.raises(InputError) as caught:
        objectives_from(link(tmp_path, **changes))
    assert where in caught.value.where


def test_a_key_is_secret_and_long(tmp_path: Path) -> None:
    given = link(tmp_path)
    (tmp_path / "key").chmod(0o644)
    with pytest.raises(InputError, match="read by others"):
        objectives_from(given)
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(InputError, match="no key"):
        objectives_from(given)


def test_service_elsewhere_is_inferred_or_told(tmp_path: Path) -> None:
    given = link(tmp_path)
    given["applications"]["viz"]["mounts"] = 4
    with pytest.raises(InputError, match="does not go with"):
        objectives_from(given)
    del given["exchange"]
    assert objectives_from(given).layout == {"viz": 4}


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_document(str(tmp_path / "no"))
    (tmp_path / "bad").write_text("= 1")
    with pytest.raises(InputError, match="is not TOML"):
        read_document(str(tmp_path / "bad"))
    (tmp_path / "binary").write_bytes(os.urandom(100) + b"\xff")
    with pytest.raises(InputError, match="is not TOML"):
        read_document(str(tmp_path / "binary"))
