# SPDX-License-Identifier: MIT
"""BBIO: calls with which a program controls the staging of its writes.

The calls are those of burst-buffer coordination (section IV-B). With the preload
library, a write goes to a journal first and is drained into its file later. These calls
choose the folder of the journals, the files to stage, and the moment of draining. They
are optional: ``penstock run --stage FOLDER`` stages the writes of any program. Without
the preload library they do nothing. ``native/bbio/bbio.h`` is the same for C and C++.
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
    """Stage all writes from now on, except those to system directories.

    Parameters
    ----------
    path
        The journal folder, which must exist; None: a folder in memory.
    size
        Size of the journal of one file, in bytes or as text with a unit; 0: 256 MiB.
        A full journal is drained.

    Raises
    ------
    InputError
        If the size is not a volume.
    OSError
        If the folder cannot be used.
    """
    volume = round(parse_volume(size))
    if volume < 0:
        raise InputError(f"a size of {size!r}", remedy="give 0 or more")
    folder = None if path is None else os.fsencode(path)
    _call("init", ctypes.c_char_p(folder), ctypes.c_size_t(volume))


def enable(descriptor: int) -> None:
    """Stage the writes to this descriptor, even if it was inherited."""
    _call("enable", ctypes.c_int(descriptor))


def disable(descriptor: int) -> None:
    """Drain the file, and write to it directly from now on.

    Raises `OSError` if draining fails.
    """
    _call("disable", ctypes.c_int(descriptor))


def flush(descriptor: int) -> None:
    """Drain the file now; raises `OSError` if draining fails."""
    _call("flush", ctypes.c_int(descriptor))


def finalize() -> None:
    """Drain all files and stop staging."""
    _call("finalize")


def on_flush(descriptor: int, callback: Callable[[int], None] | None) -> None:
    """Call `callback(descriptor)` before every drain that writes data; None: no more.

    A drain that the callback starts itself does not call it again. All files are
    drained at the exit of the interpreter, while it can still run the callback.

    Raises `OSError` if the descriptor is not open, or before staging has started.
    """
    if callback is None:
        _call("on_flush", ctypes.c_int(descriptor), _CALLBACK())
        return
    c_callback = _CALLBACK(callback)
    # Never collected: the library may call it as long as the program runs.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(c_callback))
    atexit.unregister(finalize)
    atexit.register(finalize)
    _call("on_flush", ctypes.c_int(descriptor), c_callback)


def _call(name: str, *arguments: Any) -> None:
    """Call a function of the preload library, if the library is loaded."""
    library = ctypes.CDLL(None, use_errno=True)
    function: Any = getattr(library, f"penstock_bbio_{name}", None)
    if function is not None and function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
