# SPDX-License-Identifier: MIT
"""Prediction of volumes by FTIO's period detection (Tarraf et al., IPDPS 2024).

FTIO finds the dominant frequency f of a job's bandwidth over time. Between the begin of
the first and of the last operation, a time T, the job has moved V bytes. The next
operation is predicted to move the volume of one period, V / (f T). Without one clear
frequency nothing is predicted; `volumes.VolumePredictor` then uses the job's history.

FTIO takes seconds to import and to compute. It runs in a process of its own
(``python -m penstock.live.daemon.prediction``), which reads the operations of one job
per line from its standard input, writes predictions to its standard output, and ends
when its input ends. If it fails, the controller goes on without it.

Times are in seconds, volumes in bytes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import BinaryIO, Final

import msgspec

from penstock.errors import MissingExtraError
from penstock.live.control.activity.phases import PastOperation
from penstock.live.daemon.killing import kill_process, start_process

__all__ = ["ftio_predictor", "main", "period_volume"]

_LOG: Final = logging.getLogger("penstock.prediction")
#: FTIO is asked only about jobs with at least this many operations.
_FEWEST: Final = 4
#: Size of the longest line.
_LINE_BYTES: Final = 1 << 20


class _PredictionRequest(msgspec.Struct, array_like=True):
    job_key: str
    operations: list[PastOperation]


class _Prediction(msgspec.Struct, array_like=True):
    job_key: str
    volume: float


Predictor = Callable[[str, Sequence[PastOperation]], None]


@asynccontextmanager
async def ftio_predictor(
    expect: Callable[[str, float], None],
) -> AsyncIterator[Predictor]:
    """Start FTIO; yield a function that asks it about the operations of a job.

    `expect` is called with the job key and the predicted volume; 0: no prediction.
    """
    if find_spec("ftio") is None:
        raise MissingExtraError("ftio", "ftio", where="predict")
    process = await start_process(
        *(sys.executable, "-m", "penstock.live.daemon.prediction"),
        stdin=PIPE,
        stdout=PIPE,
        limit=_LINE_BYTES,
    )
    listening = asyncio.create_task(_listen(process, expect))
    try:
        yield lambda job_key, operations: _ask(process, job_key, operations)
    finally:
        listening.cancel()
        await kill_process(process)


def _ask(process: Process, job_key: str, operations: Sequence[PastOperation]) -> None:
    pipe = process.stdin
    assert pipe is not None  # noqa: S101 - for the type checker
    # Do not queue requests: while FTIO has not read one, skip the next.
    waiting = pipe.transport.get_write_buffer_size()
    if len(operations) >= _FEWEST and not waiting and not pipe.is_closing():
        request = _PredictionRequest(job_key, list(operations))
        pipe.write(msgspec.json.encode(request) + b"\n")


async def _listen(process: Process, expect: Callable[[str, float], None]) -> None:
    pipe = process.stdout
    assert pipe is not None  # noqa: S101 - for the type checker
    while line := await pipe.readline():
        answer = msgspec.json.decode(line, type=_Prediction)
        expect(answer.job_key, answer.volume)
    _LOG.warning("FTIO has ended: volumes are predicted from the jobs' last operations")


# --- The process of FTIO --------------------------------------------------------------


def main(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the input ends."""
    for line in requests:
        request = msgspec.json.decode(line, type=_PredictionRequest)
        volume = period_volume(request.operations)
        answers.write(msgspec.json.encode(_Prediction(request.job_key, volume)) + b"\n")
        answers.flush()


def period_volume(operations: Sequence[PastOperation]) -> float:
    """Return the volume that a job moves in a period; 0 without a clear period."""
    from penstock.analysis.frequency import dominant_frequency  # noqa: PLC0415 - slow

    *complete, last = operations
    span = last.begin_s - complete[0].begin_s
    moved = sum(operation.moved_bytes for operation in complete)
    frequency = dominant_frequency(complete, last.begin_s)
    periods = round(frequency * span)
    return moved / periods if periods else 0.0


if __name__ == "__main__":
    # Leave the processor to the controller.
    os.setpriority(os.PRIO_PROCESS, 0, 10)
    # Discard what FTIO prints.
    real_output = os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    main(sys.stdin.buffer, real_output)
