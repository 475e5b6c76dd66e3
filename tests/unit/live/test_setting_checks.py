# SPDX-License-Identifier: MIT
"""Settings of a daemon that do not go together, or have no effect."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.errors import InputError
from penstock.live.setting_checks import check_together
from penstock.live.settings import Settings, load_settings

TARGETS = {"targets": "moosefs:/mnt:A,B,C", "job_folder": "/mnt/{job}"}
PLACED = {**TARGETS, "placement": "t-cpu+greedy-non-clairvoyant"}


def check(**values: str) -> None:
    """Check settings as they are written."""
    check_together(load_settings(values, {}, "/dev/null"))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"placement": "static+random"}, "placement: has no effect without `targets`"),
        ({"job_folder": "/x/{job}"}, "job_folder: has no effect without `targets`"),
        ({"target_bandwidths": "1 GB/s", "strategy": "auto"}, "without `targets`"),
        ({**PLACED, "strategy": "3b:by=nodes"}, "not go with the strategy 3b:by=nodes"),
        ({**PLACED, "strategy": "auto"}, "does not go with the strategy auto"),
        ({**TARGETS}, "targets: has no effect: the strategy none does not divide"),
        ({**TARGETS, "strategy": "2a"}, "targets: has no effect: the strategy 2a"),
        ({**TARGETS, "strategy": "auto:use=stage"}, "targets: has no effect"),
        ({**TARGETS, "strategy": "3b", "job_classes": "a=peak"}, "without `placement`"),
        (
            {**TARGETS, "strategy": "3b", "target_bandwidths": "1 GB/s"},
            "target_bandwidths: has no effect without `placement` or a strategy",
        ),
        ({**PLACED, "target_bandwidths": "1 B/s,2 B/s,3 B/s,4 B/s"}, "4 .* 3 targets"),
        ({**PLACED, "targets": "beegfs:/mnt:1,2", "users": "all"}, "for root only"),
        ({"strategy": "auto:use=partition"}, "divides storage targets, and no"),
        ({"strategy": "3a"}, "strategy: 3a divides storage targets, and no `targets`"),
        (
            {"priorities": "urgent=1"},
            "priorities: has no effect with the strategy none",
        ),
        (
            {"priorities": "urgent=1", "strategy": "2b:flush=token"},
            "priorities: has no",
        ),
        ({"strategy": "2b:window=2"}, "window has no effect in 2b:window=2"),
        ({"strategy": "2b:flush=token,window=2"}, "window has no effect"),
        ({**TARGETS, "strategy": "3b:split=halve,by=data"}, "by has no effect"),
    ],
)
def test_settings_without_effect_are_refused(
    values: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        check(**values)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"strategy": "1a"},
        {"strategy": "combined"},
        {"strategy": "auto"},
        {"strategy": "auto:use=stage"},
        {"strategy": "2b:flush=window,window=2"},
        {"strategy": "2b:flush=priority", "priorities": "urgent=1"},
        {**TARGETS, "strategy": "3a"},
        {**TARGETS, "strategy": "3b:by=nodes"},
        {**TARGETS, "strategy": "combined"},
        {**TARGETS, "strategy": "auto", "target_bandwidths": "1 B/s,2 B/s,3 B/s"},
        {**PLACED, "job_classes": "a*=peak", "target_bandwidths": "1 GB/s"},
        {**PLACED, "strategy": "2a"},
        {**PLACED, "strategy": "auto:use=stage"},
        # Nobody knows what a strategy of another package uses.
        {**TARGETS, "strategy": "mine.strategy:window=1", "priorities": "a=1"},
        {**TARGETS, "strategy": "mine.strategy", "target_bandwidths": "1 GB/s"},
        {"join": "tcp://here:1", "bandwidth": "1 GB/s"},
    ],
)
def test_settings_that_work_together(values: dict[str, str]) -> None:
    check(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"strategy": "2a"},
        {"priorities": "urgent=1"},
        {"targets": "moosefs:/mnt:A,B"},
        {"placement": "t-cpu+random"},
        {"job_classes": "a=peak"},
        {"target_bandwidths": "1 GB/s"},
        {"job_folder": "/mnt/{job}"},
    ],
)
def test_an_agent_leaves_staging_to_the_controller(values: dict[str, str]) -> None:
    (name,) = values
    with pytest.raises(InputError, match=f"^{name}: has no effect with `join`"):
        check(join="tcp://here:1", **values)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:9480", "localhost:9480", "[::1]:9480", ":9480", "unix:/run/x"],
)
def test_a_page_for_this_machine_needs_no_tokens(address: str) -> None:
    check_together(Settings(web=address))


@pytest.mark.parametrize("address", ["0.0.0.0:9480", "[::]:9480", "site.example:9480"])
def test_a_page_for_other_machines_needs_tokens(address: str) -> None:
    with pytest.raises(InputError, match=r"web: .* can be reached from other machines"):
        check_together(Settings(web=address))
    check_together(Settings(web=address, web_token="tokens"))  # noqa: S106 - a file


def test_either_a_proxy_or_tokens_say_who_reads() -> None:
    with pytest.raises(InputError, match="web_proxy: does not go with `web_token`"):
        check_together(Settings(web=":1", web_token="x", web_proxy="y"))  # noqa: S106


def test_an_agent_has_no_page() -> None:
    with pytest.raises(InputError, match="web: does not go with `join`"):
        check_together(Settings(web="127.0.0.1:9480", join="tcp://here:1"))


def test_an_agent_that_joins_does_not_import_the_strategies() -> None:
    code = (
        "import sys; from penstock.live.setting_checks import check_together; "
        "from penstock.live.settings import Settings; "
        "check_together(Settings(join='tcp://here:1')); "
        "sys.exit('penstock.staging' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
