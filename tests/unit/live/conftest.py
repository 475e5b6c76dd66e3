# SPDX-License-Identifier: MIT
"""No test of the live parts passes while something fails in the event loop."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def nothing_fails_unseen(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail where asyncio could only log an exception that nobody took."""
    yield
    unseen = [
        record for record in caplog.get_records("call") if record.name == "asyncio"
    ]
    assert [record.getMessage() for record in unseen] == []
