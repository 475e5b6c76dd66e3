# SPDX-License-Identifier: MIT
"""What a program can say of its own I/O: ``with penstock.phase(volume=...)``.

Under ``penstock run`` the preload library passes it on; without it nothing happens.
``native/shim/penstock.h`` is the same for programs in C and C++.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.errors import InputError
from penstock.units import parse_volume

__all__ = ["phase"]


@contextmanager
def phase(volume: float | str) -> Iterator[None]:
    """Mark an I/O phase in which THIS process will write and read `volume` bytes.

    Policies that look at volumes then know this one and need not guess. Every process
    of a job that takes part says its own share; they are added up. The pauses inside
    count as I/O, not as work.

    Parameters
    ----------
    volume
        Bytes, or text with a unit: ``"2 GiB"``.
    """
    size = round(parse_volume(volume))
    if size < 0:
        raise InputError(f"a volume of {volume!r}", remedy="give 0 or more")
    _call("penstock_phase_begin", size)
    try:
        yield
    finally:
        _call("penstock_phase_end")


def _call(name: str, *words: int) -> None:
    """Call the preload library, if it is there."""
    import ctypes  # noqa: PLC0415 - nobody pays for a hint that is not given

    function: Any = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function.restype = None
        function(*map(ctypes.c_uint64, words))
