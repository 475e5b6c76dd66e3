# SPDX-License-Identifier: MIT
"""Feasibility of releases and deadlines under caps: a maximum flow.

Releases and deadlines divide time into elementary intervals k of length l_k. Volume
flows from its release (i, k) to intervals, and from intervals to the storage, which is
the sink:

    (i, k) --> (i, k + 1)    waiting: at most the volume due after that time
    (i, k) --> interval k    transfer: at most b_i l_k
    interval k --> sink      at most B l_k

One node per application and interval is enough: within an application, releases and
deadlines ascend together, so its operations may be served in order. The volume that
waits at a time is at most the volume of the operations that are posted before that time
and due after it.

The initial flow is EDF with caps, which costs O(m n) and often suffices. Augmenting
paths (see `bound_network`) send the rest. All numbers are whole ticks, rounded in
favour of the schedule, so rounding never makes a schedule infeasible.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.analysis.bound_network import Network, Ticks, saturate
from penstock.kernels import kernel
from penstock.model import Column

__all__ = ["flow_feasible"]

#: Ticks between the first release and the last deadline. A double represents each of
#: them exactly, and 64 bits hold the sum over 8,000 applications.
_SPAN: Final = 2.0**50


def flow_feasible(
    release: Column,
    deadline: Column,
    volume: Column,
    application: Ticks,
    share: Column,
) -> bool:
    """Return True if a fluid schedule with the caps meets all deadlines.

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
    waiting_cap = np.cumsum(change, axis=1)[:, :-1]
    # One tick more than the product, which may have been rounded down.
    transfer_cap = np.floor(share[:, None] * length).astype(np.int64) + 1
    transfer_cap[(supply == 0) & (waiting_cap == 0)] = 0
    nodes = supply.size + len(length)
    excess = np.zeros(nodes, dtype=np.int64)
    excess[: supply.size] = supply.ravel()
    return Network(
        length=length,
        transfer_cap=transfer_cap,
        waiting_cap=np.ascontiguousarray(waiting_cap),
        transfer=np.zeros(shape, dtype=np.int64),
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
    """Compute the flow of EDF with caps; the rest remains as excess of its node.

    Operations of application i are ``bounds[i]`` to ``bounds[i + 1]``, in order.
    """
    applications, intervals = network.transfer_cap.shape
    head = bounds[:-1].copy()
    left = amount.copy()
    order = np.empty(applications, dtype=np.int64)
    for k in range(intervals):
        free, count = network.length[k], 0
        # 1. Sort the applications that have volume to transfer by deadline.
        for i in range(applications):
            if network.excess[i * intervals + k] > 0:
                slot = count
                while slot > 0 and due[head[order[slot - 1]]] > due[head[i]]:
                    order[slot] = order[slot - 1]
                    slot -= 1
                order[slot] = i
                count += 1
        # 2. Serve them. 3. Let the rest wait if it may. 4. Drop what cannot be served.
        for position in range(count):
            i = order[position]
            node = i * intervals + k
            moved = min(network.excess[node], network.transfer_cap[i, k], free)
            free -= moved
            network.transfer[i, k] = moved
            network.excess[node] -= moved
            gone = moved
            if k + 1 < intervals:
                kept = min(network.excess[node], network.waiting_cap[i, k + 1])
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
