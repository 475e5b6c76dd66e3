# SPDX-License-Identifier: MIT
"""Volumes predicted by FTIO's period detection (Tarraf et al., IPDPS 2024).

FTIO finds the dominant frequency f of a job's bandwidth over time. Between the begins
of the first and of the last operation, a time T, the job has moved V bytes. The next
operation is taken to move what one period does, V / (f T). Without one clear frequency
nothing is predicted, and the history of the job decides (`phases.VolumeGuess`).

FTIO takes seconds to import and its own time to think. It runs in a process of its own
(``python -m penstock.live.daemon.prediction``), which reads operations from its
input, one job
a line, writes predictions to its output, and ends with its input. If it fails the
controller goes on without it. Times in seconds, volumes in bytes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any, BinaryIO, Final

import msgspec

from penstock.errors import InputError
from penstock.live.control.phases import PastOperation

__all__ = ["ftio_predictor", "main", "period_volume"]

_LOG: Final = logging.getLogger("penstock.prediction")
#: Fewer operations have no period.
_FEWEST: Final = 4
#: How sure FTIO must be of a frequency, from 0 to 1.
_CONFIDENCE: Final = 0.5
#: Samples of the bandwidth for each operation.
_SAMPLES: Final = 64
#: A line is shorter (bytes).
_LINE: Final = 1 << 20


class _Question(msgspec.Struct, array_like=True):
    job: str
    operations: list[PastOperation]


class _Prediction(msgspec.Struct, array_like=True):
    job: str
    volume: float


Predictor = Callable[[str, Sequence[PastOperation]], None]


@asynccontextmanager
async def ftio_predictor(
    expect: Callable[[str, float], None],
) -> AsyncIterator[Predictor]:
    """Start FTIO; give it operations, and `expect` hears the volume of the next one."""
    if find_spec("ftio") is None:
        raise InputError(
            "predict = ftio: the Python package ftio is missing",
            remedy="pip install ftio-hpc",
        )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "penstock.live.daemon.prediction"),
        stdin=PIPE,
        stdout=PIPE,
        limit=_LINE,
    )
    listening = asyncio.create_task(_listen(process, expect))
    try:
        yield lambda job, operations: _ask(process, job, operations)
    finally:
        listening.cancel()
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _ask(process: Process, job: str, operations: Sequence[PastOperation]) -> None:
    pipe = process.stdin
    assert pipe is not None  # noqa: S101 - for the type checker
    # One that is slow is asked less: what it has not read yet is enough to think about.
    waiting = pipe.transport.get_write_buffer_size()
    if len(operations) >= _FEWEST and not waiting and not pipe.is_closing():
        question = _Question(job, list(operations))
        pipe.write(msgspec.json.encode(question) + b"\n")


async def _listen(process: Process, expect: Callable[[str, float], None]) -> None:
    pipe = process.stdout
    assert pipe is not None  # noqa: S101 - for the type checker
    while line := await pipe.readline():
        answer = msgspec.json.decode(line, type=_Prediction)
        expect(answer.job, answer.volume)
    _LOG.warning("FTIO has ended: volumes are predicted from history")


# --- The process of FTIO --------------------------------------------------------------


def main(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer questions until there are no more."""
    for line in questions:
        question = msgspec.json.decode(line, type=_Question)
        volume = period_volume(question.operations)
        answers.write(msgspec.json.encode(_Prediction(question.job, volume)) + b"\n")
        answers.flush()


def period_volume(operations: Sequence[PastOperation]) -> float:
    """Return what a job moves in a period (bytes); 0 if there is no clear one."""
    *complete, last = operations
    span = last.begin_s - complete[0].begin_s
    moved = sum(operation.moved_bytes for operation in complete)
    frequency = _dominant_frequency(complete, last.begin_s, moved)
    periods = round(frequency * span)
    return moved / periods if periods else 0.0


def _dominant_frequency(
    operations: Sequence[PastOperation], end: float, moved: float
) -> float:
    """Return the one frequency that FTIO finds (1/s); 0 if there is none."""
    import numpy as np  # noqa: PLC0415 - only here

    ftio: Any = import_module("ftio.cli.ftio_core")
    options: Any = import_module("ftio.parse.args")
    times: list[float] = []
    rates: list[float] = []
    begin = operations[0].begin_s
    for operation in operations:
        duration = max(operation.end_s - operation.begin_s, 1e-3)
        times += [operation.begin_s - begin, operation.begin_s - begin + duration]
        rates += [operation.moved_bytes / duration, 0.0]
    arguments = options.parse_args(["-e", "no"], "ftio")
    arguments.freq = _SAMPLES * len(operations) / (end - begin)
    data = {
        "time": np.array([*times, end - begin]),
        "bandwidth": np.array([*rates, 0.0]),
        "total_bytes": round(moved),
        "ranks": 1,
    }
    found = ftio.core(data, arguments)[0]
    clear = len(found.dominant_freq) == 1 and found.conf[0] >= _CONFIDENCE
    return float(found.dominant_freq[0]) if clear else 0.0


if __name__ == "__main__":
    # The controller comes first.
    os.setpriority(os.PRIO_PROCESS, 0, 10)
    # FTIO talks; what it says is no answer.
    real_output = os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    main(sys.stdin.buffer, real_output)
