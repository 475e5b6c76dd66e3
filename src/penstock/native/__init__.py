# SPDX-License-Identifier: MIT
"""The C sources of the preload library, and how it is found or built."""
