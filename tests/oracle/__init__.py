# SPDX-License-Identifier: MIT
"""A naive simulator of bandwidth sharing in exact arithmetic, to test against.

Written from papers/1 (sections 3 and 4), papers/3 (section 3) and the model's
notes alone; it shares no code with the engine or the policies under test.

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
