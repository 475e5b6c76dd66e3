# SPDX-License-Identifier: MIT
"""Measured bandwidths on 1, 2, ... targets, kept in a file for `penstock serve`.

The file is JSON, with one list of b(1), b(2), ... (bytes/s) for every list of targets
that was measured. It is replaced as a whole, so it is never half written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from penstock.errors import InputError
from penstock.files import replacing

__all__ = ["keep_profile", "kept_profile"]

_VERSION: Final = 1


class _SavedProfiles(msgspec.Struct):
    version: int
    profiles: dict[str, list[float]]
    """Targets, see `_key` -> b(1), b(2), ... (bytes/s)."""


def keep_profile(path: Path, targets: str, rates: Sequence[float]) -> None:
    """Add the bandwidths of these targets to the file, instead of earlier ones.

    Raises `InputError` if the file is damaged or cannot be written.
    """
    saved = _read(path)
    saved.profiles[_key(targets)] = list(rates)
    with replacing(path) as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(saved)) + b"\n")


def kept_profile(path: Path, targets: str) -> tuple[float, ...]:
    """Return the bandwidths of these targets; () if they were never measured.

    Raises `InputError` if the file is damaged or cannot be read.
    """
    return tuple(_read(path).profiles.get(_key(targets), ()))


def _key(targets: str) -> str:
    """Return the setting `targets` with its names in order."""
    driver_and_root, _, names = targets.rpartition(":")
    return f"{driver_and_root}:{','.join(sorted(filter(None, names.split(','))))}"


def _read(path: Path) -> _SavedProfiles:
    try:
        saved = msgspec.json.decode(path.read_bytes(), type=_SavedProfiles)
    except FileNotFoundError:
        return _SavedProfiles(_VERSION, {})
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _unusable(path, str(error)) from None
    if saved.version != _VERSION:
        raise _unusable(path, f"it is of version {saved.version}, not {_VERSION}")
    rates = [rate for rates in saved.profiles.values() for rate in rates]
    if not all(rate > 0.0 and math.isfinite(rate) for rate in rates):
        raise _unusable(path, "a bandwidth is not positive")
    return saved


def _unusable(path: Path, what: str) -> InputError:
    return InputError(
        f"these bandwidths cannot be used: {what}",
        where=str(path),
        remedy="delete the file, and measure again with `penstock profile`",
    )
