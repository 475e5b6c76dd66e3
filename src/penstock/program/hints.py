# SPDX-License-Identifier: MIT
"""Announce the I/O phases of a program: ``with penstock.phase(volume=...)``.

Under ``penstock run`` the preload library passes the announcement to the agent; without
the library nothing happens. ``native/shim/penstock.h`` is the same for C and C++.
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
    """Announce an I/O phase in which THIS process writes and reads `volume` bytes.

    Every process of the job announces its own share; the shares are added up. Policies
    that use volumes then need not estimate them. Pauses inside the phase count as I/O,
    not as computation.

    Parameters
    ----------
    volume
        Bytes, or text with a unit: ``"2 GiB"``.

    Raises
    ------
    InputError
        If `volume` is not a volume, or negative.
    """
    volume_bytes = round(parse_volume(volume))
    if volume_bytes < 0:
        raise InputError(f"a volume of {volume!r}", remedy="give 0 or more")
    _call("penstock_phase_begin", volume_bytes)
    try:
        yield
    finally:
        _call("penstock_phase_end")


def _call(name: str, *arguments: int) -> None:
    """Call a function of the preload library, if the library is loaded."""
    import ctypes  # noqa: PLC0415 - to keep `import penstock` fast

    function: Any = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function.restype = None
        function(*map(ctypes.c_uint64, arguments))
