# SPDX-License-Identifier: MIT
"""The simulator: `simulate` runs a policy on an instance, exactly."""

from penstock.sim.run import EventLog, GrantLog, Run
from penstock.sim.simulate import simulate, warm_up

__all__ = ["EventLog", "GrantLog", "Run", "simulate", "warm_up"]
