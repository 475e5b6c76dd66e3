# SPDX-License-Identifier: MIT
"""How many readers, and how many of one user, may do something at a time."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from penstock.errors import UnavailableError
from penstock.web.places import Places
from penstock.web.readers import OPERATOR, Reader


def test_one_user_leaves_room_for_others() -> None:
    places = Places(3, 1, "too many readers")
    with places.taken(Reader(7)):
        with (
            pytest.raises(UnavailableError, match=r"too many readers .try again"),
            places.taken(Reader(7)),
        ):
            pass
        with places.taken(Reader(8)):
            places.check(OPERATOR)


def test_operators_are_bound_by_the_total_only() -> None:
    places = Places(3, 1, "too many")
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(places.taken(OPERATOR))
        with pytest.raises(UnavailableError):
            places.check(OPERATOR)
        with pytest.raises(UnavailableError):
            places.check(Reader(7))
    places.check(Reader(7))


def test_a_place_is_free_after_an_error() -> None:
    places = Places(1, 1, "too many")
    with pytest.raises(KeyError), places.taken(OPERATOR):
        raise KeyError
    places.check(OPERATOR)
