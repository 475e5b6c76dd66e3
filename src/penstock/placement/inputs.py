# SPDX-License-Identifier: MIT
"""Inputs of allocation and placement algorithms (target allocation, Table 2)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.model.problem import Problem

__all__ = ["Input", "in_words", "missing", "require"]


class Input(StrEnum):
    """One input; the easiest to obtain comes first."""

    NODES = "Q_j"
    """Compute nodes; known to the resource manager."""
    VOLUME = "V_io"
    """Total volume (bytes); from earlier runs or from the user."""
    COMPUTE = "T_cpu"
    """Total computation (s); from earlier runs or from the user."""
    BEST = "n_perf"
    """Number of targets on which the application is fastest."""
    BANDWIDTH = "b_j"
    """Bandwidth on 1, 2, ... targets; takes several runs for each number."""


_REMEDIES: Final = {
    Input.VOLUME: 'give its "phases"',
    Input.COMPUTE: 'give its "phases"',
    Input.BEST: 'give its "bandwidth" or "best_targets"',
    Input.BANDWIDTH: 'give its "bandwidth"',
}


def in_words(needs: Iterable[Input]) -> str:
    """Return inputs as text, in the order of `Input`; "nothing" if there are none."""
    wanted = set(needs)
    return ", ".join(item for item in Input if item in wanted) or "nothing"


def missing(needs: Iterable[Input], problem: Problem, j: int) -> frozenset[Input]:
    """Return the inputs that are not known of application j."""
    return frozenset(item for item in needs if not _known(item, problem, j))


def require(needs: Iterable[Input], problem: Problem, label: str) -> None:
    """Raise `InputError` if `problem` lacks an input; `label` names the algorithm."""
    wanted = set(needs)
    for j, application in enumerate(problem.applications):
        for item in Input:
            if item in wanted and not _known(item, problem, j):
                raise InputError(
                    f"{label} needs {item}, which is not known of {application.name!r}",
                    where=f"applications[{j}]",
                    remedy=f"{_REMEDIES[item]}, or choose an algorithm without it",
                )


def _known(item: Input, problem: Problem, j: int) -> bool:
    if item in (Input.VOLUME, Input.COMPUTE):
        return problem.has_phases(j)
    if item is Input.BEST:
        return problem.has_bandwidth(j) or bool(problem.best_targets[j])
    return item is Input.NODES or problem.has_bandwidth(j)
