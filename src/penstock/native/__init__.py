# SPDX-License-Identifier: MIT
"""The C sources of the preload library and of mounts, and where they are compiled."""
