# SPDX-License-Identifier: MIT
"""The study of the frontier: all policies on the workloads of the papers and two more.

The points, by group:

- ``pressure``: the synthetic workload of bandwidth sharing, at every pressure of its
  Figure 2;
- ``parameters``: the same at W = 0.8, with other values of n_small, sigma and noise;
- ``io-sets``: the workload of IO-SETS;
- ``NERSC``, ``TRILAB``: the APEX workloads, on all machines;
- ``caps``: the synthetic workload with unequal caps: 1, 2, 4 or 8 nodes, each of which
  can draw a quarter of the bandwidth B;
- ``history``: the synthetic workload with applications that were released up to a
  quarter of the horizon before the window and have lost up to a tenth of that time.

The horizon of the synthetic workload is 400,000 s, a fifth of that of the paper, so
that 200 instances of every point take minutes for all policies.

Seeds: policies were chosen and tuned on seeds 101 to 103. The study uses seed 101 at
smoke scale and seed 2001, on which nothing was tuned, at paper scale.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from numpy.random import Generator, SeedSequence, default_rng

from penstock.experiments.reproduction import Scale
from penstock.experiments.study import Point, Row, Study
from penstock.model import Application, Instance, Platform, Window
from penstock.policies import POLICIES
from penstock.workloads import Workload

__all__ = ["FrontierPoint", "FrontierStudy", "frontier_study"]

_SEED: Final = {Scale.SMOKE: 101, Scale.PAPER: 2001}
_INSTANCES: Final = {Scale.SMOKE: 4, Scale.PAPER: 200}
_HORIZON_S: Final = {Scale.SMOKE: 100_000.0, Scale.PAPER: 400_000.0}
_PRESSURES: Final = {
    Scale.SMOKE: (0.5, 0.8, 1.0),
    Scale.PAPER: (0.2, 0.5, 0.8, 0.9, 1.0, 1.1),
}
#: Values around the defaults 20, 0.5 and 0.5, which the group ``pressure`` has.
_PARAMETERS: Final[dict[Scale, dict[str, tuple[float, ...]]]] = {
    Scale.SMOKE: {"n_small": (0,), "sigma": (1.0,), "noise": (0.0,)},
    Scale.PAPER: {
        "n_small": (0, 10, 30, 40),
        "sigma": (0.1, 0.25, 0.75, 1.0),
        "noise": (0.0, 0.25, 0.75, 1.0),
    },
}
_N_HIGH: Final = {Scale.SMOKE: (0, 20), Scale.PAPER: tuple(range(0, 41, 5))}
_MACHINES: Final = {Scale.SMOKE: (0, 8), Scale.PAPER: tuple(range(11))}
_VARIED_PRESSURES: Final = {Scale.SMOKE: (0.8,), Scale.PAPER: (0.5, 0.8, 1.0)}

#: Largest age of an application at the start of the window, as a part of the horizon.
_MOST_AGE: Final = 0.25
#: Largest time lost before the window, as a part of the age.
_MOST_LOST: Final = 0.1
_NODES: Final = (1, 2, 4, 8)
#: Number of the random stream of a variant; the applications use smaller numbers.
_STREAM: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class FrontierPoint(Point):
    """A point with a group, a label, and a change to its instances."""

    group: str = ""
    label: str = ""
    variant: str = ""
    """Name of the change, a key of `_VARIANTS`; empty: no change."""

    def family(self) -> Workload:
        """Return the workload, ready to draw instances."""
        family = Point.family(self)
        return _Varied(family, self.variant) if self.variant else family


@dataclass(frozen=True, slots=True)
class FrontierStudy(Study):
    """A study whose rows hold group and label of their point."""

    def identity_columns(self, point: int, index: int) -> Row:
        """Return the columns that identify the instance of a row."""
        declared: Any = self.points[point]
        named = {"group": declared.group, "label": declared.label}
        return {**Study.identity_columns(self, point, index), **named}


def frontier_study(scale: Scale) -> FrontierStudy:
    """Return the study of all policies on all points, with the bound."""
    return FrontierStudy(
        "frontier",
        tuple(_points(scale)),
        _INSTANCES[scale],
        tuple(POLICIES),
        bounded=True,
        seed=_SEED[scale],
    )


def _points(scale: Scale) -> Iterator[FrontierPoint]:
    horizon: dict[str, float | str] = {"horizon": _HORIZON_S[scale]}
    yield from _pressures("W={:g}", "pressure", horizon, _PRESSURES[scale])
    for name, values in _PARAMETERS[scale].items():
        around = {**horizon, "pressure": 0.8}
        yield from _swept("synthetic", around, name, values, f"{name}={{:g}}")
    yield from _swept("io-sets", {}, "n_high", _N_HIGH[scale], "n_H={:g}", "io-sets")
    for trace in ("NERSC", "TRILAB"):
        label = f"{trace} M_{{:g}}"
        fixed = {"trace": trace}
        yield from _swept("apex", fixed, "machine", _MACHINES[scale], label, trace)
    for variant in _VARIANTS:
        label = f"{variant} W={{:g}}"
        varied = _VARIED_PRESSURES[scale]
        yield from _pressures(label, variant, horizon, varied, variant)


def _pressures(
    label: str,
    group: str,
    fixed: Mapping[str, float | str],
    values: Sequence[float],
    variant: str = "",
) -> Iterator[FrontierPoint]:
    return _swept("synthetic", fixed, "pressure", values, label, group, variant)


def _swept(
    workload: str,
    fixed: Mapping[str, float | str],
    name: str,
    values: Sequence[float],
    label: str,
    group: str = "parameters",
    variant: str = "",
) -> Iterator[FrontierPoint]:
    for value in values:
        settings = (*fixed.items(), (name, value))
        yield FrontierPoint(workload, settings, group, label.format(value), variant)


@dataclass(frozen=True, slots=True)
class _Varied:
    """A synthetic workload whose instances are changed after they are drawn."""

    family: Any
    variant: str

    def instance(self, seed: int, index: int) -> Instance:
        """Draw instance `index` of `seed`."""
        sequence = SeedSequence(seed, spawn_key=(index, _STREAM))
        instance: Instance = self.family.instance(seed, index)
        return _VARIANTS[self.variant](instance, default_rng(sequence))

    def operations(self, seed: int, index: int) -> int:
        """Return the number of operations of an instance."""
        return int(self.family.operations(seed, index))


def _with_caps(instance: Instance, generator: Generator) -> Instance:
    """Give every application 1, 2, 4 or 8 nodes, each of which can draw B/4.

    Work and volumes stay the same: running alone on one node, an application spends
    four times as long in I/O. The window ends at the smallest dedicated duration.
    """
    bandwidth = instance.platform.bandwidth
    platform = Platform(bandwidth, bandwidth / 4)
    nodes = generator.choice(_NODES, size=len(instance.applications)).tolist()
    applications = tuple(
        replace(application, nodes=count)
        for application, count in zip(instance.applications, nodes, strict=True)
    )
    end = min(float(a.dedicated_times(platform.cap(a.nodes))[-1]) for a in applications)
    return Instance(platform, Window(0.0, end), applications)


def _with_history(instance: Instance, generator: Generator) -> Instance:
    """Release every application before the window, with some time lost since then."""
    ages = generator.uniform(0.0, _MOST_AGE, size=len(instance.applications))
    lost = generator.uniform(0.0, _MOST_LOST, size=len(instance.applications))
    length = instance.window.length
    return replace(
        instance,
        applications=tuple(
            _released(application, age * length, share)
            for application, age, share in zip(
                instance.applications, ages.tolist(), lost.tolist(), strict=True
            )
        ),
    )


def _released(application: Application, age: float, lost: float) -> Application:
    """Return an application released `age` (s) before its start.

    `lost` is the part of this time that was lost.
    """
    return replace(
        application,
        release=application.start - age,
        done_work=(1.0 - lost) * age,
    )


_VARIANTS: Final[dict[str, Callable[[Instance, Generator], Instance]]] = {
    "caps": _with_caps,
    "history": _with_history,
}
