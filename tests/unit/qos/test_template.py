# SPDX-License-Identifier: MIT
"""The template for new request schedulers: runs as it is, and does what it says."""

from __future__ import annotations

import inspect
import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.qos import SCHEDULER_REGISTRY, Request, Slo, _template, get_scheduler
from penstock.sim.requests.server import ServerSpec
from penstock.sim.requests.simulation import simulate_requests
from penstock.workloads.clients import MB, saturating

NAME = "penstock.qos._template"
SLOS = {"a": Slo(2e6, 0.1), "b": Slo(1e6, 0.3)}


def test_it_is_selected_by_its_dotted_name() -> None:
    spec = get_scheduler(f"{NAME}:rate=1 MB/s")
    assert spec.function is _template.make
    assert spec.settings == {"rate": 1e6, "depth": 8}
    assert spec.label == f"{NAME}:rate=1000000"


def test_the_message_about_a_broken_scheduler_names_this_file() -> None:
    with pytest.raises(InputError, match=r"see penstock/qos/_template\.py"):
        get_scheduler("math.pi")
    package = Path(inspect.getfile(SCHEDULER_REGISTRY.__class__)).parent
    assert (package / "qos" / "_template.py").samefile(_template.__file__)


def test_it_says_which_parts_are_required_and_which_optional() -> None:
    text = Path(_template.__file__).read_text()
    for mark in ("# Required: `make`", "# Optional. `make` receives", "\nRule\n"):
        assert mark in text
    lines = (inspect.getdoc(_template) or "").splitlines()
    places = [lines.index(s) for s in ("Rule", "Parameters", "Properties", "Source")]
    assert places == sorted(places)


def test_a_copy_of_it_runs_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(Path(_template.__file__), tmp_path / "my_copy.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    try:
        spec = get_scheduler("my_copy.make:depth=2")
        assert spec.make(SLOS, 0.0).depth == 2
    finally:
        sys.modules.pop("my_copy", None)


def sent_order(sizes_bytes: list[int], gap_s: float, rate: float) -> list[int]:
    """Return the order of requests that queue behind one at the storage."""
    scheduler = get_scheduler(f"{NAME}:rate={rate},depth=1").make(SLOS, 0.0)
    at_storage = Request("write", 1, "a", pid=-1)
    scheduler.arrive(at_storage, 0.0)
    assert scheduler.dispatch(0.0) == [at_storage]
    for number, size_bytes in enumerate(sizes_bytes):
        scheduler.arrive(Request("read", size_bytes, "b", number), gap_s * number)
    now = gap_s * len(sizes_bytes)
    order = []
    for _ in sizes_bytes:
        scheduler.complete(at_storage, at_storage.size_bytes, now)
        (at_storage,) = scheduler.dispatch(now)
        order.append(at_storage.pid)
    return order


def test_small_requests_overtake_large_ones_that_came_shortly_before() -> None:
    # At 1 MB/s the ranks are 0 + 3, 1 + 1 and 2 + 2 s.
    assert sent_order([3 * MB, MB, 2 * MB], 1.0, 1e6) == [1, 0, 2]
    # At 1 GB/s sizes hardly count: by arrival.
    assert sent_order([3 * MB, MB, 2 * MB], 1.0, 1e9) == [0, 1, 2]


@given(st.lists(st.integers(0, 10**9), max_size=30), st.sampled_from([0.0, 0.5]))
def test_the_order_is_that_of_the_ranks(sizes_bytes: list[int], gap_s: float) -> None:
    ranks = [(gap_s * n + size / 1e6, n) for n, size in enumerate(sizes_bytes)]
    assert sent_order(sizes_bytes, gap_s, 1e6) == [n for _, n in sorted(ranks)]


def test_the_simulator_runs_it_and_small_requests_gain() -> None:
    clients = [
        saturating("a", 10.0, processes=4, size=4 * MB),
        saturating("b", 10.0, processes=4),
    ]
    servers = [ServerSpec(50e6)]
    response_s = {}
    for name in ("fifo:depth=1", f"{NAME}:rate=1e6,depth=1"):
        run = simulate_requests(name, SLOS, clients, servers, 20.0)
        times_s = run.answered_s - run.issued_s
        response_s[name] = times_s[run.requests_of("b")].mean()
    fifo_s, template_s = response_s.values()
    assert template_s < fifo_s
