# SPDX-License-Identifier: MIT
"""What ``period=given`` of set-10 and its relatives asks of an instance."""

from __future__ import annotations

from penstock.errors import InputError
from penstock.model import Instance
from penstock.policies import get_policy
from penstock.policies.policy import Policy

__all__ = ["check_periods"]


def check_periods(instance: Instance, policy: Policy | str) -> None:
    """Raise `InputError` if the policy is to be given periods that are not known.

    RATIONALE: the policy learns those that it is not given, so that nobody would see
    that it is another one than was asked for.
    """
    if isinstance(policy, str):
        policy = get_policy(policy)
    if policy.settings.get("period") != "given":
        return
    for number, application in enumerate(instance.applications):
        if not application.period > 0:
            raise InputError(
                f"{application.name!r} has no period, but {policy} must be given one",
                where=f"applications[{number}]",
                remedy='give every application of an instance a "period", or leave '
                "out period=given",
            )
