# SPDX-License-Identifier: MIT
"""Pictures of simulated policies on one instance, in the form of the live picture.

All pictures of an instance have the same applications in the same order: those that
move most. ``times`` are the begins of intervals, in seconds of the simulation; the last
interval ends at ``end``. Rates are in bytes/s; if the targets are shared by time, they
are parts of the time of all targets, and ``bandwidth`` is 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from penstock.analysis.shares import share_edges, shares_between
from penstock.model import Instance, Sharing
from penstock.policies.policy import Policy
from penstock.sim import Run, simulate
from penstock.web.pictures.picture import MOST_SERIES

__all__ = ["Pictures", "simulated_pictures"]

#: Label of a policy -> its picture.
Pictures = dict[str, dict[str, Any]]

#: Most intervals of a picture.
_INTERVALS: Final = 800
#: Digits of a rate.
_DIGITS: Final = 4


def simulated_pictures(
    instance: Instance,
    policies: Sequence[Policy],
    yields: Mapping[str, Sequence[float]],
    *,
    steady: bool,
) -> Pictures:
    """Return the picture of every policy that reaches the yields of the result again.

    Parameters
    ----------
    yields
        Label of a policy -> yields in the result.
    steady
        As in `simulate`.
    """
    runs = [simulate(instance, each, steady=steady, record=True) for each in policies]
    equal = [run for run in runs if run.yields.tolist() == list(yields[run.policy])]
    if not equal:
        return {}
    shown = np.argsort(-equal[0].volume, kind="stable")[:MOST_SERIES].tolist()
    end_s = max(float(run.ended.max()) for run in equal)
    if end_s <= instance.window.begin:
        end_s = instance.window.end
    return {run.policy: _picture(run, shown, end_s) for run in equal}


def _picture(run: Run, shown: Sequence[int], end_s: float) -> dict[str, Any]:
    by_time = run.instance.platform.sharing is Sharing.TIME
    bandwidth = 1.0 if by_time else run.instance.platform.bandwidth
    edges = share_edges(run, end_s, _INTERVALS, exact=True)
    rates = shares_between(run, edges) * bandwidth
    names = [application.name for application in run.instance.applications]
    others = np.delete(rates, shown, axis=0).sum(axis=0)
    return {
        "times": edges[:-1].tolist(),
        "end": end_s,
        "bandwidth": [bandwidth] * (len(edges) - 1),
        # The page takes what follows the colon for the name of a job.
        "series": [
            {"job": f":{names[place]}", "rates": _rounded(rates[place])}
            for place in shown
        ],
        "others": _rounded(others),
    }


def _rounded(rates: Any) -> list[float]:
    """Return rates with few digits: the page is half as long then."""
    # Sums of differences may be a little below 0.
    texts = (f"{max(rate, 0.0):.{_DIGITS}g}" for rate in rates.tolist())
    return [
        int(number) if number.is_integer() else number for number in map(float, texts)
    ]
