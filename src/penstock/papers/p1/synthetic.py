# SPDX-License-Identifier: MIT
"""The study behind Figures 2 to 4 of bandwidth sharing (section 6.2.2).

All policies run on the same instances of the synthetic workload, at six values of the
aimed I/O pressure W. `pressure` and `ranks` draw their figures from it.
"""

from __future__ import annotations

from typing import Final

from penstock.experiments.reproduction import Scale
from penstock.experiments.study import Study, sweep
from penstock.papers.p1.policies import ALL_POLICIES

__all__ = ["HORIZON_S", "INSTANCES", "PRESSURES", "pressure_study"]

PRESSURES: Final = (0.2, 0.5, 0.8, 0.9, 1.0, 1.1)
INSTANCES: Final = {Scale.SMOKE: 5, Scale.PAPER: 200}
HORIZON_S: Final = {Scale.SMOKE: 200_000.0, Scale.PAPER: 2_000_000.0}


def pressure_study(scale: Scale) -> Study:
    """Return the study: every pressure, the yields of all applications kept."""
    fixed = {"horizon": HORIZON_S[scale]}
    points = sweep("synthetic", fixed, {"pressure": PRESSURES})
    return Study("p1-synthetic", points, INSTANCES[scale], ALL_POLICIES, yields=True)
