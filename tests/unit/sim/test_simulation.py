# SPDX-License-Identifier: MIT
"""`simulate`: by hand, steady and open, in slices, recorded, and in any process."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from penstock.errors import InputError
from penstock.kernels import Floats
from penstock.model import Instance
from penstock.policies import POLICIES, get_policy
from penstock.policies.policy import bind
from penstock.policies.view import View
from penstock.sim import Run, simulate
from penstock.sim.run import EventLog, GrantLog
from penstock.sim.state import COMPLETION, POST, RECORD_LIMIT, WAKE_UP
from unit.samples import app, make, pair, steady_three


def _bits(run: Run) -> tuple[Any, ...]:
    """Return all of a run except the computing time."""
    columns = (run.lost, run.ended, run.work, run.volume)
    return *(c.tobytes() for c in columns), run.events, run.decisions


def recorded(run: Run) -> tuple[EventLog, GrantLog]:
    """Return both logs of a run that kept them."""
    assert run.log is not None
    assert run.grants is not None
    return run.log, run.grants


def _record_bits(run: Run) -> tuple[bytes, ...]:
    log, grants = recorded(run)
    columns = (
        *(log.time, log.kind, log.application),
        *(grants.time, grants.application, grants.rate),
    )
    return tuple(c.tobytes() for c in columns)


# --- By hand ----------------------------------------------------------------------


def test_two_applications_in_turn() -> None:
    run = simulate(pair(), "fcfs", validate=True)
    assert run.lost.tolist() == [0.0, 3.0]
    assert run.work.tolist() == [7.0, 4.0]
    assert run.volume.tolist() == [3.0, 3.0]
    assert run.events == 4
    assert run.decisions == 2
    assert run.ended.tolist() == [10.0, 10.0]
    assert run.policy == "fcfs"
    assert run.seconds >= 0
    assert run.log is None
    assert run.grants is None


def test_two_applications_at_once() -> None:
    run = simulate(pair(), "fair-share", validate=True)
    assert run.lost.tolist() == [3.0, 3.0]
    assert run.work.tolist() == [4.0, 4.0]


def test_a_policy_may_be_given_ready() -> None:
    policy = get_policy("set-10:initial=weight")
    run = simulate(pair(), policy)
    assert run.policy == "set-10:initial=weight"
    assert _bits(run) == _bits(simulate(pair(), "set-10:initial=weight"))


def test_phases_are_cut_pro_rata_at_both_edges() -> None:
    instance = make(
        app("a", ("work", 4.0), ("io", 8.0), ("work", 20.0)),
        app("b", ("io", 20.0), ("work", 20.0), nodes=3),
        bandwidth=4.0,
        window=(1.0, 6.0),
    )
    run = simulate(instance, "fcfs", validate=True)
    assert run.work.tolist() == [3.0, 0.0]
    # a transfers in [4, 6] at 1 B/s; b, posted before it, at 3 B/s all the time.
    assert run.volume.tolist() == [2.0, 15.0]
    assert run.lost.tolist() == [0.0, 0.0]


def test_history_counts_in_the_time_lost_but_not_in_the_window() -> None:
    instance = make(
        app("a", ("io", 20.0), release=-10.0, start=0.0, done_work=6.0, done_volume=1.0)
    )
    run = simulate(instance, "fcfs", validate=True)
    assert run.lost.tolist() == [3.0]
    assert run.volume.tolist() == [10.0]
    assert run.work.tolist() == [0.0]
    assert run.yields.tolist() == [1.0 - 3.0 / 20.0]


# --- Steady and open --------------------------------------------------------------


def _ending() -> Instance:
    return make(
        app("long", ("work", 2.0), ("io", 3.0), ("work", 20.0)),
        app("short", ("work", 2.0), ("io", 3.0), ("work", 1.0)),
    )


@pytest.mark.parametrize("compiled", [True, False])
def test_an_application_that_ends_inside_a_steady_window_is_named(
    compiled: bool,
) -> None:
    with pytest.raises(InputError) as caught:
        simulate(_ending(), "fcfs", compiled=compiled)
    assert caught.value.where == "applications[1]"
    assert "'short' ends at 9 s, inside the window [0, 10]" in caught.value.what
    assert "open runs: --open" in caught.value.remedy


def test_an_application_that_ends_before_the_window_gets_another_message() -> None:
    instance = make(
        app("early", ("work", 1.0)), app("a", ("work", 50.0)), window=(5.0, 10.0)
    )
    with pytest.raises(InputError, match="'early' ends at 1 s, before the window"):
        simulate(instance, "fcfs")


def test_an_application_may_end_inside_an_open_window() -> None:
    run = simulate(_ending(), "fcfs", steady=False, validate=True)
    assert run.ended.tolist() == [10.0, 9.0]
    assert run.lost.tolist() == [0.0, 3.0]
    assert run.work.tolist() == [7.0, 3.0]
    assert run.yields.tolist() == [1.0, 1.0 - 3.0 / 9.0]


def test_all_may_end_inside_an_open_window() -> None:
    instance = make(app("a", ("work", 1.0), ("io", 2.0)))
    run = simulate(instance, "fcfs", steady=False)
    assert run.ended.tolist() == [3.0]
    assert run.volume.tolist() == [2.0]


def test_an_application_without_phases_was_never_delayed() -> None:
    run = simulate(make(app("a")), "fcfs", steady=False)
    assert run.yields.tolist() == [1.0]


def test_an_application_that_ends_with_the_window_is_steady() -> None:
    third = 10.0 / 3.0
    simulate(make(app("a", *[("work", third)] * 3)), "fcfs")
    simulate(make(app("a", ("work", 4.0), ("io", 6.0))), "fcfs")


def test_a_policy_that_gives_nothing_ends_with_the_window() -> None:
    def idle(_view: View, _rates: Floats) -> float:
        return math.inf

    run = simulate(pair(), bind("idle", idle))
    assert run.lost.tolist() == [8.0, 8.0]
    assert run.volume.tolist() == [0.0, 0.0]


# --- In slices --------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("size", [1, 7])
def test_pausing_changes_no_bit(
    monkeypatch: pytest.MonkeyPatch, policy: str, size: int
) -> None:
    whole = simulate(steady_three(), policy, record=True)
    monkeypatch.setattr(sys.modules["penstock.sim.simulation"], "_SLICE", size)
    paused = simulate(steady_three(), policy, record=True)
    assert _bits(paused) == _bits(whole)
    assert _record_bits(paused) == _record_bits(whole)


@pytest.mark.parametrize("policy", ["fcfs", "set-10"])
def test_interpreted_and_compiled_give_the_same_bits(policy: str) -> None:
    compiled = simulate(steady_three(), policy, record=True)
    plain = simulate(steady_three(), policy, record=True, compiled=False)
    assert _bits(plain) == _bits(compiled)
    assert _record_bits(plain) == _record_bits(compiled)


def test_options_that_watch_change_no_bit() -> None:
    bare = simulate(steady_three(), "fair-share")
    watched = simulate(steady_three(), "fair-share", record=True, validate=True)
    assert _bits(watched) == _bits(bare)


# --- The record -------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fcfs", "fair-share", "periodic-greedy-yield"])
def test_the_log_is_in_order_and_counts_the_events(policy: str) -> None:
    run = simulate(steady_three(), policy, record=True)
    log, _grants = recorded(run)
    assert (np.diff(log.time) >= 0).all()
    assert (log.kind != WAKE_UP).sum() == run.events
    assert set(log.kind.tolist()) <= {COMPLETION, POST, WAKE_UP}
    assert (log.application[log.kind == WAKE_UP] == -1).all()
    assert log.time[-1] < run.instance.window.end
    for number in range(3):
        kinds = log.kind[log.application == number]
        assert (kinds[0::2] == POST).all()
        assert (kinds[1::2] == COMPLETION).all()


@pytest.mark.parametrize("policy", ["fcfs", "fair-share", "set-10"])
def test_the_integral_of_the_grants_is_the_volume_transferred(policy: str) -> None:
    instance = make(*steady_three().applications, bandwidth=5.0, window=(0.0, 60.0))
    run = simulate(instance, policy, record=True)
    _log, grants = recorded(run)
    for number in range(3):
        of_application = grants.application == number
        times = np.append(grants.time[of_application], instance.window.end)
        moved = np.diff(times) @ grants.rate[of_application]
        assert moved == pytest.approx(run.volume[number], rel=1e-12)


def test_grants_are_lawful_changes() -> None:
    run = simulate(steady_three(), "set-10", record=True)
    _log, grants = recorded(run)
    held = np.zeros(3)
    last = -math.inf
    for time, number, rate in zip(
        grants.time, grants.application, grants.rate, strict=True
    ):
        if time > last:
            assert held.sum() <= 5.0 * (1 + 1e-9)
        assert rate != held[number]
        assert 0 <= rate <= run.instance.caps[number]
        held[number], last = rate, time


def test_a_record_longer_than_the_limit_is_whole() -> None:
    count = 25_000
    phases = [("work", 1.0), ("io", 1.0)] * count
    instance = make(
        app("a", *phases), app("b", *phases, release=0.5), window=(0.0, 2.0 * count)
    )
    run = simulate(instance, "fair-share", record=True)
    log, grants = recorded(run)
    assert run.events > RECORD_LIMIT
    assert len(log.time) == run.events
    assert (np.diff(log.time) >= 0).all()
    assert (np.diff(grants.time) >= 0).all()
    assert _bits(run) == _bits(simulate(instance, "fair-share"))
    for number in range(2):
        of_application = grants.application == number
        times = np.append(grants.time[of_application], instance.window.end)
        moved = np.diff(times) @ grants.rate[of_application]
        assert moved == pytest.approx(run.volume[number], rel=1e-9)


def test_many_operations_at_one_instant_fit_the_record() -> None:
    empty = [("io", 0.0)] * 70_000
    instance = make(app("a", ("work", 1.0), *empty, ("work", 50.0)))
    run = simulate(instance, "fcfs", record=True)
    log, _grants = recorded(run)
    assert run.events == len(log.time) == 140_000


# --- Any process ------------------------------------------------------------------

_SCRIPT = """
import hashlib
from penstock.sim import simulate
from penstock.workloads import Synthetic
digest = hashlib.sha256()
for policy in ("fair-share", "set-10"):
    digest.update(simulate(Synthetic(horizon=20000.0).instance(1, 0), policy).lost)
print(digest.hexdigest())
"""


def test_two_runs_in_one_process_equal_two_processes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exec(_SCRIPT, {})  # noqa: S102 - our own text
    exec(_SCRIPT, {})  # noqa: S102
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True
    )
    first, second = capsys.readouterr().out.split()
    assert first == second == done.stdout.strip()
