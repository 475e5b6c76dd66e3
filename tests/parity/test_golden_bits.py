# SPDX-License-Identifier: MIT
"""Simulated numbers do not change, to the last bit.

The digests were taken from the engine as it was when storage was one pipe, before
targets and flows; one target must go on giving the same numbers. A change that alters
them on purpose belongs under "Changes simulated numbers" in the changelog, with new
digests (run this file as a script).
"""

from __future__ import annotations

import hashlib

import pytest

from penstock.model import Application, Instance, Platform, Window
from penstock.policies import POLICIES
from penstock.sim import simulate

DIGESTS = {
    "fair-share": "58974ca775ec94abc208531362784ee9",
    "fcfs": "5840e5f0deed60b116aa45d3f36da526",
    "greedy-yield": "da6006487a90f873e7a8a81da0fa85c3",
    "greedy-com": "1996ceb55b9cc07fd8edbf2a70841c73",
    "look-ahead-greedy-yield": "0c5dddb70d8f80d62f9861f9c27eef64",
    "periodic-greedy-yield": "58ca3be88b1383780c86c1fb19d84c3f",
    "set-10": "2b68f349e50be0a5b12aa44f9b492567",
    "best-next-event": "3517bcf9abc68df8308b38903e211278",
    "exclusive-fcfs": "5840e5f0deed60b116aa45d3f36da526",
    "set-fair-share": "f1c30d7d1610cedf72f3743839d520bf",
    "share-priority": "97521f6d31d6a07ac6bcee57fd6b16a1",
}


def instance() -> Instance:
    """Return 12 applications, caps unequal, from a generator written out here."""
    state = 12345

    def draw(low: int, high: int) -> int:
        nonlocal state
        state = (1103515245 * state + 12345) % 2**31
        return low + (state >> 8) % (high - low)

    applications = []
    for number in range(12):
        phases: list[tuple[str, float]] = []
        size = draw(1, 40)
        for _ in range(400):
            phases += [("work", draw(0, 900) / 16), ("io", size * draw(1, 300) / 32)]
        applications.append(
            Application.from_phases(
                f"a{number}", draw(1, 9), phases, release=-draw(0, 64) / 8
            )
        )
    return Instance(Platform(8.0, 1.5), Window(100.0, 4000.0), tuple(applications))


def digest(policy: str) -> str:
    run = simulate(instance(), policy, steady=False, record=True)
    assert run.log is not None
    assert run.grants is not None
    checksum = hashlib.sha256(f"{run.events} {run.decisions}".encode())
    for column in (
        *(run.lost, run.ended, run.work, run.volume),
        *(run.log.time, run.log.kind, run.log.application),
        *(run.grants.time, run.grants.application, run.grants.rate),
    ):
        checksum.update(column.tobytes())
    return checksum.hexdigest()[:32]


@pytest.mark.parametrize("policy", DIGESTS)
def test_bits(policy: str) -> None:
    assert digest(policy) == DIGESTS[policy]


if __name__ == "__main__":
    for policy in POLICIES:
        print(f'    "{policy}": "{digest(policy)}",')
