# SPDX-License-Identifier: MIT
"""FTIO as a predictor of volumes: in its process, and when it is not installed."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from importlib.util import find_spec
from typing import Any

import pytest

from penstock.analysis import frequency
from penstock.errors import InputError
from penstock.live.control.activity.phases import PastOperation
from penstock.live.daemon import prediction
from penstock.live.daemon.prediction import ftio_predictor, main, period_volume
from support.waiting import LIMIT_S, until_async

NEEDS_FTIO = pytest.mark.skipif(
    find_spec("ftio") is None, reason="ftio-hpc is not installed"
)


def periodic(count: int, volumes: tuple[float, ...] = (1e6,)) -> list[PastOperation]:
    """Return operations every ten seconds, whose volumes come in turn."""
    return [
        PastOperation(10.0 * n, 10.0 * n + 2.0, volumes[n % len(volumes)])
        for n in range(count)
    ]


@NEEDS_FTIO
def test_an_operation_moves_the_volume_of_a_period() -> None:
    assert period_volume(periodic(12)) == pytest.approx(1e6)
    # The mean of volumes that alternate: no two operations in a row show it.
    assert period_volume(periodic(13, (9e5, 11e5))) == pytest.approx(1e6)


@NEEDS_FTIO
def test_without_a_period_nothing_is_predicted() -> None:
    begins = [0.0, 1.0, 17.0, 19.0, 60.0, 61.5, 140.0]
    chaos = [PastOperation(b, b + 0.3, 1e6 * (1 + n % 3)) for n, b in enumerate(begins)]
    assert period_volume(chaos) == 0.0


@NEEDS_FTIO
def test_the_process_answers() -> None:
    predictions: list[tuple[str, float]] = []

    async def act() -> None:
        answered = asyncio.Event()

        def expect(job: str, volume: float) -> None:
            predictions.append((job, volume))
            answered.set()

        async with ftio_predictor(expect) as ask:
            ask("0:too few", periodic(3))
            ask("0:a", periodic(12))
            await asyncio.wait_for(answered.wait(), LIMIT_S)

    asyncio.run(act())
    ((job_key, volume),) = predictions
    assert job_key == "0:a"
    assert volume == pytest.approx(1e6)


def test_lines_in_and_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frequency, "dominant_frequency", lambda *facts: 0.1)
    question = json.dumps(["0:a", periodic(11)]).encode()
    answers = io.BytesIO()
    main(io.BytesIO(question + b"\n"), answers)
    assert json.loads(answers.getvalue()) == ["0:a", 1e6]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "find_spec", lambda name: None)

    async def act() -> None:
        async with ftio_predictor(lambda job, volume: None):
            pytest.fail("there is no FTIO")

    with pytest.raises(InputError, match=r"pip install 'penstock\[ftio\]'"):
        asyncio.run(act())


def test_a_predictor_that_dies_is_only_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setattr(prediction, "find_spec", lambda name: name)
    monkeypatch.setattr(sys, "executable", "true")

    async def act() -> None:
        async with ftio_predictor(lambda job, volume: None) as ask:
            # Ask repeatedly: some questions come before the end of FTIO, some after.
            await until_async(
                lambda: ask("0:a", periodic(12)) or "FTIO has ended" in caplog.text
            )
            ask("0:a", periodic(12))

    asyncio.run(act())
    assert "FTIO has ended" in caplog.text
