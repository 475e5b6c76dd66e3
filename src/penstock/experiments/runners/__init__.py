# SPDX-License-Identifier: MIT
"""Where and how a study is computed: campaigns, process pools, Dask."""
