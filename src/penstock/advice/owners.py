# SPDX-License-Identifier: MIT
"""What the owner of an application can do about its I/O, beside the site's policy.

The first instance is simulated under the policy to use. For every application that
still loses time, these remedies are considered. Only the first one is simulated again;
the others follow from the numbers of the first simulation.

- *another time*: applications of nearly the same period meet again and again. Its
  operations are shifted by a quarter, a half and three quarters of its iteration, and
  the instance is simulated again.
- *staging*: if the next operation comes later than this one takes, a buffer can take
  the data and drain it while the application computes.
- *more nodes that write*: if an operation without waiting takes longer than at the
  bandwidth of the storage, the nodes limit it, and the storage does not.
- *a hint of the volume*: live control guesses the volume of an operation from earlier
  ones. A guess is bad if the volumes differ, and a hint makes it exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from penstock.advice.recommendation import WORTHWHILE
from penstock.advice.scenarios import mean_iteration_s
from penstock.model import Instance
from penstock.policies.policy import Policy
from penstock.sim import Run, simulate
from penstock.units import format_time, format_volume

__all__ = ["advice_for_owners"]

#: Shifts that are tried, as parts of an iteration.
_SHIFTS: Final = (0.25, 0.5, 0.75)
#: Applications whose iterations differ by less than this part meet again and again.
_SAME_PERIOD: Final = 0.1
#: A shift must gain this much yield; one that gains less is not worth a sentence.
_SHIFT_GAIN: Final = 2 * WORTHWHILE
#: Volumes that differ by more than this part (standard deviation over mean) are hard
#: to guess.
_VARIED: Final = 0.2
#: Applications for which shifts are simulated: those that lose most.
_MOST_SHIFTED: Final = 20


@dataclass(frozen=True, slots=True)
class _Facts:
    """One application in the simulated run."""

    index: int
    name: str
    reached: float
    """Yield under the policy to use."""
    lost_s: float
    """Time lost in one operation on the mean (s)."""
    alone_s: float
    """Mean length of an operation without waiting (s)."""
    work_s: float
    """Mean work between two operations (s)."""
    volume_bytes: float
    """Mean volume of an operation."""
    variation: float
    """Standard deviation of the volumes over their mean."""
    limited_by_nodes: bool
    operations: int
    """Operations of the application in the instance."""


def advice_for_owners(instance: Instance, policy: Policy) -> dict[str, list[str]]:
    """Return application -> sentences for its owner; no sentences: nothing to do."""
    run = simulate(instance, policy, steady=False)
    facts = [_facts(run, index) for index in range(len(instance.applications))]
    losing = sorted(
        (f for f in facts if f.reached < 1.0 - WORTHWHILE), key=lambda f: f.reached
    )
    advice: dict[str, list[str]] = {f.name: [] for f in facts}
    for place, fact in enumerate(losing):
        sentences = advice[fact.name]
        if place < _MOST_SHIFTED and _meets_again(instance, fact.index):
            sentences += _another_time(instance, policy, fact)
        sentences += _staging(fact)
        sentences += _more_nodes(fact)
        sentences += _hint(fact)
    return advice


def _facts(run: Run, index: int) -> _Facts:
    application = run.instance.applications[index]
    cap = float(run.instance.caps[index])
    volumes = application.volume
    count = max(int(run.operations[index]), 1)
    mean = float(volumes.mean()) if volumes.size else 0.0
    return _Facts(
        index=index,
        name=application.name,
        reached=float(run.yields[index]),
        lost_s=float(run.lost[index]) / count,
        alone_s=mean / cap,
        work_s=mean_iteration_s(application, cap) - mean / cap,
        volume_bytes=mean,
        variation=float(volumes.std()) / mean if mean > 0 else 0.0,
        limited_by_nodes=not application.profile.size
        and cap < run.instance.platform.bandwidth,
        operations=len(volumes),
    )


def _meets_again(instance: Instance, index: int) -> bool:
    """Return True if another application has nearly the same iteration."""
    if len(instance.applications[index].volume) <= 1:
        return False
    own = _iteration_s(instance, index)
    others = (i for i in range(len(instance.applications)) if i != index)
    return any(
        abs(_iteration_s(instance, other) - own) < _SAME_PERIOD * own
        for other in others
        if len(instance.applications[other].volume) > 1
    )


def _iteration_s(instance: Instance, index: int) -> float:
    cap = float(instance.caps[index])
    return mean_iteration_s(instance.applications[index], cap)


def _another_time(instance: Instance, policy: Policy, fact: _Facts) -> list[str]:
    """Simulate the application with shifted operations; return the best shift."""
    length = _iteration_s(instance, fact.index)
    best, reached = 0.0, fact.reached + _SHIFT_GAIN
    for part in _SHIFTS:
        shifted = _with_longer_start(instance, fact.index, part * length)
        run = simulate(shifted, policy, steady=False)
        others = np.delete(run.yields, fact.index)
        if float(run.yields[fact.index]) > reached and others.min() >= fact.reached:
            best, reached = part * length, float(run.yields[fact.index])
    if not best:
        return []
    return [
        f"Start its operations about {format_time(best)} later: it meets others of the "
        f"same period. Its yield rises from {fact.reached:.2f} to {reached:.2f}."
    ]


def _with_longer_start(instance: Instance, index: int, delay_s: float) -> Instance:
    """Return the instance with a longer first work phase of one application."""
    application = instance.applications[index]
    work = application.work.copy()
    work[0] += delay_s
    changed = list(instance.applications)
    changed[index] = replace(application, work=work)
    return replace(instance, applications=tuple(changed))


def _staging(fact: _Facts) -> list[str]:
    taken_s = fact.alone_s + fact.lost_s
    if fact.operations < 2 or not 0.0 < taken_s < fact.work_s:
        return []
    return [
        "If it writes, stage its writes (penstock run --stage FOLDER): an operation "
        "takes "
        f"{format_time(taken_s)}, {format_time(fact.lost_s)} of it waiting, and the "
        f"next one comes {format_time(fact.work_s)} later. A buffer of "
        f"{format_volume(fact.volume_bytes)} hides this time."
    ]


def _more_nodes(fact: _Facts) -> list[str]:
    if not fact.limited_by_nodes or fact.alone_s <= fact.lost_s:
        return []
    return [
        "Let more of its nodes write: its nodes limit its I/O more than other jobs do."
    ]


def _hint(fact: _Facts) -> list[str]:
    if fact.variation <= _VARIED:
        return []
    return [
        "Announce its volumes (penstock.phase in the program, or penstock ctl hint): "
        f"its operations differ by {fact.variation:.0%}, so a guess is often wrong."
    ]
