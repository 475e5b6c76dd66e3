# SPDX-License-Identifier: MIT
"""The flow network of the bound, and its augmenting paths.

Rule (Dinic 1970): label all nodes with their distance from the sink, send flow along
shortest paths, then label again. Only *transfer arcs* (from an application to an
interval) count as distance. Waiting arcs, of which a path may need thousands, count 0.
An excess at a node without a label cannot reach the sink: the nodes that it reaches
form a cut that is too small, and the deadlines are infeasible.

With N = m K nodes for K intervals, a round costs O(N), plus O(N) per path. Every round
sends some flow; a few to a few dozen rounds are usual.
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
    transfer_cap: Ticks
    """b_i l_k / B: capacity from (i, k) to interval k."""
    waiting_cap: Ticks
    """Capacity from (i, k - 1) to (i, k): volume that may wait at that time."""
    transfer: Ticks
    """Flow from (i, k) to interval k."""
    waiting: Ticks
    """Flow from (i, k - 1) to (i, k)."""
    served: Ticks
    """Flow from interval k to the sink."""
    excess: Ticks
    """Volume that has arrived at a node but has not left it: all nodes (i, k) row by
    row, then the intervals."""
    label: Ticks
    """Distance of each node to the sink in transfer arcs; last entry: the sink."""
    tried: Ticks
    """Number of arcs of each node that are known to be dead ends."""
    stack: Ticks
    """Working memory: nodes to visit, or a path."""
    later: Ticks
    """Working memory: nodes to visit at the next distance."""


@kernel
def saturate(network: Network) -> bool:
    """Send every excess to the sink; return False if one cannot reach it."""
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
    """Send the excess of `source` along shortest paths until there is none left.

    Depth-first search; `tried` counts the arcs that are known to be dead ends.
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
            # Arc 0 of (i, k) is its transfer arc. `after != before` excludes cycles.
            step = 1 if node < network.transfer_cap.size and arc == 0 else 0
            if (
                label[after] == label[node] - step
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
    """Send flow along a path of `depth` arcs.

    Return the position of its first arc that is full now; 0 if none is.
    """
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
    return 3 if node < network.transfer_cap.size else 1 + len(network.transfer_cap)


@kernel
def _target(network: Network, node: int, arc: int) -> int:
    """Return the node to which an arc leads, or `node` if the arc does not exist."""
    intervals, pairs = len(network.length), network.transfer_cap.size
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
    """Return the residual capacity of an existing arc (ticks)."""
    intervals = len(network.length)
    if node >= network.transfer_cap.size:
        k = node - network.transfer_cap.size
        if arc == 0:
            return int(network.length[k] - network.served[k])
        return int(network.transfer[arc - 1, k])
    i, k = node // intervals, node % intervals
    if arc == 0:
        return int(network.transfer_cap[i, k] - network.transfer[i, k])
    if arc == 1:
        return int(network.waiting_cap[i, k + 1] - network.waiting[i, k + 1])
    return int(network.waiting[i, k])


@kernel
def _push(network: Network, node: int, arc: int, amount: int) -> None:
    """Send `amount` along an arc."""
    intervals = len(network.length)
    if node >= network.transfer_cap.size:
        k = node - network.transfer_cap.size
        if arc == 0:
            network.served[k] += amount
        else:
            network.transfer[arc - 1, k] -= amount
        return
    i, k = node // intervals, node % intervals
    if arc == 0:
        network.transfer[i, k] += amount
    elif arc == 1:
        network.waiting[i, k + 1] += amount
    else:
        network.waiting[i, k] -= amount


@kernel
def _label_all(network: Network) -> bool:
    """Label all nodes with their distance to the sink.

    Return False if a node with excess cannot reach the sink.

    The search follows arcs with residual capacity backwards. A transfer arc (from an
    application to an interval) counts 1; waiting arcs and reverse arcs count 0.
    """
    intervals = len(network.length)
    label, pairs = network.label, network.transfer_cap.size
    stack, later = network.stack, network.later
    far = len(label)
    label[:] = far
    label[-1] = 0
    coming = 0
    for k in range(intervals):
        if network.served[k] < network.length[k]:
            label[pairs + k] = 0
            coming = _label_transfers(network, k, 1, coming)
    level = 0
    while coming > 0:
        level += 1
        size = 0
        for position in range(coming):
            # Skip nodes that were meanwhile reached at a smaller distance.
            if label[later[position]] == level:
                stack[size] = later[position]
                size += 1
        coming = 0
        while size > 0:
            size -= 1
            node = stack[size]
            i, k = node // intervals, node % intervals
            if network.transfer[i, k] > 0 and label[pairs + k] > level:
                label[pairs + k] = level
                coming = _label_transfers(network, k, level + 1, coming)
            if (
                k > 0
                and label[node - 1] > level
                and network.waiting[i, k] < network.waiting_cap[i, k]
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
def _label_transfers(network: Network, k: int, level: int, coming: int) -> int:
    """Label the unlabelled nodes with a transfer arc to interval k, and note them."""
    applications, intervals = network.transfer_cap.shape
    for i in range(applications):
        node = i * intervals + k
        unknown = network.label[node] == len(network.label)
        if unknown and network.transfer[i, k] < network.transfer_cap[i, k]:
            network.label[node] = level
            network.later[coming] = node
            coming += 1
    return coming
