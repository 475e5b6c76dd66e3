# SPDX-License-Identifier: MIT
"""One user has a name, whatever the user database of this machine knows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.cli.live import users

_NAMES = {1001: "ann"}


@pytest.fixture(autouse=True)
def only_ann_has_a_name(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let user 1001 be called ann, and no other user have a name."""
    monkeypatch.setattr(users, "user_name", lambda user: _NAMES.get(user, ""))
    monkeypatch.setattr(users, "user_id", {"ann": 1001, "1001": 1001}.get)
    users.user_words.cache_clear()
    yield
    users.user_words.cache_clear()
