# SPDX-License-Identifier: MIT
"""The dominant frequency of a job's I/O, found by FTIO (Tarraf et al., IPDPS 2024).

FTIO is the Python package ``ftio-hpc``. It takes seconds to import, and prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

__all__ = ["dominant_frequency"]

#: Least confidence of FTIO in a frequency that is used, from 0 to 1.
_CONFIDENCE: Final = 0.5
#: Number of samples of the bandwidth per operation.
_SAMPLES: Final = 64
#: Least duration of an operation (s).
_SHORTEST_S: Final = 1e-3


def dominant_frequency(
    operations: Sequence[tuple[float, float, float]], end_s: float
) -> float:
    """Return the dominant frequency that FTIO finds (1/s); 0 if it is not clear.

    Parameters
    ----------
    operations
        Begin (s), end (s) and volume (bytes) of every operation, in their order.
    end_s
        End of the time in which they were observed.
    """
    ftio: Any = import_module("ftio.cli.ftio_core")
    options: Any = import_module("ftio.parse.args")
    times: list[float] = []
    rates: list[float] = []
    first_s = operations[0][0]
    for begin_s, operation_end_s, moved_bytes in operations:
        duration = max(operation_end_s - begin_s, _SHORTEST_S)
        times += [begin_s - first_s, begin_s - first_s + duration]
        rates += [moved_bytes / duration, 0.0]
    arguments = options.parse_args(["-e", "no"], "ftio")
    arguments.freq = _SAMPLES * len(operations) / (end_s - first_s)
    data = {
        "time": np.array([*times, end_s - first_s]),
        "bandwidth": np.array([*rates, 0.0]),
        "total_bytes": round(sum(moved for _, _, moved in operations)),
        "ranks": 1,
    }
    frequencies = ftio.core(data, arguments)[0]
    clear = len(frequencies.dominant_freq) == 1 and frequencies.conf[0] >= _CONFIDENCE
    return float(frequencies.dominant_freq[0]) if clear else 0.0
