# SPDX-License-Identifier: MIT
"""A naive simulator of bandwidth sharing in exact arithmetic, to test against.

Written from the papers on bandwidth sharing (sections 3 and 4) and IO-SETS (section 3)
and from the notes on the model only. It shares no code with the engine or the policies
under test.

    run = simulate(instance, make_strategy("set-10", update="post"))
"""

from oracle.best_next_event import Best, BestNextEvent, achieved_vector, best_vector
from oracle.simulator import Active, Decision, OracleError, OracleRun, State, simulate
from oracle.strategies import STRATEGIES, make_strategy

__all__ = [
    "STRATEGIES",
    "Active",
    "Best",
    "BestNextEvent",
    "Decision",
    "OracleError",
    "OracleRun",
    "State",
    "achieved_vector",
    "best_vector",
    "make_strategy",
    "simulate",
]
