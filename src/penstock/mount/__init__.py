# SPDX-License-Identifier: MIT
"""A folder mounted through a limit: one mount is one storage target.

`limiter` decides when a request may go (pure: no clock, no I/O), and a scheduler of
`penstock.qos` in which order (`cascade`); `gate` drives both in real time. `objectives`
is the file of ``--slo``, `rules` says whose a request is, `meters` how applications are
served, `exchange` and `peers` tell other mounts;
`service` puts these together. `inodes` and
`backing` are the calls to the file system below; `passthrough` answers the kernel;
`control` is the socket through which a mount is asked and changed; `points` knows mount
points; `daemon` is the process.

`passthrough` and `daemon` need pyfuse3 and are imported late: the rest works without.
"""

from __future__ import annotations

from penstock.mount.limiter import Limiter, Limits

__all__ = ["Limiter", "Limits"]
