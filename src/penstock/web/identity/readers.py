# SPDX-License-Identifier: MIT
"""Who looks at the page, and what this reader may see.

The rules are those of the Unix socket: root and the user who runs the daemon are
operators and see all jobs; other users see their own. Tokens and proxies can name more
operators: ``operator:NAME``, where NAME is for the log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from penstock.errors import InputError
from penstock.live.wire.identity import is_operator, user_id
from penstock.live.wire.messages import ControllerRequest, OnBehalfOf, StatusDocument

__all__ = ["OPERATOR", "OPERATOR_NAME", "Reader", "reader_named", "reader_of_user"]

OPERATOR_NAME: Final = "operator"
_OPERATOR: Final = re.compile(rf"{OPERATOR_NAME}(:[\w.@+-]{{1,64}})?")


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who looks at the page."""

    user: int | None
    """User id; None: an operator, who sees everything."""
    name: str = field(default="", compare=False)
    """Who it is, for the log."""

    def may_see(self, job_key: str) -> bool:
        """Return True if the reader may see the job with this key."""
        return self.user is None or job_key.startswith(f"{self.user}:")

    def part_of(self, status: StatusDocument) -> StatusDocument:
        """Return what the reader may see of a status without explanations.

        It is what the daemon answers to this user. Explanations name other jobs: the
        daemon itself must write them for the user (`request`).
        """
        if self.user is None:
            return status
        return replace(
            status,
            jobs=[line for line in status.jobs if line.user == self.user],
            throttled=[each for each in status.throttled if each.user == self.user],
        )

    def request(self, request: ControllerRequest) -> ControllerRequest | OnBehalfOf:
        """Return the message that asks the daemon with the rights of the reader."""
        return request if self.user is None else OnBehalfOf(self.user, request)


OPERATOR: Final = Reader(None, OPERATOR_NAME)


def reader_of_user(user: int) -> Reader:
    """Return the reader with this user id."""
    return Reader(None if is_operator(user) else user, f"user {user}")


def reader_named(name: str, where: str = "") -> Reader:
    """Return the reader with the name or id of a user, or an operator.

    Raises
    ------
    InputError
        If there is no such user; `where` says where the name is written.
    """
    if _OPERATOR.fullmatch(name):
        return Reader(None, name)
    user = user_id(name)
    if user is None:
        raise InputError(
            f"there is no user {name!r}",
            where=where,
            remedy=f"name a user of this machine, a user id, or {OPERATOR_NAME}",
        )
    return reader_of_user(user)
