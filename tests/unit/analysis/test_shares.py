# SPDX-License-Identifier: MIT
"""Shares over time of recorded runs, on instances whose schedule is known."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.analysis.shares import share_edges, shares_between
from penstock.sim import simulate
from unit.samples import pair, steady_three


def test_served_in_turn_each_has_all_of_it() -> None:
    run = simulate(pair(), "fcfs", record=True, compiled=False)
    shares = shares_between(run, np.array([0.0, 2.0, 5.0, 8.0, 10.0]))
    assert shares.tolist() == [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]


def test_a_share_is_the_mean_between_two_edges() -> None:
    run = simulate(pair(), "fcfs", record=True, compiled=False)
    shares = shares_between(run, np.array([0.0, 4.0, 6.0]))
    assert shares.tolist() == [[0.5, 0.5], [0.0, 0.5]]


def test_what_was_moved_is_the_volume_of_the_run() -> None:
    run = simulate(steady_three(), "fair-share", record=True, compiled=False)
    window = run.instance.window
    edges = np.linspace(window.begin, window.end, 101)
    shares = shares_between(run, edges)
    moved = (shares * np.diff(edges)).sum(axis=1) * run.instance.platform.bandwidth
    assert moved.tolist() == pytest.approx(run.volume.tolist())
    assert shares.sum(axis=0).max() <= 1.0 + 1e-9


def test_exact_edges_are_where_rates_change() -> None:
    run = simulate(pair(), "fcfs", record=True, compiled=False)
    assert share_edges(run, 10.0, 100, exact=True).tolist() == [0, 2, 5, 8, 10]
    assert share_edges(run, 10.0, 2, exact=True).tolist() == [0.0, 5.0, 10.0]
    assert share_edges(run, 10.0, 4, exact=False).tolist() == [0, 2.5, 5, 7.5, 10]


def test_a_run_without_a_record_has_no_shares() -> None:
    run = simulate(pair(), "fcfs", compiled=False)
    with pytest.raises(ValueError, match="not recorded"):
        shares_between(run, np.array([0.0, 1.0]))
