# SPDX-License-Identifier: MIT
"""A policy without ``@kernel`` is plain Python and gives the same bits.

The shipped template and example 2 are run as they are and without their line
``@kernel``: in the engine, with burst buffers, and in live control.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import penstock.policies
from parity.test_compiled_interpreted import instance_of
from parity.test_controller import controller_for, replayed
from penstock.kernels import Floats, is_kernel
from penstock.policies import serving
from penstock.policies.policy import Policy, bind
from penstock.policies.view import View
from penstock.sim import simulate
from penstock.sim.buffers.model import Storage, Writer
from penstock.sim.buffers.simulation import simulate_buffers

ROOT = Path(__file__).parents[2]
TEMPLATE = Path(penstock.policies.__file__).parent / "_template.py"
EXAMPLE = ROOT / "examples" / "02_own_policy.py"
#: File of a policy -> the name of its function.
SHIPPED = {TEMPLATE: "allocate", EXAMPLE: "most_nodes_first"}


def source_of(path: Path, *, plain: bool) -> str:
    """Return the text of a policy's file; with `plain`, without ``@kernel``."""
    text = path.read_text()
    removed, count = re.subn(r"^@kernel\b.*\n", "", text, flags=re.MULTILINE)
    assert count == 1
    return removed if plain else text


def run_source(path: Path, *, plain: bool) -> ModuleType:
    """Return the module that results from running a policy's file."""
    module = ModuleType(f"{path.stem}_{plain}")
    source = source_of(path, plain=plain)
    exec(compile(source, module.__name__, "exec"), module.__dict__)  # noqa: S102 - own file
    return module


@cache
def shipped(path: Path, *, plain: bool) -> Policy:
    """Return the policy of a shipped file."""
    module = run_source(path, plain=plain)
    function = getattr(module, SHIPPED[path])
    assert is_kernel(function) != plain
    return bind("mine", function, getattr(module, "PARAMETERS", ()))


def simulated(policy: Policy, *, compiled: bool) -> Any:
    """Return the grants and the lost time of a simulation."""
    run = simulate(instance_of("histories"), policy, record=True, compiled=compiled)
    assert run.grants is not None
    assert run.grants.rate.size > 100
    return run.grants.time.tolist(), run.grants.rate.tolist(), run.lost.tolist()


def buffered(policy: Policy) -> Any:
    """Return the phases of three applications that write through one target."""
    writers = [
        Writer.of_requests(name, 4, volume, 1.5, start_s=start, limit_bytes_per_s=limit)
        for name, volume, start, limit in (
            ("A", 20.0, 0.0, 4.0),
            ("B", 13.0, 0.7, 7.0),
            ("C", 5.0, 2.1, inf),
        )
    ]
    return simulate_buffers(Storage(10.0), writers, sharing=policy).phases


def granted_live(policy: Policy, *, compiled: bool) -> Any:
    """Return the grants of the live controller for the events of a simulation."""
    instance = instance_of("histories")
    run = simulate(instance, policy, record=True)
    grants = list(replayed(run, controller_for(instance, policy, compiled=compiled)))
    assert len(grants) > 100
    return grants


WAYS: dict[str, Callable[[Policy], Any]] = {
    "engine": partial(simulated, compiled=True),
    "interpreted engine": partial(simulated, compiled=False),
    "burst buffers": buffered,
    "live control": partial(granted_live, compiled=True),
    "interpreted live control": partial(granted_live, compiled=False),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_without_kernel_the_results_have_the_same_bits(path: Path, way: str) -> None:
    run = WAYS[way]
    assert run(shipped(path, plain=True)) == run(shipped(path, plain=False))


def test_the_example_prints_the_same_without_kernel(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_source(EXAMPLE, plain=True)
    assert capsys.readouterr().out == EXAMPLE.with_suffix(".out").read_text()


# --- Ways in which plain Python reaches a kernel ----------------------------------


def _by_module(view: View, rates: Floats) -> float:
    for position in range(view.n_active):
        i = view.active[position]
        view.key[i] = -view.nodes[i]
    serving.serve_lowest_first(view, view.key, rates)
    return inf


def _by_closure() -> Callable[[View, Floats], float]:
    serve = serving.serve_lowest_first

    def allocate(view: View, rates: Floats) -> float:
        serve(view, [-float(nodes) for nodes in view.nodes], rates)  # type: ignore[arg-type]
        return inf

    return allocate


class _ByMethod:
    """A policy that is an object and keeps the helper in an attribute."""

    def __init__(self) -> None:
        self.serve = partial(serving.serve_lowest_first)

    def __call__(self, view: View, rates: Floats) -> float:
        _by_module(view, rates)
        self.serve(view, view.key, rates)
        return inf


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "allocate", [_by_module, _by_closure(), _ByMethod()], ids=["module", "cell", "self"]
)
def test_a_helper_may_be_reached_in_any_way(allocate: Any, way: str) -> None:
    run = WAYS[way]
    assert run(bind("mine", allocate)) == run(shipped(EXAMPLE, plain=False))
