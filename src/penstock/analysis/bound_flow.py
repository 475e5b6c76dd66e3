# SPDX-License-Identifier: MIT
"""Feasibility of releases and deadlines under caps: a maximum flow.

Releases and deadlines cut time into elementary intervals k of length l_k. Volume goes
from its release (i, k) to intervals and through them to the storage, the sink:

    (i, k) --> (i, k + 1)    waits: at most the volume due after that date
    (i, k) --> interval k    at most b_i l_k
    interval k --> sink      at most B l_k

One node per application and interval is enough: inside an application releases and
deadlines ascend together, so its operations may be served in order, and what waits at
a date is at most the volume of the operations whose windows contain that date.

The flow starts as EDF with caps, O(m n) and often all that is needed; augmenting
paths (`penstock.analysis.bound_network`) send on what it leaves. All numbers are whole
ticks, rounded in favour of the schedule: "infeasible" is never due to rounding.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.analysis.bound_network import Network, Ticks, saturate
from penstock.kernels import kernel
from penstock.model import Column

__all__ = ["flow_feasible"]

#: Ticks between the first release and the last deadline. A double holds each of
#: them, and 64 bits hold the sum over 8,000 applications.
_SPAN: Final = 2.0**50


def flow_feasible(
    release: Column,
    deadline: Column,
    volume: Column,
    application: Ticks,
    share: Column,
) -> bool:
    """Tell whether a fluid schedule under the caps meets all deadlines.

    Parameters
    ----------
    release, deadline, volume, application
        One entry per operation, `release` ascending; inside an application the
        deadlines ascend too. A volume is in seconds of the whole storage.
    share
        Cap of every application, as a fraction of the capacity.
    """
    origin, span = release.min(initial=np.inf), deadline.max(initial=-np.inf)
    if not span > origin:
        return not np.any(volume > 0)
    scale = _SPAN / (span - origin)
    amount = np.floor(volume * scale).astype(np.int64)
    kept = amount > 0
    amount, owner = amount[kept], application[kept]
    opens = np.floor((release[kept] - origin) * scale).astype(np.int64)
    closes = np.ceil((deadline[kept] - origin) * scale).astype(np.int64)
    if not amount.size:
        return True
    dates = np.unique(np.concatenate((opens, closes)))
    first, last = np.searchsorted(dates, opens), np.searchsorted(dates, closes)
    network = _network(np.diff(dates), share, (first, last, amount, owner))
    by_owner = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[by_owner], np.arange(len(share) + 1))
    _serve_by_deadline(network, last[by_owner], amount[by_owner], bounds)
    return bool(saturate(network))


def _network(
    length: Ticks, share: Column, operations: tuple[Ticks, Ticks, Ticks, Ticks]
) -> Network:
    """Return the network with all volume released and nothing transferred."""
    first, last, amount, owner = operations
    shape = (len(share), len(length))
    supply = np.zeros(shape, dtype=np.int64)
    np.add.at(supply, (owner, first), amount)
    change = np.zeros((shape[0], shape[1] + 1), dtype=np.int64)
    np.add.at(change, (owner, first + 1), amount)
    np.add.at(change, (owner, last), -amount)
    room = np.cumsum(change, axis=1)[:, :-1]
    # One tick more than the product: it may have been rounded down.
    door = np.floor(share[:, None] * length).astype(np.int64) + 1
    door[(supply == 0) & (room == 0)] = 0
    nodes = supply.size + len(length)
    excess = np.zeros(nodes, dtype=np.int64)
    excess[: supply.size] = supply.ravel()
    return Network(
        length=length,
        door=door,
        room=np.ascontiguousarray(room),
        through=np.zeros(shape, dtype=np.int64),
        waiting=np.zeros(shape, dtype=np.int64),
        served=np.zeros(len(length), dtype=np.int64),
        excess=excess,
        label=np.zeros(nodes + 1, dtype=np.int64),
        tried=np.zeros(nodes, dtype=np.int64),
        stack=np.zeros(nodes + 1, dtype=np.int64),
        later=np.zeros(nodes + 1, dtype=np.int64),
    )


@kernel
def _serve_by_deadline(
    network: Network, due: Ticks, amount: Ticks, bounds: Ticks
) -> None:
    """Make the flow of EDF with caps; what it cannot carry on stays as excess.

    Operations of application i are ``bounds[i]`` to ``bounds[i + 1]``, in order.
    """
    applications, intervals = network.door.shape
    head = bounds[:-1].copy()
    left = amount.copy()
    order = np.empty(applications, dtype=np.int64)
    for k in range(intervals):
        free, count = network.length[k], 0
        # 1. Sort by deadline the applications that have something to transfer.
        for i in range(applications):
            if network.excess[i * intervals + k] > 0:
                slot = count
                while slot > 0 and due[head[order[slot - 1]]] > due[head[i]]:
                    order[slot] = order[slot - 1]
                    slot -= 1
                order[slot] = i
                count += 1
        # 2. Serve them; 3. let the rest wait, if it may; 4. forget what is over.
        for position in range(count):
            i = order[position]
            node = i * intervals + k
            moved = min(network.excess[node], network.door[i, k], free)
            free -= moved
            network.through[i, k] = moved
            network.excess[node] -= moved
            gone = moved
            if k + 1 < intervals:
                kept = min(network.excess[node], network.room[i, k + 1])
                network.waiting[i, k + 1] = kept
                network.excess[node] -= kept
                network.excess[node + 1] += kept
            gone += network.excess[node]
            while gone > 0:
                part = min(gone, left[head[i]])
                left[head[i]] -= part
                gone -= part
                if left[head[i]] == 0:
                    head[i] += 1
        network.served[k] = network.length[k] - free
