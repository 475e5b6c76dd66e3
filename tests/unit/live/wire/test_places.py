# SPDX-License-Identifier: MIT
"""How many users, and how many ids of one user, may do something at a time."""

from __future__ import annotations

import os
from contextlib import ExitStack
from math import inf

import pytest

from penstock.errors import UnavailableError
from penstock.live.wire.places import Places


def is_free(places: Places, user: int | None) -> bool:
    """Return True if there is a place for a user; do not keep it."""
    try:
        places.take(user)
    except UnavailableError:
        return False
    places.release(user)
    return True


def test_one_user_leaves_room_for_others() -> None:
    places = Places(3, 1, "too many readers")
    with places.taken(7):
        with (
            pytest.raises(UnavailableError, match=r"too many readers .try again"),
            places.taken(7),
        ):
            pass
        with places.taken(8):
            assert is_free(places, None)
    assert is_free(places, 7)


def test_operators_are_bound_by_the_total_only() -> None:
    places = Places(3, 1, "too many")
    with ExitStack() as stack:
        for operator in (None, 0, os.geteuid()):
            stack.enter_context(places.taken(operator))
        assert not is_free(places, None)
        assert not is_free(places, 7)
    assert is_free(places, 7)


def test_ids_of_containers_take_the_places_of_their_owner() -> None:
    owners = {200_001: 7, 200_002: 7}
    places = Places(inf, 2, "too many", lambda user: owners.get(user, user))
    with places.taken(200_001), places.taken(200_002):
        assert not is_free(places, 200_001)
        assert not is_free(places, 7)
        assert is_free(places, 8)
    assert is_free(places, 7)


def test_a_place_is_free_after_an_error() -> None:
    places = Places(1, 1, "too many")
    with pytest.raises(KeyError), places.taken(None):
        raise KeyError
    assert is_free(places, None)
