# SPDX-License-Identifier: MIT
"""Bandwidths that were learnt, kept in a file for the next start of the controller.

The file is JSON. A bandwidth from it is where learning begins, not a limit. A file that
cannot be read or written, or that is of another version, is ignored: control goes on,
and the problem is logged once. The file is replaced as a whole, so it is never half
written.
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


class _SavedStorages(msgspec.Struct):
    version: int
    storages: dict[str, dict[Kind, _SavedBandwidth]]


class LearntBandwidths:
    """The bandwidths of storages, in memory and in a file.

    After the constructor only `save` uses the file; it may run in another thread. It
    replaces what is known as a whole.
    """

    def __init__(self, path: Path, wall: Callable[[], float] = time.time) -> None:
        self._path, self._wall = path, wall
        self._storages = self._read()
        self._problem = ""

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
            self._write()

    def _read(self) -> dict[str, dict[Kind, _SavedBandwidth]]:
        try:
            file = msgspec.json.decode(self._path.read_bytes(), type=_SavedStorages)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError) as error:
            _LOG.warning("%s is ignored: %s", self._path, error)
            return {}
        if file.version != _VERSION:
            _LOG.warning("%s is ignored: version %d", self._path, file.version)
            return {}
        return {name: entries for name, entries in file.storages.items() if entries}

    def _write(self) -> None:
        fresh = self._path.with_suffix(".new")
        try:
            fresh.write_bytes(
                msgspec.json.encode(_SavedStorages(_VERSION, self._storages))
            )
            fresh.replace(self._path)
            self._problem = ""
        except OSError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                _LOG.warning("%s: %s; control goes on", self._path, error)


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
