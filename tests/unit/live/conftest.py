# SPDX-License-Identifier: MIT
"""A test of the live parts fails if an exception is lost in the event loop."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def nothing_fails_unseen(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail if asyncio could only log an exception."""
    yield
    unseen = [
        record for record in caplog.get_records("call") if record.name == "asyncio"
    ]
    assert [record.getMessage() for record in unseen] == []
