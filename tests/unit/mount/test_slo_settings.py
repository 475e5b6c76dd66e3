# SPDX-License-Identifier: MIT
"""The file of --slo: its content, and one message with a place for each mistake."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.live.wire.curve import make_keys
from penstock.mount.limits import Limits
from penstock.mount.rules import Rule
from penstock.mount.service import why_unmet
from penstock.mount.slo_settings import read_document, slo_settings_from
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


def test_all_keys_of_a_file_are_read() -> None:
    settings = slo_settings_from(document())
    assert settings.scheduler.label == "sfq:depth=3"
    assert settings.slos == {"viz": Slo(10e6, 0.05), "bulk": Slo(40e6, 1.0)}
    assert settings.rules == (Rule("viz", program="para*", path="/frames", user=12),)
    assert settings.default == "bulk"
    assert settings.has_condition("program", "job")
    assert not settings.has_condition("cgroup", "job")


def test_all_keys_but_applications_may_be_left_out() -> None:
    settings = slo_settings_from({"applications": {}})
    assert settings.scheduler.name == "two-level"
    assert (settings.slos, settings.rules, settings.default) == ({}, (), "other")


@pytest.mark.parametrize("rate", [1000, "1000/s", " 1000.0 /s", 1e3])
def test_operations_are_limited_per_application(rate: object) -> None:
    entry = {"throughput": "1 MB/s", "latency": "1 s"}
    applications = {"viz": entry | {"operations": rate}, "bulk": entry}
    settings = slo_settings_from(document(applications=applications))
    assert settings.operations == {"viz": 1000.0}


@pytest.mark.parametrize("rate", ["0/s", 0, "-1/s", "fast", "5 MB/s", "nan", "inf/s"])
def test_a_rate_of_operations_that_is_none_is_refused(rate: object) -> None:
    with pytest.raises(InputError, match=r"applications\.viz\.operations"):
        slo_settings_from(application(operations=rate))


def test_bandwidth_is_limited_per_application() -> None:
    entry = {"throughput": "1 MB/s", "latency": "1 s"}
    applications = {"viz": entry | {"bandwidth": "20 MB/s"}, "bulk": entry}
    settings = slo_settings_from(document(applications=applications))
    assert settings.caps == {"viz": 20e6}


@pytest.mark.parametrize("rate", [0, "-1 MB/s", "fast", "999 kB/s", "1000/s"])
def test_a_bandwidth_below_the_promise_or_without_sense_is_refused(
    rate: object,
) -> None:
    with pytest.raises(InputError, match=r"applications\.viz\.bandwidth"):
        slo_settings_from(application(bandwidth=rate))


def application(**changes: Any) -> dict[str, Any]:
    entry = {"throughput": "1 MB/s", "latency": "1 s"} | changes
    return document(applications={"viz": entry, "bulk": entry})


@pytest.mark.parametrize(
    ("given", "where", "message"),
    [
        (application(throughput=0), "applications.viz.throughput", "not positive"),
        (application(throughput="-5 MB/s"), "applications.viz.throughput", "positive"),
        (application(latency="0 s"), "applications.viz.latency", "not positive"),
        (application(latency=-1.0), "applications.viz.latency", "not positive"),
        (application(latency="fast"), "applications.viz.latency", "not a time"),
        (application(latency="nan"), "applications.viz.latency", "finite"),
        (application(mounts=0), "applications", "at least 1"),
        (application(share=1), "applications", "share"),
        (document(default="no"), "default", "unknown application 'no'"),
        (
            document(rules=[{"application": "wiz", "user": 1}]),
            "rules[0].application",
            "did you mean 'viz'",
        ),
        (document(rules=[{"application": "viz"}]), "rules[0]", "no condition"),
        (
            document(rules=[{"application": "viz", "group": "no such group"}]),
            "rules[0].group",
            "no group",
        ),
        (
            document(rules=[{"application": "viz", "user": "no such user"}]),
            "rules[0].user",
            "no user",
        ),
        *(
            (
                document(rules=[{"application": "viz", "path": path}]),
                "rules[0].path",
                f"{path!r} is not a path below the mount point",
            )
            for path in ("..", "../x", "/a/../../x")
        ),
        (document(rules=[{"application": "viz", "color": 1}]), "rules", "color"),
        (document(scheduler="lifo"), "", "unknown scheduler 'lifo'"),
        (document(scheduler="sfq:depth=-1"), "depth", "out of range"),
        (document(metadata_depth=0), "metadata_depth", "at least 1"),
        (document(metadata_depth=33), "metadata_depth", "at most 32"),
        (document(metadata_depth="8"), "metadata_depth", "got a text"),
        (document(colour="red"), "", "unknown key 'colour'"),
        (document(rule=[]), "", "did you mean 'rules'"),
        (application(latncy="1 s"), "applications", "did you mean 'latency'"),
        ({}, "", "applications"),
        (document(applications=[1]), "applications", "a table of keys, got a list"),
        (
            document(applications={"x" * 65: {"throughput": 1, "latency": 1}}),
            "applications",
            "not a valid name",
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
def test_a_mistake_gets_one_message_with_its_place(
    given: dict[str, Any], where: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        slo_settings_from(given)
    assert where in caught.value.where
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", ["a/b", "/a//b/", "./a/./b", "/a/b"])
def test_a_path_has_the_form_in_which_the_kernel_names_files(path: str) -> None:
    (rule,) = slo_settings_from(
        document(rules=[{"application": "viz", "path": path}])
    ).rules
    assert rule.path == "/a/b"


def test_slos_above_the_limit_are_reported_with_both_numbers() -> None:
    settings = slo_settings_from(document())
    assert why_unmet(settings, Limits(total=60e6)) == ""
    assert why_unmet(settings, Limits()) == ""
    text = why_unmet(settings, Limits(total=40e6))
    assert "50 MB/s" in text
    assert "40 MB/s" in text


def with_exchange(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    keys = tmp_path / "keys"
    if not keys.exists():
        make_keys(str(keys))
    controller = "tcp://127.0.0.1:4713"
    entry = {"controller": controller, "keys": str(keys), "storage": "s"}
    return document(exchange=entry | changes)


def test_an_exchange_is_read(tmp_path: Path) -> None:
    settings = slo_settings_from(with_exchange(tmp_path)).exchange
    assert settings is not None
    assert settings.controller == "tcp://127.0.0.1:4713"
    assert (settings.keys, settings.storage) == (tmp_path / "keys", "s")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"controller": "nowhere"}, "write tcp://HOST:PORT"),
        ({"keys": "/no/such/folder"}, "key file does not exist"),
        ({"storage": ""}, "storage"),
        ({"peers": []}, "known: controller, keys, storage"),
    ],
)
def test_a_mistake_in_an_exchange_names_its_place(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        slo_settings_from(with_exchange(tmp_path, **changes))
    assert "exchange" in caught.value.where
    assert message in str(caught.value)


def test_a_key_is_secret(tmp_path: Path) -> None:
    given = with_exchange(tmp_path)
    (tmp_path / "keys" / "agent.key_secret").chmod(0o644)
    with pytest.raises(InputError, match="other users can read"):
        slo_settings_from(given)


def test_service_at_other_mounts_is_inferred_or_reported_not_both(
    tmp_path: Path,
) -> None:
    given = with_exchange(tmp_path)
    given["applications"]["viz"]["mounts"] = 4
    with pytest.raises(InputError, match="cannot be combined"):
        slo_settings_from(given)
    del given["exchange"]
    assert slo_settings_from(given).layout == {"viz": 4}


def test_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_document(str(tmp_path / "no"))
    (tmp_path / "bad").write_text("= 1")
    with pytest.raises(InputError, match="is not a TOML file"):
        read_document(str(tmp_path / "bad"))
    (tmp_path / "binary").write_bytes(os.urandom(100) + b"\xff")
    with pytest.raises(InputError, match="is not a TOML file"):
        read_document(str(tmp_path / "binary"))


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        (
            {"apps": {}},
            "applications, default, exchange, metadata_depth, rules, scheduler",
        ),
        (
            {"applications": {"a": {"rate": 1}}},
            "bandwidth, latency, mounts, operations, throughput",
        ),
        (
            {"applications": {}, "rules": [{"host": "a"}]},
            "application, cgroup, group, job, path, program, slurm_job, user",
        ),
    ],
)
def test_a_wrong_key_is_answered_with_the_known_ones(
    content: dict[str, Any], keys: str
) -> None:
    with pytest.raises(InputError) as caught:
        slo_settings_from(content)
    assert f"known: {keys})" in str(caught.value)
