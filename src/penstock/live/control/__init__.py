# SPDX-License-Identifier: MIT
"""Pure decisions of live control: events in, rates and messages out, without I/O."""
