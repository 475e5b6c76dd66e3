# SPDX-License-Identifier: MIT
"""Containers in columns, for kernels: heaps, linked lists and sets of numbered items.

Items are numbered from 0 on, e.g. requests by their slot. A container of at most n
items has columns of fixed length, so nothing is allocated.

- `Heap`: items by (key, serial number). ``items[0]`` is the number of items and
  ``items[1]`` the first one; the children of entry p are 2 p and 2 p + 1. ``place``
  says where each item is; 0: it is not in the heap.
- Linked lists: list k begins with the item ``first[k]`` and ends with ``last[k]`` (-1:
  it is empty), and ``link`` leads from each item to the next.
- Sets: ``items[0]`` is the number of items, which are in the following entries in no
  particular order; ``place`` is as in a heap.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.kernels import Floats, Ints, kernel, part

__all__ = [
    "Heap",
    "add_to_set",
    "append_to_list",
    "exact_sum",
    "heap_put",
    "heap_remove",
    "nth_smallest",
    "pop_from_list",
    "remove_from_set",
]


# --- Heaps ------------------------------------------------------------------------


class Heap(NamedTuple):
    """A binary heap of items; the item with the least (key, number) is ``items[1]``."""

    items: Ints
    place: Ints
    key: Floats
    number: Ints


@part
def _goes_before(heap: Heap, a: int, b: int) -> bool:
    """Return True if item `a` goes before item `b`."""
    if heap.key[a] != heap.key[b]:
        return heap.key[a] < heap.key[b]
    return heap.number[a] < heap.number[b]


@part
def _sift_up(heap: Heap, item: int, position: int) -> int:
    """Move the gap at `position` up to where `item` belongs; return the position."""
    while position > 1 and _goes_before(heap, item, heap.items[position // 2]):
        heap.items[position] = heap.items[position // 2]
        heap.place[heap.items[position]] = position
        position = position // 2
    return position


@part
def _sift_down(heap: Heap, item: int, position: int) -> int:
    """Move the gap at `position` down to where `item` belongs; return the position."""
    size = heap.items[0]
    while 2 * position <= size:
        child = 2 * position
        if child < size and _goes_before(
            heap, heap.items[child + 1], heap.items[child]
        ):
            child += 1
        if not _goes_before(heap, heap.items[child], item):
            break
        heap.items[position] = heap.items[child]
        heap.place[heap.items[position]] = position
        position = child
    return position


@part
def heap_put(heap: Heap, item: int) -> None:
    """Add an item, or move one whose key or number has changed to its new place."""
    position = heap.place[item]
    if position == 0:
        heap.items[0] += 1
        position = heap.items[0]
    position = _sift_down(heap, item, _sift_up(heap, item, position))
    heap.items[position] = item
    heap.place[item] = position


@part
def heap_remove(heap: Heap, item: int) -> None:
    """Remove an item, if it is in the heap."""
    position = heap.place[item]
    if position == 0:
        return
    heap.place[item] = 0
    last = heap.items[heap.items[0]]
    heap.items[0] -= 1
    if last != item:
        position = _sift_down(heap, last, _sift_up(heap, last, position))
        heap.items[position] = last
        heap.place[last] = position


# --- Linked lists -----------------------------------------------------------------


@part
def append_to_list(first: Ints, last: Ints, link: Ints, k: int, item: int) -> None:
    """Add an item at the end of list `k`."""
    link[item] = -1
    if first[k] < 0:
        first[k] = item
    else:
        link[last[k]] = item
    last[k] = item


@part
def pop_from_list(first: Ints, link: Ints, k: int) -> int:
    """Remove and return the first item of list `k`, which is not empty."""
    item = first[k]
    first[k] = link[item]
    return item


# --- Sets -------------------------------------------------------------------------


@part
def add_to_set(items: Ints, place: Ints, item: int) -> None:
    """Add an item, if it is not in the set."""
    if place[item] == 0:
        items[0] += 1
        items[items[0]] = item
        place[item] = items[0]


@part
def remove_from_set(items: Ints, place: Ints, item: int) -> None:
    """Remove an item, if it is in the set."""
    position = place[item]
    if position > 0:
        last = items[items[0]]
        items[position] = last
        place[last] = position
        place[item] = 0
        items[0] -= 1


# --- Numbers ----------------------------------------------------------------------


@kernel
def exact_sum(values: Floats, begin: int, end: int, partials: Floats) -> float:
    """Return the sum of ``values[begin:end]``, rounded once: the value of `math.fsum`.

    The partial sums do not overlap, so that they hold the exact sum (Shewchuk 1997,
    "Adaptive precision floating-point arithmetic", section 2.6). `partials` is working
    memory of at least 64 entries. The values are finite.
    """
    count = 0
    for k in range(begin, end):
        x = values[k]
        kept = 0
        for j in range(count):
            y = partials[j]
            if abs(x) < abs(y):
                x, y = y, x
            high = x + y
            low = y - (high - x)
            if low != 0.0:
                partials[kept] = low
                kept += 1
            x = high
        partials[kept] = x
        count = kept + 1
    return _rounded_total(partials, count)


@part
def _rounded_total(partials: Floats, count: int) -> float:
    """Return the sum of non-overlapping partial sums, in ascending order, rounded once.

    If the last addition is exactly half-way between two doubles, the sign of the next
    partial sum decides.
    """
    if count == 0:
        return 0.0
    n = count - 1
    high = partials[n]
    low = 0.0
    while n > 0 and low == 0.0:
        n -= 1
        x = high
        y = partials[n]
        high = x + y
        low = y - (high - x)
    if n > 0 and (
        (low < 0.0 and partials[n - 1] < 0.0) or (low > 0.0 and partials[n - 1] > 0.0)
    ):
        y = low * 2.0
        x = high + y
        if y == x - high:
            high = x
    return high


@kernel
def nth_smallest(values: Floats, begin: int, end: int, n: int) -> float:
    """Return the value with `n` smaller ones in ``values[begin:end]``; reorder them.

    Quickselect, with the median of three as the pivot.
    """
    low, high, wanted = begin, end - 1, begin + n
    while low < high:
        a, b, c = values[low], values[(low + high) // 2], values[high]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                value = values[i]
                values[i] = values[j]
                values[j] = value
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            return values[wanted]
    return values[wanted]
