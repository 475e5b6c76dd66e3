# SPDX-License-Identifier: MIT
"""Bandwidths that were learnt, kept in a file for the next start of the controller.

A bandwidth from the file is where learning begins, not a limit. If the file cannot be
used, control goes on without it, and the problem is logged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from penstock.live.control.activity.usage import Kind
from penstock.live.control.storage.bandwidth import Reason
from penstock.live.daemon.kept_file import KeptContent, KeptFile

__all__ = ["LearntBandwidths"]

_LOG: Final = logging.getLogger("penstock.learnt")
_VERSION: Final = 1
#: Number of storages that are kept, those that were learnt last.
_MOST_STORAGES: Final = 100
#: A smaller change is not worth a new file.
_LEAST_CHANGE: Final = 0.02


class _SavedBandwidth(msgspec.Struct, frozen=True):
    bandwidth: float
    """Bytes per second."""
    learnt: float
    """When it was saved (s, wall clock)."""


class _SavedStorages(KeptContent, frozen=True):
    storages: dict[str, dict[Kind, _SavedBandwidth]]


class LearntBandwidths:
    """The bandwidths of storages, in memory and in a file.

    After the constructor only `save` uses the file; it may run in another thread. It
    replaces what is known as a whole.
    """

    def __init__(self, path: Path, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._file = KeptFile(
            *(path, _SavedStorages, _VERSION, _LOG),
            consequence="control goes on",
        )
        kept = self._file.read()
        storages = kept.storages if kept else {}
        self._storages = {name: found for name, found in storages.items() if found}

    def known(self, storage: str) -> dict[Kind, tuple[float, Reason]]:
        """Return the bandwidths of a storage in the file, by kind."""
        entries = self._storages.get(storage, {})
        return {
            kind: (entry.bandwidth, Reason.REMEMBERED)
            for kind, entry in entries.items()
        }

    def save(self, learnt: Mapping[str, Mapping[Kind, float]]) -> None:
        """Add these bandwidths (bytes/s), by storage and kind, to the file."""
        now_s, storages = self._wall(), self._storages
        for name, rates in learnt.items():
            old = storages.get(name, {})
            new = {
                kind: _SavedBandwidth(rate, now_s)
                for kind, rate in rates.items()
                if _is_other(rate, old.get(kind))
            }
            if new:
                storages = {**storages, name: {**old, **new}}
        if storages is not self._storages:
            self._storages = _without_oldest(storages)
            self._file.write(_SavedStorages(_VERSION, self._storages))


def _is_other(rate: float, saved: _SavedBandwidth | None) -> bool:
    return abs(rate - (saved.bandwidth if saved else 0.0)) > _LEAST_CHANGE * rate


def _without_oldest(
    storages: dict[str, dict[Kind, _SavedBandwidth]],
) -> dict[str, dict[Kind, _SavedBandwidth]]:
    """Return the storages that were learnt last, the latest one at the end."""

    def latest(name: str) -> float:
        return max(entry.learnt for entry in storages[name].values())

    kept = sorted(storages, key=latest)[-_MOST_STORAGES:]
    return {name: storages[name] for name in kept}
