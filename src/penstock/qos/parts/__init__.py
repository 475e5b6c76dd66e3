# SPDX-License-Identifier: MIT
"""Parts of which request schedulers are made: kernels on their state.

The upper level of `two_level` is `admission` (rule of the paper) or `promises` with
`holding` and `late_aware`. `feedback` and `saturation` set its depth. `remote_service`
counts service on other servers.
"""
