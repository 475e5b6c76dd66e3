# SPDX-License-Identifier: MIT
"""Instances: caps, events, pressure, digest, and contradictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from penstock.errors import InputError
from penstock.model import Application, Instance, Platform, Window
from unit.samples import app, instances, make


def test_caps_follow_the_nodes() -> None:
    instance = make(
        app("a", ("work", 20.0)),
        app("b", ("work", 20.0), nodes=3),
        app("c", ("work", 20.0), nodes=9),
        bandwidth=10.0,
        node_bandwidth=2.0,
    )
    assert instance.caps.tolist() == [2.0, 6.0, 10.0]
    assert [(a.name, cap) for a, cap in instance.with_caps()] == [
        ("a", 2.0),
        ("b", 6.0),
        ("c", 10.0),
    ]


def test_caps_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        make(app("a", ("work", 20.0))).caps[0] = 9.0


# --- Events and pressure ----------------------------------------------------------


def test_dedicated_events_count_posts_from_begin_to_before_end() -> None:
    # Alone, a posts at 2, 5, 8, 11; b at 5 and, after 5 s of I/O, at 10.
    instance = make(
        app("a", *[("work", 2.0), ("io", 1.0)] * 4, ("work", 9.0)),
        app("b", ("work", 5.0), ("io", 5.0), ("io", 5.0), ("work", 9.0)),
        window=(5.0, 10.0),
    )
    # a: 5 and 8 count; b: 5 counts, 10 does not.
    assert instance.dedicated_events() == 2 * 3


def test_dedicated_events_without_an_operation() -> None:
    assert make(app("a", ("work", 20.0))).dedicated_events() == 0


def test_pressure_by_hand() -> None:
    # Over 10 s of a storage of 4 B/s: a moves 8 B and b 2 B/s x 4 s = 8 B.
    instance = make(
        app("a", ("work", 1.0), ("io", 8.0), ("work", 20.0), nodes=4),
        app("b", ("work", 6.0), ("io", 100.0), nodes=2),
        bandwidth=4.0,
    )
    assert instance.pressure() == pytest.approx(16.0 / 40.0, rel=1e-15)


def test_operations_are_cut_at_both_edges_of_the_window() -> None:
    instance = make(app("a", ("io", 30.0), ("work", 5.0)), window=(10.0, 20.0))
    assert instance.pressure() == 1.0
    instance = make(app("a", ("io", 12.0), ("work", 50.0)), window=(10.0, 20.0))
    assert instance.pressure() == pytest.approx(0.2, rel=1e-15)
    instance = make(app("a", ("work", 19.0), ("io", 50.0)), window=(10.0, 20.0))
    assert instance.pressure() == pytest.approx(0.1, rel=1e-15)


def test_pressure_may_exceed_one() -> None:
    many = [app(f"a{n}", ("io", 20.0)) for n in range(3)]
    assert make(*many).pressure() == pytest.approx(3.0, rel=1e-15)


def test_pressure_does_not_depend_on_the_history() -> None:
    plain = make(app("a", ("work", 1.0), ("io", 4.0), ("work", 20.0)))
    old = make(
        app(
            "a",
            *[("work", 1.0), ("io", 4.0), ("work", 20.0)],
            release=-10.0,
            start=0.0,
            done_work=5.0,
        )
    )
    assert old.pressure() == plain.pressure() == pytest.approx(0.4, rel=1e-15)


@given(instances())
def test_pressure_lies_within_zero_and_the_sum_of_shares(instance: Instance) -> None:
    shares = instance.caps.sum() / instance.platform.bandwidth
    assert -1e-9 <= instance.pressure() <= shares * (1 + 1e-9)


# --- What cannot go together ------------------------------------------------------


def test_there_is_at_least_one_application() -> None:
    with pytest.raises(InputError, match="no application") as caught:
        Instance(Platform(1.0, 1.0), Window(0.0, 1.0), ())
    assert caught.value.where == "applications"


def test_names_differ() -> None:
    with pytest.raises(InputError) as caught:
        make(*(app(name, ("work", 20.0)) for name in "abcb"))
    assert caught.value.where == "applications[3].name"
    assert "'b' is already used by applications[1]" in caught.value.what


@pytest.mark.parametrize(
    "times",
    [{"release": 10.0}, {"release": 11.0}, {"release": 0.0, "start": 10.0}],
)
def test_an_application_starts_before_the_window_ends(times: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="but the window ends at") as caught:
        make(app("a", ("work", 20.0)), app("late", ("work", 20.0), **times))
    assert caught.value.where == "applications[1]"
    assert "'late'" in caught.value.what


def test_a_history_too_good_for_the_cap_is_named() -> None:
    with pytest.raises(InputError, match="s of progress in the 10 s") as caught:
        make(
            app("a", ("work", 20.0)),
            app("b", ("work", 20.0), release=-10.0, start=0.0, done_volume=21.0),
            bandwidth=2.0,
            node_bandwidth=2.0,
        )
    assert caught.value.where == "applications[1]"


# --- Digest -----------------------------------------------------------------------


def _with(**changes: Any) -> Callable[[], Instance]:
    """Return a function that makes the base instance with some changes."""
    facts: dict[str, Any] = {
        "name": "a",
        "nodes": 2,
        "work": (1.0, 2.0, 20.0),
        "volume": (3.0, 4.0),
        "release": -5.0,
        "start": 0.0,
        "done_work": 1.0,
        "done_volume": 1.0,
        "user": "ada",
        "group": "physics",
        "period": 7.0,
    }
    outer: dict[str, Any] = {"platform": (4.0, 2.0), "window": (0.0, 10.0)}

    def build() -> Instance:
        inner = {k: changes.get(k, v) for k, v in facts.items()}
        top = {k: changes.get(k, v) for k, v in outer.items()}
        others = changes.get("others", ())
        return Instance(
            Platform(*top["platform"]),
            Window(*top["window"]),
            (Application(**inner), *others),
        )

    return build


@pytest.mark.parametrize(
    "change",
    [
        {"name": "b"},
        {"nodes": 3},
        {"work": (1.0, 2.0, 20.000000000000004)},
        {"work": (2.0, 1.0, 20.0)},
        {"volume": (4.0, 3.0)},
        {"volume": (3.0, 0.0)},
        {"work": (1.0, 2.0), "volume": (3.0,)},
        {"release": -6.0},
        {"start": 0.5},
        {"done_work": 1.5},
        {"done_volume": 1.5},
        {"user": "bob"},
        {"group": ""},
        {"period": 0.0},
        {"platform": (5.0, 2.0)},
        {"platform": (4.0, 1.0)},
        {"window": (1.0, 10.0)},
        {"window": (0.0, 10.000000000000002)},
        {"others": (app("z", ("work", 20.0)),)},
    ],
    ids="+".join,
)
def test_digest_differs_for_any_change(change: dict[str, Any]) -> None:
    assert _with()().digest() == _with()().digest()
    assert _with(**change)().digest() != _with()().digest()


def test_digest_depends_on_the_order() -> None:
    a, b = app("a", ("work", 20.0)), app("b", ("work", 20.0))
    assert make(a, b).digest() != make(b, a).digest()


def test_digest_does_not_tell_whole_numbers_from_floats() -> None:
    whole = _with(platform=(4, 2), window=(0, 10), release=-5, start=0, period=7)
    assert whole().digest() == _with()().digest()


def test_an_application_that_never_ends_is_refused() -> None:
    with pytest.raises(InputError, match="take infinitely long at 1e-300 B/s"):
        Instance(
            Platform(1e-300, 1e-300),
            Window(0.0, 10.0),
            (Application("a", 1, np.array([1.0, 20.0]), np.array([1e300])),),
        )
