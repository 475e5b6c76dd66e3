# SPDX-License-Identifier: MIT
"""A folder mounted through a bandwidth limit: one mount is one storage target.

Pure decisions: `limiter` (when a request may go), a scheduler of `penstock.qos` (in
which order), `cascade` (both), `meters` (service per application), `slo_settings` (the
file of ``--slo``), `rules` (which application owns a file).

Real time: `gate` drives the decisions, `peers` sends and receives the reports that
`exchange` encodes, `service` puts these together.

The file system: `filesystem.passthrough` answers the kernel, `filesystem.backing` calls
the backing file system, `filesystem.inodes` holds the files that the kernel knows.

The process: `daemon` mounts, serves and unmounts; `control` is its socket; `points`
reads the mount table.

`filesystem.passthrough` and `daemon` need pyfuse3 and are imported late.
"""

from __future__ import annotations

from penstock.mount.limiter import Limiter, Limits

__all__ = ["Limiter", "Limits"]
