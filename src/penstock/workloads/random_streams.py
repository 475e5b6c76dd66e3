# SPDX-License-Identifier: MIT
"""Random streams of workloads: stream (seed, index) makes instance `index` of `seed`.

A stream depends on nothing else, so an instance is the same in every process.
"""

from __future__ import annotations

from numpy.random import SeedSequence

from penstock.model.documents import inside
from penstock.units import parse_whole

__all__ = ["seed_sequence"]


def seed_sequence(seed: int, index: int) -> SeedSequence:
    """Return the stream (seed, index); raise `InputError` if one is negative."""
    with inside("seed"):
        seed = parse_whole(seed, least=0)
    with inside("index"):
        index = parse_whole(index, least=0)
    return SeedSequence(seed, spawn_key=(index,))
