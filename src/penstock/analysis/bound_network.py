# SPDX-License-Identifier: MIT
"""The flow network of the bound, and augmenting paths in it.

Rule: as Dinic (1970): label the nodes with their distance from the sink, send what
can be sent along shortest paths, label again. Only *doors* (from an application to an
interval) count as distance: waiting from interval to interval, of which a path
may need thousands, is free. An excess without a label cannot be sent at all: the
nodes that it reaches are a cut that is too small, and the answer is no.

With N = m K nodes for K intervals a round costs O(N), and O(N) more per path sent.
Every round sends something; a few to a few dozen rounds are usual.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.kernels import kernel

__all__ = ["Network", "Ticks", "saturate"]

Ticks: TypeAlias = NDArray[np.int64]


class Network(NamedTuple):
    """Capacities and flow; row = application, column = interval (ticks)."""

    length: Ticks
    """l_k: capacity of interval k."""
    door: Ticks
    """b_i l_k / B: capacity from (i, k) to interval k."""
    room: Ticks
    """Capacity from (i, k - 1) to (i, k): volume that may still wait then."""
    through: Ticks
    """Flow from (i, k) to interval k."""
    waiting: Ticks
    """Flow from (i, k - 1) to (i, k)."""
    served: Ticks
    """Flow from interval k to the sink."""
    excess: Ticks
    """Volume that has arrived at a node and not left it: first all (i, k) by
    rows, then the intervals."""
    label: Ticks
    """Number of arcs to the sink (last entry: the sink), when last counted."""
    tried: Ticks
    """Arcs of a node that lead nowhere."""
    stack: Ticks
    """Working memory: nodes to look at, or a path."""
    later: Ticks
    """Working memory: nodes to look at later."""


@kernel
def saturate(network: Network) -> bool:
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
def _augment(network: Network, source: int) -> None:
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
def _send(network: Network, depth: int) -> int:
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
def _arcs(network: Network, node: int) -> int:
    """Return the number of arcs of `node`.

    Of (i, k): 0 to interval k, 1 to (i, k + 1), 2 to (i, k - 1).
    Of interval k: 0 to the sink, 1 + i to (i, k).
    """
    return 3 if node < network.door.size else 1 + len(network.door)


@kernel
def _target(network: Network, node: int, arc: int) -> int:
    """Return the node to which an arc leads; `node` itself if there is none."""
    intervals, pairs = len(network.length), network.door.size
    if node >= pairs:
        return pairs + intervals if arc == 0 else (arc - 1) * intervals + node - pairs
    k = node % intervals
    if arc == 0:
        return pairs + k
    if arc == 1:
        return node + 1 if k + 1 < intervals else node
    return node - 1 if k > 0 else node


@kernel
def _residual(network: Network, node: int, arc: int) -> int:
    """Return what an arc that exists can still take (ticks)."""
    intervals = len(network.length)
    if node >= network.door.size:
        k = node - network.door.size
        if arc == 0:
            return int(network.length[k] - network.served[k])
        return int(network.through[arc - 1, k])
    i, k = node // intervals, node % intervals
    if arc == 0:
        return int(network.door[i, k] - network.through[i, k])
    if arc == 1:
        return int(network.room[i, k + 1] - network.waiting[i, k + 1])
    return int(network.waiting[i, k])


@kernel
def _push(network: Network, node: int, arc: int, amount: int) -> None:
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
def _label_all(network: Network) -> bool:
    """Count the doors between every node and the sink; False if an excess is cut off.

    Against the arcs that have capacity left; passing a door (from an application to
    an interval) counts 1, waiting and the way back count 0.
    """
    intervals = len(network.length)
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
def _label_doors(network: Network, k: int, level: int, coming: int) -> int:
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
