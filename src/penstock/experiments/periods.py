# SPDX-License-Identifier: MIT
"""Check that an instance has the periods that ``period=given`` asks for."""

from __future__ import annotations

from penstock.errors import InputError
from penstock.model import Instance
from penstock.policies.policy import Knowledge, Policy

__all__ = ["check_periods"]


def check_periods(instance: Instance, policy: Policy) -> None:
    """Raise `InputError` if the policy needs periods that the instance lacks.

    RATIONALE: set-10 and its variants learn every period that is not given. Without
    this check, a missing period would silently change ``period=given`` to
    ``period=learnt``.
    """
    if Knowledge.PERIOD not in policy.needs:
        return
    for number, application in enumerate(instance.applications):
        if not application.period > 0:
            raise InputError(
                f"{application.name!r} has no period, but {policy.label} needs one",
                where=f"applications[{number}]",
                remedy='give every application of an instance a "period", or leave '
                "out period=given",
            )
