# SPDX-License-Identifier: MIT
"""The process behind ``penstock serve``.

`server` starts its parts; `control_loop` is the main loop. `zeromq` connects agents of
other nodes, `history` saves what jobs have done, `metrics` serves Prometheus,
`prediction` runs FTIO, and `measure` measures the bandwidth of a folder.
"""
