# SPDX-License-Identifier: MIT
"""Central credit: mounts of many nodes share one storage as if they were one scheduler.

`allocator` decides for one storage, `storages` for several. `stage` blocks requests
without credit as a part of a scheduler's kernels, `front` before any other scheduler.
"""
