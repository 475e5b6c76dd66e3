# SPDX-License-Identifier: MIT
"""Debian's Chromium for tests of pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, expect, sync_playwright

__all__ = ["LIMIT_MS", "chromium", "faultless_page", "why_no_browser"]

_CHROMIUM: Final = Path("/usr/bin/chromium")
#: How long a page may take, also on a loaded machine (ms).
LIMIT_MS: Final = 30_000.0


def why_no_browser() -> str:
    """Return why there is no browser; empty if there is one."""
    return "" if _CHROMIUM.exists() else "needs chromium"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a browser."""
    expect.set_options(timeout=LIMIT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(_CHROMIUM), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@contextmanager
def faultless_page(browser: Browser) -> Iterator[Page]:
    """Yield an empty page, which must report no error, e.g. of a content policy."""
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.set_default_timeout(LIMIT_MS)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: _note(message.type, message.text, faults))
    yield page
    page.close()
    assert faults == []


def _note(kind: str, text: str, faults: list[str]) -> None:
    # The browser logs failed connections, and answers that say what was wrong.
    if kind == "error" and not re.search("ERR_|status of [45]", text):
        faults.append(text)
