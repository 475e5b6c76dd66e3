# SPDX-License-Identifier: MIT
"""The shares of applications over time, in a recorded run.

A share is a part of the bandwidth of the platform or, if the targets are shared by
time, of the time of all targets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.model import Column, Instance, Sharing
from penstock.sim import Run

__all__ = ["share_edges", "shares_between"]


def share_edges(run: Run, end_s: float, most: int, *, exact: bool) -> Column:
    """Return the times between which shares are shown, up to `end_s`.

    With `exact`, these are the instants at which a rate changes, if there are at most
    `most` of them; otherwise `most` equal steps.
    """
    begin_s = run.instance.window.begin
    if exact and run.grants is not None:
        changes = np.unique(run.grants.time.clip(begin_s, end_s))
        if 0 < len(changes) <= most:
            return np.unique([begin_s, *changes.tolist(), end_s])
    return np.linspace(begin_s, end_s, most + 1)


def shares_between(run: Run, edges: Column) -> NDArray[np.float64]:
    """Return the mean share of every application (row) between the edges (columns)."""
    if run.grants is None:
        raise ValueError("the run was not recorded")
    grants, platform = run.grants, run.instance.platform
    shares = np.zeros((len(run.instance.applications), len(edges) - 1))
    # A flow is an application on one target: it has one rate at a time.
    flow = grants.application * platform.targets + grants.target
    for number in np.unique(flow).tolist():
        chosen = flow == number
        volume = _moved(grants.time[chosen], grants.rate[chosen], edges)
        # Differences of volumes are exact means.
        shares[number // platform.targets] += np.diff(volume) / np.diff(edges)
    whole = _whole(run.instance)
    result: NDArray[np.float64] = shares / whole[:, np.newaxis]
    return result


def _whole(instance: Instance) -> Any:
    """Return the rate at which an application would have all of the storage (bytes/s).

    This is B, or the full speed on all targets if the targets are shared by time.
    """
    platform = instance.platform
    if platform.sharing is Sharing.BANDWIDTH:
        return np.full(len(instance.applications), platform.bandwidth)
    used = np.array([len(a.targets) for a in instance.applications])
    return instance.caps / used * platform.targets


def _moved(times: Column, rates: Column, edges: Column) -> Any:
    """Return the volume that a flow with these rates has moved up to each edge."""
    moved = np.concatenate(([0.0], np.cumsum(np.diff(times) * rates[:-1])))
    at = np.searchsorted(times, edges, side="right") - 1
    return np.where(at >= 0, moved[at] + rates[at] * (edges - times[at]), 0.0)
