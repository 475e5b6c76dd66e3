# SPDX-License-Identifier: MIT
"""A folder mounted through a limit: one mount is one storage target.

`limiter` decides when a request may go (pure: no clock, no I/O); `gate` drives it in
real time; `inodes` and `backing` are the calls to the file system below; `passthrough`
answers the kernel; `control` is the socket through which a mount is asked and changed;
`points` knows mount points; `daemon` puts them together.

`passthrough` and `daemon` need pyfuse3 and are imported late: the rest works without.
"""

from __future__ import annotations

from penstock.mount.limiter import Limiter, Limits, Request, Scheduler

__all__ = ["Limiter", "Limits", "Request", "Scheduler"]
