# SPDX-License-Identifier: MIT
"""``penstock place``: the cells of its table."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.cli.simulation import place


def test_a_negative_rounding_error_is_shown_as_zero() -> None:
    class Measured:
        slowdowns = np.array([1.0])

    class Result:
        metrics = Measured()
        rho_io = np.array([1.0])
        rho_con = np.array([-1e-17])
        in_io_s = np.array([2.0])

    result: Any = Result()
    cells = place._result_cells(result, 0)
    assert cells == ["1.000", "1.000", "0.000", "2 s"]
