# SPDX-License-Identifier: MIT
"""The parts of the page that need no browser, in Node.js."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.units import format_bandwidth, format_instant, format_volume
from support.waiting import LIMIT_S

STATIC = Path(penstock.__file__).parent / "web" / "static"
NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node.js")


def evaluated(module: str, script: str) -> Any:
    """Return what a script returns that has the names of a module in `module`."""
    text = (
        f"import * as module from {json.dumps((STATIC / module).as_uri())};\n"
        f"const answer = (() => {{ {script} }})();\n"
        "process.stdout.write(JSON.stringify(answer));\n"
    )
    # The files are modules; nothing beside them says so to Node.js.
    options = ["--experimental-default-type=module", "--no-warnings"]
    done = subprocess.run(
        [str(NODE), *options, "--input-type=module", "-e", text],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    if "bad option" in done.stderr:
        pytest.skip("needs Node.js 18.19 or newer")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_amounts_are_printed_as_in_the_terminal() -> None:
    amounts = [0.0, 1.0, 999.0, 1e3, 12345.0, 2.0**23, 8e6, 1.5e9, 2.0**40, 3e15]
    likes = [8e6, 2.0**23, 1e9]
    script = (
        f"return {json.dumps(likes)}.map((like) => {json.dumps(amounts)}.map("
        "(amount) => [module.volume(amount, like), module.rate(amount, like)]));"
    )
    expected = [
        [
            [format_volume(amount, like), format_bandwidth(amount, like)]
            for amount in amounts
        ]
        for like in likes
    ]
    assert evaluated("format.js", script) == expected


def test_times_have_a_unit_that_can_be_read() -> None:
    script = "return [0, 5.8e-5, 0.03, 0.1, 90, 600, 7200, 3e5].map(module.duration);"
    expected = ["0 s", "58 µs", "30 ms", "0.1 s", "90 s", "10 min", "2 h", "3.472 d"]
    assert evaluated("format.js", script) == expected


def test_an_axis_has_round_steps() -> None:
    script = "return [57.37e6, 1, 9.9e9, 100].map((most) => module.roundSteps(most));"
    assert evaluated("format.js", script) == [
        [0, 20e6, 40e6],
        [0, 0.5, 1],
        [0, 5e9],
        [0, 50, 100],
    ]
    script = "return module.roundSteps(10 * 2 ** 20, 8 * 2 ** 20);"
    assert evaluated("format.js", script) == [0, 5 * 2**20, 10 * 2**20]


def test_instants_are_written_as_in_the_terminal() -> None:
    seconds = [1_700_000_000.0, 1_700_003_600.0]
    script = (
        f"const [at, now] = {json.dumps(seconds)};"
        "return [module.instant(at), module.clock(at, now),"
        "  module.clock(at, now + 200000), module.axisTime(at, 86400)];"
    )
    text = format_instant(seconds[0])
    shown = text if text[:10] != format_instant(seconds[1])[:10] else text[11:]
    assert evaluated("format.js", script) == [text, shown, text, text[:16]]


def test_a_user_has_a_name_beside_the_number() -> None:
    script = """
        return [module.userName(7, { 7: "ann" }), module.userName(8, { 7: "ann" }),
          module.userName(9)];
    """
    assert evaluated("format.js", script) == ["ann (7)", "8", "9"]


def test_two_jobs_of_one_name_are_told_apart() -> None:
    script = "return [...module.labelsOf(['0:sim', '7:sim', '7:a']).values()];"
    assert evaluated("format.js", script) == ["0:sim", "7:sim", "a"]


PALETTE = "const palette = new module.Palette({ matches: false });"


def test_a_job_keeps_its_colour_when_others_come_and_go() -> None:
    script = (
        PALETTE
        + """
        const seen = [];
        for (const keys of [["7:a", "7:b"], ["7:b"], ["7:c", "7:d", "7:a", "7:b"]]) {
          palette.assign(keys);
          seen.push(palette.colour("7:b"));
        }
        const other = new module.Palette({ matches: false });
        other.assign(["7:b"]);
        return [...seen, other.colour("7:b")];
    """
    )
    assert len(set(evaluated("stack.js", script))) == 1


def test_jobs_that_are_drawn_together_have_different_colours() -> None:
    script = (
        PALETTE
        + """
        const keys = (from) => Array.from({ length: 10 }, (_, at) => `7:${from + at}`);
        return [0, 5, 40].map((first) => {
          palette.assign(keys(first));
          return new Set(keys(first).map((key) => palette.colour(key))).size;
        });
    """
    )
    assert evaluated("stack.js", script) == [10, 10, 10]


def test_a_burst_is_cut_off_near_the_bandwidth() -> None:
    script = """
        const point = (rate, bandwidth = 10) => (
          { time: 1, bandwidth, rates: new Map([["7:a", rate]]), others: 0 });
        return [[8], [10.001], [11], [1900]].map((rates) => module.highest(
          rates.map((rate) => point(rate)))).concat(module.highest([point(70, null)]));
    """
    assert evaluated("stack.js", script) == [10, 10, 11, 12.5, 70]


def test_a_change_is_told_with_the_value_of_now() -> None:
    status = {
        "policy": "fair-share",
        "bandwidth": 12e6,
        "mode": "control",
        "storages": [{"learns": False}],
        "jobs": [{"user": 7, "job": "a", "limit": None}],
    }
    acts = [
        {"act": "policy", "policy": "fcfs"},
        {"act": "bandwidth", "bandwidth": "12000000.0 B/s"},
        {"act": "limit", "job": "a", "limit": "3 MB/s"},
        {"act": "mode", "mode": "dry-run"},
    ]
    script = (
        f"const status = {json.dumps(status)};"
        f"return {json.dumps(acts)}.map((act) => module.changeWords(act, status));"
    )
    assert evaluated("operate.js", script) == [
        "Policy: fair-share \u2192 fcfs",
        "Shared bandwidth: 12 MB/s \u2192 12 MB/s",
        "Limit of a: none \u2192 3 MB/s",
        "Control: on \u2192 dry run",
    ]


def test_points_are_joined_by_their_instants() -> None:
    script = """
        const points = Array.from({ length: 3600 }, (_, at) => ({
          time: 1e6 + at, bandwidth: 10, rates: new Map([["7:a", at % 2]]), others: 1,
          holds: 5 }));
        const early = module.thinned(points);
        const late = module.thinned(points.slice(3));
        return [early.length, early[9], late[9], [...early[9].rates]];
    """
    length, early, late, rates = evaluated("stack.js", script)
    assert length <= 501
    assert early == late
    assert rates == [["7:a", 0.5]]


PICTURE = {
    "times": [100.0, 101.0],
    "bandwidth": [10.0, 10.0],
    "series": [{"job": "7:a", "rates": [3, 4]}],
    "others": [0, 1],
    "reset": True,
}


def _samples(script: str) -> Any:
    start = "const samples = new module.Samples();"
    first = f"samples.addPicture({json.dumps(PICTURE)});"
    return evaluated("samples.js", start + first + script)


def test_a_status_follows_a_picture() -> None:
    status = {
        "time": 102.0,
        "bandwidth": 10.0,
        "jobs": [{"user": 7, "job": "a", "achieved": 9.0}],
        "rates": {"7:a": 5.0},
    }
    script = (
        f"samples.addStatus({json.dumps(status)}, new Set());"
        "return samples.points.map((point) => [point.time, [...point.rates]]);"
    )
    assert _samples(script) == [
        [100.0, [["7:a", 3]]],
        [101.0, [["7:a", 4]]],
        [102.0, [["7:a", 5.0]]],
    ]


def test_small_jobs_of_a_status_are_added_up() -> None:
    rates = {f"7:{n:02}": 100 - n for n in range(20)}
    status = {"time": 102.0, "bandwidth": None, "rates": rates}
    script = (
        f"samples.addStatus({json.dumps(status)}, new Set(['7:19']));"
        "const point = samples.points.at(-1);"
        "return [[...point.rates.keys()], point.others];"
    )
    keys, others = _samples(script)
    assert keys == [*(f"7:{n:02}" for n in range(12)), "7:19"]
    assert others == sum(100 - n for n in range(12, 19))


def test_nothing_is_drawn_over_a_gap() -> None:
    status = {"time": 200.0, "bandwidth": 10.0, "rates": {}}
    script = (
        f"samples.addStatus({json.dumps(status)}, new Set());"
        "const drawn = samples.between(100, 300);"
        "return [drawn.map((each) => [each.time, each.rates.size]), samples.at(150)];"
    )
    assert _samples(script) == [[[100, 1], [101, 1], [106, 0], [200, 0]], None]


def test_times_without_a_daemon_are_unknown_and_not_idle() -> None:
    script = """
        const [oldest, last] = [samples.points[0], samples.points.at(-1)];
        const past = { times: [40, 80], bandwidth: [5, 5], series: [],
          others: [0, 0], unknown: [[0, 50], [90, 2000]] };
        samples.setPast(past, 20, oldest.time);
        samples.push({ ...last, time: last.time + 100 });
        const times = [[30, 2000], [60, 80], [0, 10]];
        return [oldest.time, [last.time + last.holds, last.time + 100],
          times.map(([from, to]) => samples.unknown(from, to)),
          [40, 70, 95].map((time) => samples.at(time) === null)];
    """
    oldest, gap, found, are_unknown = _samples(script)
    # No daemon ran; later one ran, but did not answer for a while.
    assert found == [[[30, 50], [90, oldest], gap], [], [[0, 10]]]
    assert are_unknown == [True, False, True]


def test_an_hour_is_kept() -> None:
    status = {"time": 3700.5, "bandwidth": 10.0, "rates": {}}
    script = (
        f"samples.addStatus({json.dumps(status)}, new Set());"
        "return [samples.oldest, samples.newest];"
    )
    assert _samples(script) == [101.0, 3700.5]


def test_the_archive_is_asked_for_what_is_not_known() -> None:
    past = {**PICTURE, "times": [50.0, 75.0]}
    script = (
        "const before = [samples.unknownPast(50, 101), samples.unknownPast(100, 101),"
        "  samples.unknownPast(10, 20)];"
        f"samples.setPast({json.dumps(past)}, 50, 101);"
        "return [before, samples.unknownPast(50, 101), samples.unknownPast(40, 101),"
        "  samples.between(40, 100).map((point) => point.time)];"
    )
    before, known, more, times = _samples(script)
    assert before == [[50, 101], None, [10, 20]]
    assert known is None
    assert more == [40, 101]
    assert times == [50, 75, 100]


def test_a_shorter_time_is_asked_for_again() -> None:
    past = {**PICTURE, "times": [10.0, 50.0]}
    script = (
        f"samples.setPast({json.dumps(past)}, 10, 101);"
        "return [samples.unknownPast(10, 90), samples.unknownPast(20, 30)];"
    )
    assert _samples(script) == [None, [20, 30]]


@pytest.mark.parametrize(
    "path", sorted(STATIC.glob("*.js")), ids=lambda path: path.name
)
def test_the_syntax_is_right(path: Path) -> None:
    command = [str(NODE), "--experimental-default-type=module", "--check", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )
    assert done.returncode == 0 or "bad option" in done.stderr, done.stderr
