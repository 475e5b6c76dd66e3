# SPDX-License-Identifier: MIT
"""A frame of ``penstock top``: what a narrow terminal leaves out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

from penstock.cli.live import ctl
from penstock.cli.live.top import _frame
from penstock.live.wire.messages import (
    JobStatus,
    StatusDocument,
    StorageStatus,
    ThrottledUser,
)

NAMES = ("climate-atmosphere", "climate-ocean")


def line(name: str) -> JobStatus:
    """Return a job that moves."""
    amounts: dict[str, Any] = dict.fromkeys(
        (
            "demanded",
            "drawn_bytes_per_s",
            "volume_bytes",
            "remaining_bytes",
            "moved_bytes",
            "held_up_s",
            "age_s",
        ),
        2e9,
    )
    flags: dict[str, Any] = {"active": True, "waiting": False, "lent": False}
    counts: dict[str, Any] = {
        "operations": 1,
        "bypass_setups": 0,
        "uncontrolled_bytes": 0.0,
        "staged_bytes": 0.0,
    }
    rest: dict[str, Any] = {
        "lost_s": 1.0,
        "progress_yield": 0.5,
        "grant": 1e9,
        "why": "",
    }
    facts: dict[str, Any] = {"user": 0, "nodes": ["n"], "cap": 2e9, "limit": None}
    return JobStatus(job_name=name, **facts, **flags, **amounts, **counts, **rest)


def table(width: int, *names: str) -> list[str]:
    """Return the lines of the table in a terminal of this width."""
    jobs = [line(name) for name in names]
    status = StatusDocument("control", "fcfs", 2e9, None, ["n"], 1, [], jobs)
    return shown(status, width).splitlines()[-1 - len(names) :]


def shown(status: StatusDocument, width: int) -> str:
    """Return a frame as a terminal of this width shows it."""
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(_frame(status, width))
    return captured.get()


@pytest.mark.parametrize(
    ("width", "last"), [(40, "share"), (50, "granted"), (80, "lost"), (120, "lost")]
)
def test_columns_are_left_out_from_the_right_and_names_are_whole(
    width: int, last: str
) -> None:
    head, *rows = table(width, *NAMES)
    assert head.split()[-1] == last
    assert {row.split()[0] for row in rows} == set(NAMES)
    assert not any("…" in row for row in rows)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_first_lines_are_not_cut(width: int) -> None:
    agents = ["node-of-the-cluster-1", "node-of-the-cluster-2"]
    status = StatusDocument("control", "fair-share", 2e9, None, agents, 10**6, [], [])
    words = " ".join(shown(status, width).split())
    assert "…" not in words
    assert words.startswith("control on policy fair-share 0 B/s of 2 GB/s drawn 0 jobs")
    assert "1000000 decisions agents: node-of-the-cluster-1, node-of-the-clust" in words
    facts = ("policy fair-share", "0 jobs", "1000000 decisions")
    for fact in facts:
        assert any(fact in row for row in shown(status, width).splitlines())
    many = replace(status, agents=agents * 10)
    assert "agents: 20" in " ".join(shown(many, width).split())


@given(st.integers(20, 150), st.integers(1, 200))
def test_a_long_name_hides_neither_the_others_nor_the_facts(
    width: int, length: int
) -> None:
    head, *rows = table(width, "a" * length, "b")
    assert all(len(row) <= width for row in rows)
    assert rows[0].count("a") >= min(length, width // 2 - 1)
    assert ("state" in head) or width < 30
    assert rows[1].startswith("b ")


@pytest.mark.parametrize(
    ("bandwidth", "moved"), [(None, "20.97 MB"), (1e8, "20.97 MB"), (2.0**23, "20 MiB")]
)
def test_moved_volumes_have_the_units_of_the_bandwidth_or_decimal_ones(
    bandwidth: float | None, moved: str
) -> None:
    job = replace(line("a"), moved_bytes=20.0 * 2**20)
    status = StatusDocument("control", "fcfs", bandwidth, None, ["n"], 1, [], [job])
    console = Console(width=120, color_system=None)
    with console.capture() as captured:
        console.print(_frame(status, 120))
    assert moved in captured.get()
    assert moved in ctl._table(status)


@pytest.mark.parametrize(
    ("learns", "words"), [(True, "of about 110 MB/s"), (False, "of 106.6 MB/s")]
)
def test_a_learnt_bandwidth_has_two_digits(learns: bool, words: str) -> None:
    storage = StorageStatus("", 106.6e6, learns, "writes", {}, 2)
    status = StatusDocument(
        "control", "fcfs", 106.6e6, None, ["n"], 1, [], [], [storage]
    )
    assert words in shown(status, 80)


def test_users_who_take_too_much_are_named_with_the_reason() -> None:
    status = StatusDocument("control", "fcfs", 2e9, None, ["n"], 1, [], [])
    assert "throttled" not in shown(status, 100)
    users = [ThrottledUser(user, "too many posts", 2, 9.0, "n") for user in range(5)]
    users[4] = replace(users[4], age_s=1.0)
    lines = shown(replace(status, throttled=users), 100).splitlines()
    assert [row for row in lines if "throttled" in row] == [
        "throttled: user 4 on n: too many posts (2 times, last 1 s ago)",
        "throttled: user 0 on n: too many posts (2 times, last 9 s ago)",
        "throttled: user 1 on n: too many posts (2 times, last 9 s ago)",
        "throttled: 2 more: penstock ctl status shows all",
    ]


def test_jobs_of_several_users_are_shown_with_their_users() -> None:
    jobs = [line("a"), replace(line("a"), user=1001)]
    status = StatusDocument("control", "fcfs", 2e9, None, ["n"], 1, [], jobs)
    assert "user" not in shown(replace(status, jobs=jobs[:1]), 100)
    rows = shown(status, 100).splitlines()[1:]
    assert [row.split()[1] for row in rows] == ["user", str(jobs[0].user), "ann"]
