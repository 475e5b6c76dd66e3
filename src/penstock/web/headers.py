# SPDX-License-Identifier: MIT
"""Headers of every answer: what a browser may do with the page.

The page loads nothing from elsewhere, runs only its own files, and cannot be shown
inside another page. Answers are not kept by caches.
"""

from __future__ import annotations

from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["SAFE_HEADERS", "SafeHeaders"]

_POLICY: Final = (
    *("default-src 'none'", "script-src 'self'", "style-src 'self'"),
    *("img-src 'self'", "connect-src 'self'", "form-action 'self'"),
    *("base-uri 'none'", "frame-ancestors 'none'"),
)
SAFE_HEADERS: Final = {
    "content-security-policy": "; ".join(_POLICY),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}


class SafeHeaders:
    """Adds `SAFE_HEADERS` to all answers of an application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SAFE_HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)
