# SPDX-License-Identifier: MIT
"""Advice about targets: against all targets for everybody, by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.advice.targets import advise_targets
from penstock.errors import InputError
from penstock.model import Instance
from unit.samples import app, make


def _narrow_jobs() -> Instance:
    """Return four jobs that use one of four targets fully, and no more."""
    phases = [("work", 5.0), ("io", 5.0)] * 4
    return make(
        *(app(name, *phases, ("work", 1.0)) for name in "abcd"),
        bandwidth=4.0,
        node_bandwidth=1.0,
        window=(0.0, 40.0),
    )


def test_jobs_that_cannot_use_more_get_a_target_each() -> None:
    advice = advise_targets(_narrow_jobs(), 4)
    assert advice.best == pytest.approx(1.0)
    assert advice.on_all > advice.best
    assert advice.is_worthwhile
    assert sorted(advice.targets_by_job().values()) == [[0], [1], [2], [3]]
    assert advice.sentence().startswith("Place jobs with")
    assert advice.document()["profiles"] == "assumed"


def test_a_lone_wide_job_keeps_all_targets() -> None:
    wide = make(
        app("a", *[("work", 5.0), ("io", 5.0)] * 4, ("work", 1.0), nodes=9),
        bandwidth=4.0,
        node_bandwidth=1.0,
        window=(0.0, 40.0),
    )
    advice = advise_targets(wide, 4)
    assert not advice.is_worthwhile
    assert advice.sentence().startswith("Stripe every job over all targets.")


def test_measured_profiles_are_used() -> None:
    profile = np.array([1.0, 0.5])
    instance = make(
        app("a", ("work", 1.0), ("io", 4.0), profile=profile),
        app("b", ("work", 1.0), ("io", 4.0), profile=profile),
        bandwidth=2.0,
        window=(0.0, 5.0),
    )
    advice = advise_targets(instance, 2)
    assert advice.measured
    assert [len(t) for t in advice.targets_by_job().values()] == [1, 1]


def test_jobs_without_io_have_no_targets() -> None:
    instance = make(app("idle", ("work", 50.0)), app("a", ("work", 1.0), ("io", 1.0)))
    assert set(advise_targets(instance, 2).targets_by_job()) == {"a"}
    alone = make(app("idle", ("work", 50.0)))
    with pytest.raises(InputError, match="no job does I/O"):
        advise_targets(alone, 2)


def test_too_many_targets_are_refused() -> None:
    with pytest.raises(InputError, match="number of storage targets"):
        advise_targets(_narrow_jobs(), 10**7)


def test_jobs_of_very_different_lengths_are_refused() -> None:
    """The comparison ends with the first job; the other one has not begun its I/O."""
    short = app("short", ("io", 1.0))
    late = app("late", ("work", 500.0), ("io", 1.0))
    with pytest.raises(InputError, match="--targets: no placement can be simulated"):
        advise_targets(make(short, late, window=(0.0, 1000.0)), 2)
