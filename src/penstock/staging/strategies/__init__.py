# SPDX-License-Identifier: MIT
"""The strategies by which applications stage writes or divide storage targets."""
