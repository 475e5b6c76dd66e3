# SPDX-License-Identifier: MIT
"""The simulator: `simulate` runs a policy on an instance, exactly."""

from penstock.sim.run import EventLog, Grants, Run
from penstock.sim.simulate import simulate, warm_up

__all__ = ["EventLog", "Grants", "Run", "simulate", "warm_up"]
