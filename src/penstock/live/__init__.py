# SPDX-License-Identifier: MIT
"""Live control: the page that a job shares with its agent, and the preload library.

``native/`` holds the library's C sources; ``native/page.h`` defines the page.
"""

from penstock.live.page import Bucket, Counters, IoClass, Mode, Page
from penstock.live.shim import shim_environment, shim_path

__all__ = [
    "Bucket",
    "Counters",
    "IoClass",
    "Mode",
    "Page",
    "shim_environment",
    "shim_path",
]
