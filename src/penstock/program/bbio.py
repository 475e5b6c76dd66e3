# SPDX-License-Identifier: MIT
"""Staged writes, as papers/4 gives them to programs (section IV-B): the module BBIO.

Under the preload library what is written to a file goes to a journal first. These calls
say where, for which files, and when it is drained. No program needs them:
``penstock run --stage FOLDER`` stages the writes of any program. Without the library
they do nothing. ``native/stage/bbio.h`` is the same for programs in C and C++.
"""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.errors import InputError
from penstock.units import parse_volume

__all__ = ["disable", "enable", "finalize", "flush", "init", "on_flush"]

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int)


def init(path: str | Path | None = None, size: float | str = 0) -> None:
    """Stage what is written from now on, outside of system directories.

    Parameters
    ----------
    path
        Absolute path of the folder of the journals; None: memory.
    size
        What the journal of one file may hold, in bytes or as text with a unit; 0:
        256 MiB. What does not fit is drained.
    """
    volume = round(parse_volume(size))
    if volume < 0:
        raise InputError(f"a size of {size!r}", remedy="give 0 or more")
    folder = None if path is None else os.fsencode(path)
    _call("init", ctypes.c_char_p(folder), ctypes.c_size_t(volume))


def enable(descriptor: int) -> None:
    """Stage what is written to this descriptor, also if it was inherited."""
    _call("enable", ctypes.c_int(descriptor))


def disable(descriptor: int) -> None:
    """Drain, and write through from now on; an `OSError` of the drain is raised."""
    _call("disable", ctypes.c_int(descriptor))


def flush(descriptor: int) -> None:
    """Drain now; an `OSError` of the drain is raised."""
    _call("flush", ctypes.c_int(descriptor))


def finalize() -> None:
    """Drain everything, and stage no more."""
    _call("finalize")


def on_flush(descriptor: int, callback: Callable[[int], None]) -> None:
    """Have `callback` called before every drain that has something to write.

    The program's end drains everything, while there still is an interpreter to call.
    """
    called = _CALLBACK(callback)
    # The library may call it as long as the program runs: it is never collected.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(called))
    atexit.unregister(finalize)
    atexit.register(finalize)
    _call("on_flush", ctypes.c_int(descriptor), called)


def _call(name: str, *words: Any) -> None:
    """Call the preload library, if it is there."""
    library = ctypes.CDLL(None, use_errno=True)
    function: Any = getattr(library, f"penstock_bbio_{name}", None)
    if function is not None and function(*words) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
