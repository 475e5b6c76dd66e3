# SPDX-License-Identifier: MIT
"""Earliest deadline first: exact when every application can use the whole storage.

With b_i = B the storage is one machine, on which pre-emptive EDF meets all deadlines
whenever any schedule does. O(n log m) for n operations of m applications.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.kernels import kernel
from penstock.model import Column

__all__ = ["lateness"]

_Indices: TypeAlias = NDArray[np.int64]


@kernel
def lateness(
    release: Column,
    deadline: Column,
    remaining: Column,
    application: _Indices,
    following: _Indices,
    applications: int,
) -> float:
    """Return the largest lateness of an operation under pre-emptive EDF (s).

    The result is negative if every operation completes before its deadline. The
    volumes in `remaining` are overwritten.

    Within an application, deadlines ascend with releases. Its operations are therefore
    served in order, and the heap holds at most one operation (`head`) per application.
    """
    heap = np.empty(applications, dtype=np.int64)
    head = np.empty(applications, dtype=np.int64)
    due = np.empty(applications)
    posted = np.zeros(applications, dtype=np.int64)
    worst = -np.inf
    now, size = 0.0, 0
    for k in range(len(release) + 1):
        until = release[k] if k < len(release) else np.inf
        while size > 0:
            i = heap[0]
            done = now + remaining[head[i]]
            if done > until:
                remaining[head[i]] -= until - now
                break
            # An operation without volume is never late; its deadline is arbitrary.
            if remaining[head[i]] > 0.0:
                worst = max(worst, done - due[i])
            now = done
            posted[i] -= 1
            if posted[i] > 0:
                head[i] = following[head[i]]
                due[i] = deadline[head[i]]
            else:
                size -= 1
                i = heap[size]
            _sift_down(heap, size, due, i)
        now = until
        if k < len(release):
            i = application[k]
            posted[i] += 1
            if posted[i] == 1:
                head[i] = k
                due[i] = deadline[k]
                _sift_up(heap, size, due, i)
                size += 1
    return worst


@kernel
def _sift_up(heap: _Indices, slot: int, key: Column, item: int) -> None:
    """Insert `item` at the free last `slot` of the heap and move it up."""
    while slot > 0:
        parent = (slot - 1) // 2
        if key[heap[parent]] <= key[item]:
            break
        heap[slot] = heap[parent]
        slot = parent
    heap[slot] = item


@kernel
def _sift_down(heap: _Indices, size: int, key: Column, item: int) -> None:
    """Insert `item` at the free first slot of the heap and move it down."""
    slot, child = 0, 1
    while child < size:
        if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[item] <= key[heap[child]]:
            break
        heap[slot] = heap[child]
        slot, child = child, 2 * child + 1
    heap[slot] = item
