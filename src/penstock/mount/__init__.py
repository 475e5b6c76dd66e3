# SPDX-License-Identifier: MIT
"""A folder mounted through a bandwidth limit: one mount is one storage target.

The data path is C (``native/mount``): it answers the kernel, and passes, counts, limits
and queues requests without Python. `data_path` loads and calls it.

The control plane: `rules` (which application owns a file), `slo_settings` (the file of
``--slo``), `callbacks` (schedulers that are written in Python), `exchange` (the link to
the controller of all mounts); `service` puts these together.

The process: `daemon` mounts, serves and unmounts; `control` is its socket; `points`
reads the mount table.
"""

from __future__ import annotations

from penstock.mount.limits import Limits

__all__ = ["Limits"]
