# SPDX-License-Identifier: MIT
"""The files of a package with one policy, as ``penstock new-policy`` writes them.

The policy itself is the template of `penstock.policies`, without the parts that speak
about being a template.
"""

from __future__ import annotations

from string import Template
from typing import Final

__all__ = ["skeleton"]

_PROJECT: Final = Template("""\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "penstock-$name"
version = "0.1.0"
description = "The policy $name for penstock"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["penstock[sim]"]

[project.optional-dependencies]
test = ["pytest"]

# penstock finds the policy by this entry point.
[project.entry-points."penstock.policies"]
$name = "$module"

[tool.setuptools]
py-modules = ["$module"]

[tool.pytest.ini_options]
testpaths = ["test_$module.py"]
pythonpath = ["."]
""")

_README: Final = Template("""\
# $name

A policy for penstock, which shares the bandwidth of storage among applications. The
rule, its parameters and their units are in the docstring of `$module.py`.

```sh
python -m pytest                            # needs pytest, not the package installed
penstock compare --policy $module.allocate  # in this folder
pip install -e .                            # then by its short name, anywhere:
penstock compare --policy $name
penstock serve --policy $name               # the same code on live programs
```
""")

_TEST: Final = Template('''\
"""The policy $name keeps the rules of penstock and works in a simulation."""

from itertools import groupby

import penstock as ps
import pytest
from penstock.sim import Run, simulate
from penstock.sim.state import COMPLETION, POST

POLICY = "$module.allocate"


def small_instance():
    """Three applications that want more bandwidth than there is."""
    applications = [
        ps.Application(name, nodes, phases=[("work", work), ("io", volume)] * 50)
        for name, nodes, work, volume in [
            ("climate", 8, "5 min", "900 GB"),
            ("genome", 4, "2 min", "300 GB"),
            ("fusion", 6, "90 s", "200 GB"),
        ]
    ]
    platform = ps.Platform(bandwidth="10 GB/s", node_bandwidth="1 GB/s")
    return ps.Instance(platform, applications, window=("0 s", "1 h"))


@pytest.fixture(scope="module")
def run() -> Run:
    return simulate(small_instance(), POLICY, validate=True, record=True)


def decisions(run):
    """Yield (time, active applications, rates of all) after every instant."""
    changes = [
        (time, "event", application, kind)
        for time, kind, application in zip(
            run.log.time, run.log.kind, run.log.application, strict=True
        )
    ] + [
        (time, "rate", application, rate)
        for time, application, rate in zip(
            run.grants.time, run.grants.application, run.grants.rate, strict=True
        )
    ]
    active, rates = set(), [0.0] * len(run.instance.applications)
    for time, group in groupby(
        sorted(changes, key=lambda change: change[0]), key=lambda change: change[0]
    ):
        for _, what, application, value in group:
            if what == "rate":
                rates[application] = value
            elif value == POST:
                active.add(application)
            elif value == COMPLETION:
                active.discard(application)
        yield time, active, list(rates)


def test_rates_keep_the_caps_and_the_bandwidth(run):
    caps, bandwidth = run.instance.caps, run.instance.platform.bandwidth
    for time, active, rates in decisions(run):
        for i, rate in enumerate(rates):
            assert 0 <= rate <= caps[i] * (1 + 1e-9), f"at {time} s"
            assert rate == 0 or i in active, f"at {time} s"
        assert sum(rates) <= bandwidth * (1 + 1e-9), f"at {time} s"


def test_no_bandwidth_is_left_idle(run):
    # Delete this test if your rule leaves bandwidth unused on purpose.
    caps, bandwidth = run.instance.caps, run.instance.platform.bandwidth
    for time, active, rates in decisions(run):
        usable = min(bandwidth, sum(caps[i] for i in active))
        assert sum(rates) == pytest.approx(usable), f"at {time} s"


def test_what_is_granted_is_moved(run):
    """Conservation: the rates over time add up to the volumes that were moved."""
    moved = [0.0] * len(run.instance.applications)
    steps = [*decisions(run), (run.instance.window.end, set(), [])]
    for (begin, _, rates), (end, _, _) in zip(steps, steps[1:], strict=False):
        for i, rate in enumerate(rates):
            moved[i] += rate * (end - begin)
    assert moved == pytest.approx(run.volume.tolist(), rel=1e-6)


def test_the_simulation_makes_progress(run):
    assert all(0 < value <= 1 for value in run.yields)
    assert min(run.yields) <= ps.bound(run.instance).min_yield + 1e-9


def test_compiled_and_interpreted_give_the_same_bits(run):
    plain = simulate(run.instance, POLICY, compiled=False)
    assert plain.lost.tobytes() == run.lost.tobytes()


def test_the_rule(run):
    """Change this test with the rule: here the application with most nodes is first."""
    patient = simulate(run.instance, f"{POLICY}:patience=1")
    assert patient.yields[0] == pytest.approx(1.0)
''')


def skeleton(name: str, template: str) -> dict[str, str]:
    """Return the files of the package: name of the file -> its text.

    Parameters
    ----------
    name
        Name of the policy, e.g. ``most-nodes``.
    template
        Text of ``penstock/policies/_template.py``.
    """
    module = f"penstock_{name.replace('-', '_')}"
    names = {"name": name, "module": module}
    return {
        "pyproject.toml": _PROJECT.substitute(names),
        "README.md": _README.substitute(names),
        f"{module}.py": _policy(template),
        f"test_{module}.py": _TEST.substitute(names),
    }


def _policy(template: str) -> str:
    """Return the template without its licence and the paragraph on its own use."""
    _, _, text = template.partition("\n")
    text = text.replace(" (a template: copy this file)", "", 1)
    paragraphs = text.split("\n\n")
    return "\n\n".join(
        each for each in paragraphs if not each.startswith("# How to use your own")
    )
