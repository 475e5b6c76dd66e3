# SPDX-License-Identifier: MIT
"""What a scheduler guarantees; the conformance suite checks every guarantee.

Every scheduler has an attribute ``guarantees``. One that is False means that the
scheduler does not promise it, not that it never happens. All schedulers must also keep
these rules: every request is sent exactly once; no request starves (each is sent after
a bounded time, however long others issue requests); and work is conserved: the storage
is never idle while requests wait, except for at most `penstock.qos.promises.THINK_S`
after an answer to an application that is short of its promise.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Guarantees"]


@dataclass(frozen=True, slots=True)
class Guarantees:
    """The guarantees of a scheduler."""

    promises: bool = False
    """An application that always has a request, waiting or at the storage, gets at
    least its throughput t_i, if the t_i add up to at most the capacity. It is up to the
    application to issue a request within `penstock.qos.promises.THINK_S` of an
    answer."""
    shares: bool = False
    """Applications that always have requests waiting are served in proportion to their
    t_i. Over several servers this holds for the total, with reports or a layout."""
    client_nodes: bool = False
    """The same for schedulers at several client nodes in front of one storage."""
    deadlines: bool = False
    """Of the waiting requests, the one with the earliest deadline is sent first."""
    latency: bool = False
    """While all applications issue at most their t_i and the storage is not overloaded,
    95 of 100 requests of each are answered within its latency bound l_i."""
