# SPDX-License-Identifier: MIT
"""``penstock ctl``: the request of every action, mistakes, changes of SLOs."""

from __future__ import annotations

import argparse
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.cli import main
from penstock.cli.live import ctl
from penstock.errors import InputError, UnknownNameError
from penstock.live.wire import messages
from support.archives import record, run


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    ctl.setup_parser(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "request_message"),
    [
        ("status", messages.GetStatus()),
        ("explain climate", messages.ExplainJob("climate")),
        ("policy fcfs", messages.SetPolicy("fcfs")),
        ("bandwidth 2GB/s", messages.SetBandwidth(2e9)),
        ("limit climate 1MB/s", messages.SetLimit("climate", 1e6)),
        ("limit climate none", messages.SetLimit("climate", inf)),
        ("hint climate 3GB", messages.HintVolume("climate", 3e9)),
        ("on", messages.SetMode("control")),
        ("dry-run", messages.SetMode("dry-run")),
        ("off", messages.SetMode("off")),
    ],
)
def test_every_action_sends_its_request(words: str, request_message: object) -> None:
    assert ctl._request_of(parsed(*words.split())) == request_message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("bandwidth", "0 B/s"), "RATE: 0 is not positive"),
        (("bandwidth", "5"), "RATE: '5' has no unit"),
        (("limit", "a", "-1 MB/s"), "RATE: "),
        (("hint", "a", "0 B"), "VOLUME: 0 is not positive"),
        (("bandwidth", "lern"), "RATE: 'lern' is not a bandwidth .did you mean learn"),
        (("bandwidth", "measure"), "RATE: .* measured only when the daemon starts"),
        (("bandwidth", "20 mb/s"), "RATE: .*did you mean MB/s"),
        (("limit", "a", "0"), "RATE: a limit of 0 would stop .*none removes the limit"),
        (("limit", "a", "nono"), "RATE: 'nono' is not a bandwidth .did you mean none"),
        (("limit", "a", "learn"), "RATE: 'learn' is not a bandwidth .write a rate"),
    ],
)
def test_quantities_must_be_positive_and_have_units(
    words: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ctl._request_of(parsed(words[0], "--", *words[1:]))


@pytest.mark.parametrize(
    "words",
    [
        "--folder /f --json - ACTION",
        "ACTION --folder /f --json -",
        "--json - ACTION --folder /f",
        "--folder /other --json x ACTION --folder=/f --json=-",
    ],
)
@pytest.mark.parametrize("action", ["status", "limit job 1MB/s", "slo /mnt new.toml"])
def test_options_stand_before_or_after_the_action(words: str, action: str) -> None:
    arguments = parsed(*words.replace("ACTION", action).split())
    assert (arguments.setting_folder, arguments.json) == ("/f", "-")
    assert arguments.settings is None
    assert arguments.action == action.split(maxsplit=1)[0]


@pytest.mark.parametrize(
    ("mode", "text"),
    [
        ("control", "policy fcfs shares 2 GB/s"),
        ("dry-run", "policy fcfs shares 2 GB/s on paper, and no call is held up"),
        ("off", "no call is held up"),
    ],
)
def test_a_change_of_the_mode_says_what_it_means(mode: str, text: str) -> None:
    status = messages.StatusDocument(mode, "fcfs", 2e9, None, ["n"], 1, [], [])
    assert ctl._effect(status) == text


def line(name: str = "a", **changes: Any) -> messages.JobStatus:
    """Return the status of a job that draws all of its grant."""
    facts: dict[str, Any] = {
        "job_name": name, "user": 7, "nodes": ["n"], "cap": 2e9, "limit": None,
        "active": True, "waiting": False, "lent": False, "grant": 1e9, "demanded": 1e9,
        "drawn_bytes_per_s": 1e9, "volume_bytes": 1e9, "remaining_bytes": 1e9,
        "moved_bytes": 1e9, "held_up_s": 1.5, "age_s": 9.0, "lost_s": 0.0,
        "progress_yield": 1.0, "operations": 1, "bypass_setups": 0,
        "uncontrolled_bytes": 0.0, "staged_bytes": 0.0, "why": "", "would_hold_up_s": 8,
    }  # fmt: skip
    return messages.JobStatus(**facts | changes)


def status(
    *jobs: messages.JobStatus,
    mode: str = "control",
    storages: tuple[messages.StorageStatus, ...] = (),
) -> messages.StatusDocument:
    return messages.StatusDocument(
        mode, "fcfs", 2e9, None, ["n"], 1, [], list(jobs), list(storages)
    )


def test_the_status_of_one_job_is_shown() -> None:
    assert parsed("status", "a", "--json", "-").job == "a"
    assert parsed("status").job is None
    both = status(line("a"), line("bert"))
    assert ctl._only(both, None) is both
    assert [job.job_name for job in ctl._only(both, "7:bert").jobs] == ["bert"]
    with pytest.raises(UnknownNameError, match=r"unknown job 'bort' .did you mean"):
        ctl._only(both, "bort")
    table = ctl._table(ctl._only(both, "a")).splitlines()
    assert [row.split()[0] for row in table[1:]] == ["job", "a"]


@pytest.mark.parametrize(
    ("belief", "text"),
    [
        ((40.2e6, "why", 12.0), "about 40 MB/s for writes: why, 12 s ago"),
        ((40.2e6, "why", None, 39e6, 41e6), "about 40 MB/s for writes: why"),
        (
            (40.2e6, "why", None, 30e6, 1.26e9),
            "about 40 MB/s (30 MB/s to 1.3 GB/s in the last minute) for writes: why",
        ),
    ],
)
def test_a_learnt_bandwidth_is_shown_as_precisely_as_it_is_known(
    belief: tuple[Any, ...], text: str
) -> None:
    beliefs = {"writes": messages.BandwidthBelief(*belief)}
    storage = messages.StorageStatus("n", 4e7, True, "writes", beliefs, 2)
    assert ctl._belief_lines(storage) == [f"n: {text}"]


@pytest.mark.parametrize(
    ("jobs", "why"), [(1, "no two jobs have met"), (2, "it is being learnt")]
)
def test_why_a_bandwidth_is_not_known_yet(jobs: int, why: str) -> None:
    storage = messages.StorageStatus("", None, True, "", {}, jobs)
    assert ctl._belief_lines(storage) == [f"bandwidth not known yet, {why}"]


def test_a_past_job_is_explained_without_a_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "archive", (run("7:climate"), []))
    assert main(["ctl", "explain", "climate", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("climate ended ")
    assert main(["ctl", "explain", "a", "--folder", str(tmp_path / "x")]) == 2
    assert "no penstock answers" in capsys.readouterr().err


def test_notes_and_faults_name_users_where_jobs_have_one_name() -> None:
    both = status(line(user=1001, limit=5e6), line(user=1002), line("b", limit=5e6))
    both = msgspec.structs.replace(both, faults=["the folder of job 1001:a is gone"])
    text = ctl._table(both)
    assert "\nann:a is limited to 5 MB/s" in text
    assert "\nb is limited to 5 MB/s" in text
    assert "fault: the folder of job ann:a is gone\n" in text
    assert ctl.in_words("1002:a waits since 10:02", both) == "1002:a waits since 10:02"


def test_a_limit_is_noted_below_the_table() -> None:
    assert ctl._table(status(line(), line("b", limit=5e6))).endswith(
        "b is limited to 5 MB/s: what the limit takes does not lower its yield"
    )


def test_the_table_of_a_dry_run_shows_how_long_calls_would_wait() -> None:
    assert "held up" in ctl._table(status(line()))
    assert "1.5 s" in ctl._table(status(line()))
    table = ctl._table(status(line(), mode="dry-run"))
    assert "would wait" in table
    assert "held up" not in table
    assert "8.0 s" in table


def test_without_control_jobs_are_off_and_not_idle() -> None:
    head, *_, row, note = ctl._table(
        status(line(active=False, drawn_bytes_per_s=0.0), mode="off")
    ).splitlines()
    assert head.startswith("control off")
    assert row.split()[:4] == ["a", "off", "-", "-"]
    assert note == "control is off: what jobs read and write is not counted"


def test_a_mean_draw_above_the_grant_gets_a_note() -> None:
    note = "drawn is a mean of the last 0.5 s or more, granted is the rate now"
    assert note not in ctl._table(status(line()))
    assert ctl._table(status(line(drawn_bytes_per_s=1.2e9))).endswith(note)


def test_a_storage_without_a_name_is_not_named() -> None:
    nameless = messages.StorageStatus("", None, True, "", {})
    named = messages.StorageStatus("n:/disk", None, True, "", {})
    lines = ctl._table(status(storages=(nameless, named))).splitlines()
    words = "bandwidth not known yet, no two jobs have met"
    assert lines[1:3] == [words, f"n:/disk: {words}"]


BEFORE: dict[str, Any] = {
    "scheduler": "sfq",
    "applications": {
        "viz": {"throughput": "1 MB/s", "latency": "1 s"},
        "bulk": {"throughput": "2 MB/s", "latency": "2 s"},
    },
}


def test_one_slo_is_changed_and_the_rest_stays() -> None:
    after = ctl._changed_document(["viz", "5 MB/s", "30 ms"], BEFORE)
    assert after["applications"]["viz"] == {"throughput": "5 MB/s", "latency": "30 ms"}
    assert after["applications"]["bulk"] == BEFORE["applications"]["bulk"]
    assert after["scheduler"] == "sfq"


def test_limits_of_an_application_survive_a_change_of_its_slo() -> None:
    limits = {"operations": "9/s", "bandwidth": "9 MB/s", "mounts": 2}
    before = {"applications": {"viz": {**BEFORE["applications"]["viz"], **limits}}}
    after = ctl._changed_document(["viz", "5 MB/s", "30 ms"], before)
    expected = {"throughput": "5 MB/s", "latency": "30 ms", **limits}
    assert after["applications"]["viz"] == expected


def test_a_file_replaces_the_whole_document(tmp_path: Path) -> None:
    file = tmp_path / "slo.toml"
    file.write_text('[applications.new]\nthroughput = "1 MB/s"\nlatency = "1 s"\n')
    assert list(ctl._changed_document([str(file)], BEFORE)) == ["applications"]
    file.write_text("")
    with pytest.raises(InputError, match="is empty"):
        ctl._changed_document([str(file)], BEFORE)


def test_wrong_changes_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="vis"):
        ctl._changed_document(["vis", "5 MB/s", "30 ms"], BEFORE)
    with pytest.raises(InputError, match="THROUGHPUT: '5' has no unit"):
        ctl._changed_document(["viz", "5", "30 ms"], BEFORE)
    with pytest.raises(InputError, match="LATENCY: '30' has no unit"):
        ctl._changed_document(["viz", "5 MB/s", "30"], BEFORE)
    with pytest.raises(InputError, match="2 words given"):
        ctl._changed_document(["viz", "5 MB/s"], BEFORE)


def test_jobs_of_several_users_are_shown_with_their_users() -> None:
    alone = ctl._table(status(line("a"), line("b"))).splitlines()
    assert alone[1].split()[:2] == ["job", "state"]
    both = ctl._table(status(line("a"), line("a", user=1001))).splitlines()
    assert [row.split()[:3] for row in both[1:]] == [
        ["job", "user", "state"],
        ["a", "7", "moves"],
        ["a", "ann", "moves"],
    ]


@pytest.mark.parametrize("name", ["ann:a", "1001:a"])
def test_the_job_of_a_user_is_shown_by_its_name_or_number(name: str) -> None:
    found = ctl._only(status(line("a"), line("a", user=1001)), name)
    assert [each.user for each in found.jobs] == [1001]


@pytest.mark.parametrize(
    ("words", "request_message"),
    [
        ("explain ann:climate", messages.ExplainJob("1001:climate")),
        ("limit ann:climate 1MB/s", messages.SetLimit("1001:climate", 1e6)),
        ("hint ann:climate 3GB", messages.HintVolume("1001:climate", 3e9)),
        # The name of a job may have a colon.
        ("explain ann:a:b", messages.ExplainJob("1001:a:b")),
        ("explain step:3", messages.ExplainJob("step:3")),
        ("explain ann:", messages.ExplainJob("ann:")),
        ("explain :a", messages.ExplainJob(":a")),
    ],
)
def test_jobs_can_be_named_with_the_names_of_their_users(
    words: str, request_message: object
) -> None:
    assert ctl._request_of(parsed(*words.split())) == request_message


def test_the_status_names_who_is_throttled_and_why() -> None:
    document = status(line("a"))
    document.throttled = [
        messages.ThrottledUser(7, "connections were refused", 9, 2.4, "n1")
    ]
    shown = ctl._table(document).splitlines()[1]
    expected = (
        "throttled: user 7 on n1: connections were refused (9 times, last 2 s ago)"
    )
    assert shown == expected
    named = [messages.ThrottledUser(1001, "refused", 9, 2.4, "n1")]
    assert "user ann (1001) on n1: " in ctl._table(
        msgspec.structs.replace(document, throttled=named)
    )
    assert document.document()["throttled"] == [
        {
            "user": 7,
            "what": "connections were refused",
            "times": 9,
            "age": 2.4,
            "node": "n1",
        }
    ]
