# SPDX-License-Identifier: MIT
"""Feasibility of releases and deadlines under caps: a maximum flow.

Releases and deadlines cut time into elementary intervals k of length l_k. Volume
flows from the operations to the intervals and from these to the storage:

    released (i, k) --> wait --> (i, k+1)    at most what is due later than that
                   \\--> interval k           at most b_i l_k
                         interval k --> sink  at most B l_k

One node per application and interval is enough: inside an application releases and
deadlines ascend together, so its operations may be served in order, and what waits at
a date is at most the volume of the operations whose windows contain that date.

The flow starts from EDF with caps, which is often a solution; what it leaves over
is pushed on by FIFO push-relabel with global relabelling (Cherkassky and Goldberg,
Algorithmica 19, 1997). The source is left out: once an excess cannot reach the sink,
the answer is no. Nodes N = O(m n), arcs O(m n), O(N^3) at worst.

All numbers are whole ticks, rounded in favour of the schedule: the answer no is exact.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.kernels import kernel
from penstock.model import Column

__all__ = ["flow_feasible"]

_Ticks: TypeAlias = NDArray[np.int64]

#: Ticks between the first release and the last deadline. A double holds each of
#: them, and 64 bits hold the sum over 8,000 applications.
_SPAN: Final = 2.0**50


class _Network(NamedTuple):
    """Capacities and flow; row = application, column = interval (ticks)."""

    length: _Ticks
    """l_k: capacity of interval k."""
    door: _Ticks
    """b_i l_k / B: capacity from (i, k) to interval k."""
    room: _Ticks
    """Capacity from (i, k - 1) to (i, k): volume that may still wait then."""
    through: _Ticks
    """Flow from (i, k) to interval k."""
    waiting: _Ticks
    """Flow from (i, k - 1) to (i, k)."""
    served: _Ticks
    """Flow from interval k to the sink."""
    excess: _Ticks
    """Volume that has arrived at a node and not left it: first all (i, k) by
    rows, then the intervals."""
    label: _Ticks
    """Number of arcs to the sink (last entry: the sink), when last counted."""
    tried: _Ticks
    """Arcs of a node that lead nowhere."""
    stack: _Ticks
    """Working memory: nodes to look at, or a path."""
    later: _Ticks
    """Working memory: nodes to look at later."""


def flow_feasible(
    release: Column,
    deadline: Column,
    volume: Column,
    application: _Ticks,
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
    return bool(_saturate(network))


def _network(
    length: _Ticks, share: Column, operations: tuple[_Ticks, _Ticks, _Ticks, _Ticks]
) -> _Network:
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
    return _Network(
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
    network: _Network, due: _Ticks, amount: _Ticks, bounds: _Ticks
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


@kernel
def _saturate(network: _Network) -> bool:
    """Send every excess to the sink; return False as soon as one cannot get there."""
    nodes = len(network.excess)
    while _label_all(network):
        network.tried[:] = 0
        left = False
        for node in range(nodes):
            if network.excess[node] > 0:
                _augment(network, node)
                left = left or network.excess[node] > 0
        if not left:
            return True
    return False


@kernel
def _augment(network: _Network, source: int) -> None:
    """Send the excess of `source` along paths with the fewest doors, while there are.

    Depth first; `tried` keeps the arcs that have been found to lead nowhere.
    """
    label, tried, path = network.label, network.tried, network.stack
    sink = len(network.excess)
    path[0] = source
    depth = 0
    while network.excess[source] > 0:
        node = path[depth]
        if node == sink:
            depth = _send(network, depth)
            continue
        before = path[depth - 1] if depth > 0 else node
        arc, arcs = tried[node], _arcs(network, node)
        while arc < arcs:
            after = _target(network, node, arc)
            # A pair's arc 0 is a door. Waiting must not turn back: no cycles.
            door = 1 if node < network.door.size and arc == 0 else 0
            if (
                label[after] == label[node] - door
                and after != before
                and after != node
                and _residual(network, node, arc) > 0
            ):
                break
            arc += 1
        tried[node] = arc
        if arc < arcs:
            depth += 1
            path[depth] = after
        elif depth > 0:
            depth -= 1
            tried[path[depth]] += 1
        else:
            break


@kernel
def _send(network: _Network, depth: int) -> int:
    """Use the path of `depth` arcs; return the position of its first full arc."""
    path, tried = network.stack, network.tried
    amount = network.excess[path[0]]
    for step in range(depth):
        amount = min(amount, _residual(network, path[step], tried[path[step]]))
    network.excess[path[0]] -= amount
    full = depth
    for step in range(depth - 1, -1, -1):
        node = path[step]
        _push(network, node, tried[node], amount)
        if _residual(network, node, tried[node]) == 0:
            full = step
    return 0 if full == depth else full


@kernel
def _arcs(network: _Network, node: int) -> int:
    """Return the number of arcs of `node`.

    Of (i, k): 0 to interval k, 1 to (i, k + 1), 2 to (i, k - 1).
    Of interval k: 0 to the sink, 1 + i to (i, k).
    """
    return 3 if node < network.door.size else 1 + len(network.door)


@kernel
def _target(network: _Network, node: int, arc: int) -> int:
    """Return the node to which an arc leads; `node` itself if there is none."""
    applications, intervals = network.door.shape
    pairs = network.door.size
    if node >= pairs:
        return pairs + intervals if arc == 0 else (arc - 1) * intervals + node - pairs
    k = node % intervals
    if arc == 0:
        return pairs + k
    if arc == 1:
        return node + 1 if k + 1 < intervals else node
    return node - 1 if k > 0 else node


@kernel
def _residual(network: _Network, node: int, arc: int) -> int:
    """Return what an arc that exists can still take (ticks)."""
    intervals = len(network.length)
    if node >= network.door.size:
        k = node - network.door.size
        if arc == 0:
            return network.length[k] - network.served[k]
        return network.through[arc - 1, k]
    i, k = node // intervals, node % intervals
    if arc == 0:
        return network.door[i, k] - network.through[i, k]
    if arc == 1:
        return network.room[i, k + 1] - network.waiting[i, k + 1]
    return network.waiting[i, k]


@kernel
def _push(network: _Network, node: int, arc: int, amount: int) -> None:
    """Send `amount` along an arc."""
    intervals = len(network.length)
    if node >= network.door.size:
        k = node - network.door.size
        if arc == 0:
            network.served[k] += amount
        else:
            network.through[arc - 1, k] -= amount
        return
    i, k = node // intervals, node % intervals
    if arc == 0:
        network.through[i, k] += amount
    elif arc == 1:
        network.waiting[i, k + 1] += amount
    else:
        network.waiting[i, k] -= amount


@kernel
def _label_all(network: _Network) -> bool:
    """Count the doors between every node and the sink; False if an excess is cut off.

    Against the arcs that have capacity left; passing a door (from an application to
    an interval) counts 1, waiting and the way back count 0.
    """
    applications, intervals = network.door.shape
    label, pairs = network.label, network.door.size
    stack, later = network.stack, network.later
    far = len(label)
    label[:] = far
    label[-1] = 0
    coming = 0
    for k in range(intervals):
        if network.served[k] < network.length[k]:
            label[pairs + k] = 0
            coming = _label_doors(network, k, 1, coming)
    level = 0
    while coming > 0:
        level += 1
        size = 0
        for position in range(coming):
            # Some have been reached without the last door since they were noted.
            if label[later[position]] == level:
                stack[size] = later[position]
                size += 1
        coming = 0
        while size > 0:
            size -= 1
            node = stack[size]
            i, k = node // intervals, node % intervals
            if network.through[i, k] > 0 and label[pairs + k] > level:
                label[pairs + k] = level
                coming = _label_doors(network, k, level + 1, coming)
            if (
                k > 0
                and label[node - 1] > level
                and network.waiting[i, k] < network.room[i, k]
            ):
                label[node - 1] = level
                stack[size] = node - 1
                size += 1
            if (
                k + 1 < intervals
                and label[node + 1] > level
                and network.waiting[i, k + 1] > 0
            ):
                label[node + 1] = level
                stack[size] = node + 1
                size += 1
    for node in range(pairs):
        if network.excess[node] > 0 and label[node] == far:
            return False
    return True


@kernel
def _label_doors(network: _Network, k: int, level: int, coming: int) -> int:
    """Label what has a door to interval k and no label yet; note it in `later`."""
    applications, intervals = network.door.shape
    for i in range(applications):
        node = i * intervals + k
        unknown = network.label[node] == len(network.label)
        if unknown and network.through[i, k] < network.door[i, k]:
            network.label[node] = level
            network.later[coming] = node
            coming += 1
    return coming
