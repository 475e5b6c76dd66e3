# SPDX-License-Identifier: MIT
"""Compare live with simulated slowdowns; write them as JSON and as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import msgspec
from matplotlib.figure import Figure

from penstock.bench import BenchSettings, Measurement
from penstock.bench.moosefs import check_requirements, run_module
from penstock.bench.partition.model import simulate_scene
from penstock.bench.partition.scenes import (
    CLUSTER,
    PLACEMENTS,
    STRATEGIES,
    PartitionApp,
    PartitionPlan,
    PhaseSpan,
    scenes,
    total_s,
)
from penstock.errors import UnknownNameError
from penstock.native.files import program_path, shim_path

__all__ = ["SettingResult", "comparisons", "measure", "run_plan"]

_MODULE: Final = "penstock.bench.partition.nodes"
#: Largest accepted relative difference of a slowdown, live and simulated.
_ERROR: Final = 0.10
#: Settings whose simulated mean slowdowns differ by less may change places.
_TIE: Final = 0.05
_AUTO_ERROR: Final = 1.05
_COLOURS: Final = ("#0072b2", "#d55e00")


@dataclass(frozen=True)
class SettingResult:
    """The slowdowns of a scene under one strategy or placement, by application."""

    scene: str
    setting: str
    live: Mapping[str, float]
    simulated: Mapping[str, float]
    live_phases_s: Mapping[str, Sequence[PhaseSpan]] = field(default_factory=dict)
    simulated_phases_s: Mapping[str, Sequence[PhaseSpan]] = field(default_factory=dict)

    @property
    def live_mean(self) -> float:
        """Mean live slowdown."""
        return fmean(self.live.values())

    @property
    def simulated_mean(self) -> float:
        """Mean simulated slowdown."""
        return fmean(self.simulated.values())


def measure(settings: BenchSettings) -> Iterator[Measurement]:
    """Yield slowdowns under every setting, and how settings compare."""
    chosen = _chosen(settings.policies)
    planned = _planned(settings)
    plan = PartitionPlan(planned, tuple(chosen))
    if settings.quick:
        plan = replace(plan, probe_bytes=plan.probe_bytes // 4)
    results: list[SettingResult] = []
    profile: list[float] = []
    alone: dict[str, float] = {}
    for line in run_plan(plan):
        if "profile" in line:
            profile = line["profile"]
            for count, rate in enumerate(profile, 1):
                yield Measurement(f"alone on {count} targets", rate / 1e6, "MB/s")
        elif "alone" in line:
            alone = line["alone"]
        else:
            apps, setting = planned[line["scene"]], line["setting"]
            phases_s = line["phases_s"]
            live = {
                app.name: total_s(phases_s[app.name]) / alone[app.name] for app in apps
            }
            simulated = simulate_scene(apps, setting, profile)
            results.append(
                SettingResult(
                    line["scene"],
                    setting,
                    live,
                    simulated.slowdowns,
                    phases_s,
                    simulated.phases_s,
                )
            )
            yield _without_goal(_difference(results[-1]), settings)
    for measurement in comparisons(results):
        yield _without_goal(measurement, settings)
    if settings.output:
        facts = {
            "profile_bytes_per_s": profile,
            "alone_io_s": alone,
            "provenance": settings.provenance,
        }
        _save(settings.output, results, facts)


def run_plan(plan: PartitionPlan) -> Iterator[dict[str, Any]]:
    """Start a cluster and run a plan beside it; yield the lines of `nodes`."""
    check_requirements()
    shim_path(), program_path("microbenchmark")  # fail before anything starts
    yield from run_module(CLUSTER, _MODULE, [msgspec.json.encode(plan).decode()])


def _planned(settings: BenchSettings) -> dict[str, tuple[PartitionApp, ...]]:
    """Return the scenes to run: those whose names contain a text that was given."""
    known = scenes(quick=settings.quick)
    wanted = settings.scenes or tuple(known)
    for text in wanted:
        if not any(text in name for name in known):
            raise UnknownNameError("scene", text, known)
    return {n: a for n, a in known.items() if any(text in n for text in wanted)}


def _chosen(names: Sequence[str]) -> list[str]:
    """Return the settings to run; "none" comes first: others are compared with it."""
    known = (*STRATEGIES, *PLACEMENTS)
    for name in names:
        if name not in known:
            raise UnknownNameError("strategy or placement", name, known)
    return list(dict.fromkeys(("none", *(names or known))))


def _without_goal(measurement: Measurement, settings: BenchSettings) -> Measurement:
    return replace(measurement, most=inf) if settings.quick else measurement


def _difference(result: SettingResult) -> Measurement:
    parts, errors = {}, []
    for name, slowdown in result.live.items():
        parts[name] = slowdown
        parts[f"{name}:simulated"] = result.simulated[name]
        errors.append(abs(slowdown / result.simulated[name] - 1.0))
    name = f"{result.scene}, {result.setting}: largest difference, live and simulated"
    return Measurement(name, max(errors), "", most=_ERROR, parts=parts)


def comparisons(results: Sequence[SettingResult]) -> Iterator[Measurement]:
    """Yield how the settings of each scene compare with one another."""
    for scene in dict.fromkeys(result.scene for result in results):
        members = {r.setting: r for r in results if r.scene == scene}
        wrong = _wrong_order(list(members.values()))
        yield Measurement(
            f"{scene}: pairs of settings in another order than simulated",
            len(wrong),
            "",
            most=0,
            parts=wrong,
        )
        single = [r.live_mean for name, r in members.items() if name in STRATEGIES[:-1]]
        if "auto" in members:
            ratio = members["auto"].live_mean / min(single)
            name = f"{scene}: mean slowdown, auto / best single strategy"
            yield Measurement(name, ratio, "", most=_AUTO_ERROR)
        yield from _against_all_targets(scene, members)


def _wrong_order(results: Sequence[SettingResult]) -> dict[str, float]:
    """Return pairs whose live order differs clearly from the simulated one."""
    wrong = {}
    for one, two in combinations(results, 2):
        better, worse = sorted((one, two), key=lambda r: r.simulated_mean)
        is_tie = worse.simulated_mean <= better.simulated_mean * (1 + _TIE)
        if not is_tie and better.live_mean > worse.live_mean:
            ratio = better.live_mean / worse.live_mean
            wrong[f"{better.setting} / {worse.setting}"] = ratio
    return wrong


def _against_all_targets(
    scene: str, members: Mapping[str, SettingResult]
) -> Iterator[Measurement]:
    """Yield each placement divided by all targets for everybody.

    The goal holds where the simulation says that the placement is at least as good.
    """
    for setting in PLACEMENTS:
        if setting in members and "none" in members:
            placed, free = members[setting], members["none"]
            simulated = placed.simulated_mean / free.simulated_mean
            yield Measurement(
                f"{scene}: mean slowdown, {setting} / all targets",
                placed.live_mean / free.live_mean,
                "",
                most=1.0 + _TIE if simulated <= 1.0 else inf,
                parts={"simulated": simulated},
            )


# --- Output ---------------------------------------------------------------------------


def _save(
    folder: Path, results: Sequence[SettingResult], facts: Mapping[str, Any]
) -> None:
    """Write ``partition.json`` and ``partition.svg``."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {"penstock": 1, **facts, "slowdowns": list(map(asdict, results))}
    data = msgspec.json.format(msgspec.json.encode(document), indent=1)
    (folder / "partition.json").write_bytes(data + b"\n")
    _plot(results).savefig(folder / "partition.svg")


def _plot(results: Sequence[SettingResult]) -> Figure:
    """Draw the mean slowdowns: bars live, marks simulated."""
    names = list(dict.fromkeys(result.scene for result in results))
    figure = Figure(figsize=(5 * len(names) + 1, 4.5), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
    for panel, scene in zip(panels, names, strict=True):
        members = [result for result in results if result.scene == scene]
        places = range(len(members))
        live = [result.live_mean for result in members]
        simulated = [result.simulated_mean for result in members]
        panel.bar(places, live, color=_COLOURS[0], label="real")
        panel.plot(places, simulated, "D", color=_COLOURS[1], label="simulated")
        labels = [result.setting.replace("+", "+\n") for result in members]
        panel.set_xticks(list(places), labels, rotation=90)
        panel.set_title(f"{scene} applications")
    panels[0].set_ylabel("mean slowdown in I/O")
    panels[0].legend(fontsize="small")
    return figure
