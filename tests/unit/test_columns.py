# SPDX-License-Identifier: MIT
"""Containers in columns, compared with those of Python."""

from __future__ import annotations

import math
from array import array

from hypothesis import given
from hypothesis import strategies as st

from penstock import columns
from penstock.columns import Heap
from penstock.kernels import interpreted

ITEMS = 12

finite = st.floats(-1e9, 1e9)


def ints(count: int, value: int = 0) -> memoryview[int]:
    return memoryview(array("q", [value] * count))


def floats(values: list[float]) -> memoryview[float]:
    return memoryview(array("d", values or [0.0]))


@given(
    st.lists(
        st.tuples(st.integers(0, ITEMS - 1), st.integers(0, 5), st.booleans()),
        max_size=80,
    )
)
def test_a_heap_has_the_item_with_the_least_key_and_number_first(
    script: list[tuple[int, int, bool]],
) -> None:
    """Items come, go, and move to another key."""
    heap = Heap(ints(ITEMS + 1), ints(ITEMS), floats([0.0] * ITEMS), ints(ITEMS))
    present: dict[int, tuple[float, int]] = {}
    for number, (item, key, is_removed) in enumerate(script):
        if is_removed:
            interpreted(columns.heap_remove)(heap, item)
            present.pop(item, None)
        else:
            heap.key[item], heap.number[item] = key, number
            interpreted(columns.heap_put)(heap, item)
            present[item] = (key, number)
        assert heap.items[0] == len(present)
        for member in range(ITEMS):
            place = heap.place[member]
            assert (heap.items[place] == member) if place else member not in present
        if present:
            assert heap.items[1] == min(present, key=lambda i: present[i])


@given(st.lists(st.one_of(st.integers(0, 1), st.just(-1)), max_size=40))
def test_linked_lists_are_queues(script: list[int]) -> None:
    """Items 0, 1, ... are added to list 0 or 1; -1 takes one from each."""
    first, last, link = ints(2, -1), ints(2, -1), ints(len(script) + 1)
    expected: tuple[list[int], list[int]] = ([], [])
    for item, k in enumerate(script):
        if k >= 0:
            interpreted(columns.append_to_list)(first, last, link, k, item)
            expected[k].append(item)
            continue
        for queue, items in enumerate(expected):
            if items:
                popped = interpreted(columns.pop_from_list)(first, link, queue)
                assert popped == items.pop(0)
    assert [k for k in range(2) if first[k] >= 0] == [
        k for k in range(2) if expected[k]
    ]


@given(st.lists(st.tuples(st.integers(0, ITEMS - 1), st.booleans()), max_size=60))
def test_sets_hold_every_item_once(script: list[tuple[int, bool]]) -> None:
    items, place = ints(ITEMS + 1), ints(ITEMS)
    expected: set[int] = set()
    for item, is_added in script:
        change = columns.add_to_set if is_added else columns.remove_from_set
        interpreted(change)(items, place, item)
        (expected.add if is_added else expected.discard)(item)
        assert sorted(items[1 : items[0] + 1]) == sorted(expected)


@given(st.lists(st.one_of(finite, st.floats(-1e-9, 1e-9), st.floats(1e14, 1e17))))
def test_the_exact_sum_is_that_of_fsum(values: list[float]) -> None:
    partials = floats([0.0] * 64)
    total = columns.exact_sum
    args = (floats(values), 0, len(values), partials)
    assert interpreted(total)(*args) == math.fsum(values)


@given(st.lists(finite, min_size=1, max_size=60), st.data())
def test_the_nth_smallest_value_is_that_of_a_sorted_list(
    values: list[float], data: st.DataObject
) -> None:
    n = data.draw(st.integers(0, len(values) - 1))
    column = floats([math.inf, *values, -math.inf])
    found = interpreted(columns.nth_smallest)(column, 1, len(values) + 1, n)
    assert found == sorted(values)[n]
    assert (column[0], column[len(values) + 1]) == (math.inf, -math.inf)
