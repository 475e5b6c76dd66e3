# SPDX-License-Identifier: MIT
"""The file system of a mount: kernel requests in, calls to the backing folder out."""
