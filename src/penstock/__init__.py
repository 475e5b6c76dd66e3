# SPDX-License-Identifier: MIT
"""penstock: simulate I/O bandwidth-sharing policies, then run them live."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("penstock")
