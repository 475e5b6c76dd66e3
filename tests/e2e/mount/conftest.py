# SPDX-License-Identifier: MIT
"""Real mounts for tests; all are unmounted at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.mounts import Mounted, why_no_mounts


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip these tests, with the reason, where no mounts are possible."""
    reason = why_no_mounts()
    if not reason:
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=f"no real mounts: {reason}"))


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[..., Mounted]]:
    """Return a function that mounts with given options, perhaps at given folders."""
    mounts: list[Mounted] = []

    def make(*options: str, **folders: Path) -> Mounted:
        mounts.append(Mounted(tmp_path / f"m{len(mounts)}", **folders))
        return mounts[-1].start(*options)

    yield make
    for mounted in mounts:
        mounted.end()


#: All requests belong to one application and pass both levels of the scheduler.
SLO_FILE = """
[applications.some]
throughput = "1 GB/s"
latency = "10 ms"
[[rules]]
application = "some"
path = "/"
"""


@pytest.fixture(scope="module")
def unlimited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted]:
    """Return a mount with a scheduler and without a limit, for all tests of a file."""
    mounted = Mounted(tmp_path_factory.mktemp("unlimited"))
    file = mounted.home / "slo.toml"
    file.write_text(SLO_FILE)
    try:
        yield mounted.start("--slo", str(file))
    finally:
        mounted.end()
