# SPDX-License-Identifier: MIT
"""Greedy serving in order, which most policies use.

The first application in the order gets all the bandwidth that it can use. The next one
gets as much as it can use of the rest, and so on until nothing is left (bandwidth
sharing, section 4.1, FCFS).
"""

from __future__ import annotations

from penstock.kernels import Floats, Ints, inlined, kernel
from penstock.policies.rounding import GRAIN, round_ratio
from penstock.policies.view import View

__all__ = ["loss_ratio", "serve_lowest_first", "sort_lowest_first"]


@inlined
def loss_ratio(view: View, i: int) -> float:
    """Return 1 - yield of active application `i`: the share of its age it lost.

    It is rounded to about 1e-10 (`penstock.policies.rounding`), so that equal yields
    are equal numbers. At the release itself (age 0) the yield is 0 by definition.

    NOTE: never compare yields as quotients of progress and age, which differ in the
    last bit.
    """
    age = view.now - view.release[i]
    if age <= 0.0:
        return 1.0
    return round_ratio(view.lost[i] / age)


@inlined
def serve_lowest_first(view: View, key: Floats, rates: Floats) -> None:
    """Grant bandwidth greedily by increasing ``key[i]``, ties by index.

    O(k) for k active applications if the first one takes all the bandwidth (b_i = B),
    which is the common case; otherwise O(k + s log k) for s served applications.
    """
    first = view.active[0]
    for position in range(1, view.n_active):
        i = view.active[position]
        if key[i] < key[first]:
            first = i
    rates[first] = min(view.cap[first], view.capacity)
    left = view.capacity - rates[first]
    if left > view.capacity * GRAIN and view.n_active > 1:
        _serve_rest(view, key, first, left, rates)


@kernel
def _serve_rest(
    view: View, key: Floats, first: int, left: float, rates: Floats
) -> None:
    """Grant the bandwidth `left` to the applications after `first`, using a heap."""
    heap = view.order
    size = 0
    for position in range(view.n_active):
        if view.active[position] != first:
            heap[size] = view.active[position]
            size += 1
    for root in range(size // 2 - 1, -1, -1):
        _sift_down(heap, key, root, size)
    least = view.capacity * GRAIN
    while size > 0 and left > least:
        i = heap[0]
        rates[i] = min(view.cap[i], left)
        left -= rates[i]
        size -= 1
        heap[0] = heap[size]
        _sift_down(heap, key, 0, size)


@kernel
def sort_lowest_first(view: View, key: Floats, order: Ints) -> None:
    """Set ``order[:n_active]`` to the active applications by key, ties by index.

    Insertion sort, because the number of active applications is small.
    """
    for position in range(view.n_active):
        i = view.active[position]
        slot = position
        while slot > 0 and key[order[slot - 1]] > key[i]:
            order[slot] = order[slot - 1]
            slot -= 1
        order[slot] = i


@kernel
def _sift_down(heap: Ints, key: Floats, root: int, size: int) -> None:
    """Restore the heap order (key, index) below `root`."""
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and _before(key, heap[child + 1], heap[child]):
            child += 1
        if not _before(key, heap[child], heap[root]):
            return
        heap[root], heap[child] = heap[child], heap[root]
        root = child


@kernel
def _before(key: Floats, i: int, j: int) -> bool:
    """Return True if `i` comes before `j`: lower key, ties by lower index."""
    return key[i] < key[j] or (key[i] == key[j] and i < j)
