# SPDX-License-Identifier: MIT
"""Small instances that several unit tests share, and how to draw random ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st

from penstock.model import Application, Instance, Platform, Window

__all__ = ["app", "document", "instances", "make", "pair", "steady_three"]


def app(name: str, *phases: tuple[str, float], nodes: int = 1, **rest: Any) -> Any:
    """Return an application: ``app("a", ("work", 3), ("io", 4))``."""
    return Application.from_phases(name, nodes, phases, **rest)


def make(
    *applications: Application,
    bandwidth: float = 1.0,
    node_bandwidth: float = 1.0,
    window: Sequence[float] = (0.0, 10.0),
) -> Instance:
    """Return an instance of the applications."""
    return Instance(
        Platform(float(bandwidth), float(node_bandwidth)),
        Window(float(window[0]), float(window[1])),
        tuple(applications),
    )


def pair() -> Instance:
    """Return two applications that post at 2 s; served in turn, b ends at 8 s.

    With fcfs a holds the storage in [2, 5] and b in [5, 8]: b loses 3 s of 10.
    """
    return make(
        app("a", ("work", 2.0), ("io", 3.0), ("work", 20.0)),
        app("b", ("work", 2.0), ("io", 3.0), ("work", 20.0)),
    )


def steady_three(iterations: int = 20) -> Instance:
    """Return three applications with unequal caps that contend all the time."""
    end = 4.0 * iterations
    return make(
        app("a", *[("work", 1.5), ("io", 7.0)] * iterations, ("work", end), nodes=4),
        app("b", *[("work", 1.1), ("io", 3.0)] * iterations, ("work", end), nodes=2),
        app("c", *[("work", 0.7), ("io", 1.3)] * iterations, ("work", end), nodes=1),
        bandwidth=5.0,
        node_bandwidth=2.0,
        window=(3.0, end),
    )


def document() -> dict[str, Any]:
    """Return a fresh document with two applications, one of them with a history."""
    return {
        "penstock": 1,
        "platform": {"bandwidth": "10 GiB/s", "node_bandwidth": "1 GiB/s"},
        "window": [0, "1 h"],
        "applications": [
            {
                "name": "climate",
                "nodes": 4,
                "release": 0,
                "phases": [["work", "10 min"], ["io", "500 GiB"], ["work", "2 h"]],
            },
            {
                "name": "fusion",
                "nodes": 16,
                "release": "-20 min",
                "done_work": "18 min",
                "user": "ada",
                "group": "physics",
                "period": 60,
                "phases": [["io", 1024], ["io", "1 kB"], ["work", 7200]],
            },
        ],
    }


_amounts = st.floats(0.0, 1e15, allow_subnormal=False)
_times = st.floats(-1e9, 1e9)
_rates = st.floats(1e-6, 1e15)
_names = st.text(min_size=1, max_size=8).filter(lambda t: t.isprintable())
_phases = st.lists(
    st.tuples(st.sampled_from(["work", "io"]), _amounts), min_size=0, max_size=6
)


@st.composite
def instances(draw: Any) -> Instance:
    """Draw any lawful instance, history included."""
    begin = draw(_times)
    window = Window(begin, begin + draw(st.floats(1e-3, 1e9)))
    platform = Platform(draw(_rates), draw(_rates))
    applications = []
    for name in draw(st.lists(_names, min_size=1, max_size=4, unique=True)):
        nodes = draw(st.integers(1, 10_000))
        start = window.begin - draw(st.floats(0.0, 1e6))
        release = start - draw(st.floats(0.0, 1e6))
        age = start - release
        done = draw(st.floats(0.0, 0.4)), draw(st.floats(0.0, 0.4))
        applications.append(
            Application.from_phases(
                name,
                nodes,
                draw(_phases),
                release=release,
                start=start,
                done_work=done[0] * age,
                done_volume=done[1] * age * platform.cap(nodes),
                user=draw(st.sampled_from(["", "ada", "Grâce"])),
                group=draw(st.sampled_from(["", "x"])),
                period=draw(st.sampled_from([0.0, 10.0, 0.1])),
            )
        )
    return Instance(platform, window, tuple(applications))
