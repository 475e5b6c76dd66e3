# SPDX-License-Identifier: MIT
"""Who sends a request: by the kernel on loopback, or by a token.

Without a file of tokens, the page is served on loopback or at a Unix socket only, and
the kernel says which user has opened the connection (`KernelAccess`). Names of other
hosts are refused: otherwise a foreign page whose name suddenly points to 127.0.0.1
could read this one. So are requests that a proxy has forwarded, unless the proxy runs
as the user of the setting `web_proxy`: it names the reader in the header `REMOTE_USER`.

With a file of tokens (`TokenAccess`), a browser logs in once and gets a cookie. The
cookie is not the token, and scripts cannot read it. Programs, such as Prometheus, send
the token in the header ``Authorization: Bearer``. Tokens never are in an address.

Whoever changes something must show that a page of this server asks for it, and not a
foreign page in the same browser (`WriteGuard`): by the origin, and by a text that only
pages of this server can read. Programs that send a token need not.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from penstock.errors import InputError
from penstock.live.wire.peers import (
    CONNECTION,
    UNIX_HOST,
    TcpAddress,
    names_loopback,
    user_of_connection,
)
from penstock.web.identity.readers import (
    OPERATOR_NAME,
    Reader,
    reader_named,
    reader_of_user,
)
from penstock.web.identity.tokens import TokenFile, token_digest

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

__all__ = [
    "COOKIE",
    "REMOTE_USER",
    "SESSION_S",
    "KernelAccess",
    "PageAccess",
    "TokenAccess",
    "WriteGuard",
    "is_foreign",
    "is_same_origin",
]

COOKIE: Final = "penstock_session"
#: How long a login holds (s).
SESSION_S: Final = 12 * 3600.0
#: Logins with one token that are remembered; the oldest are forgotten first.
_MOST_SESSIONS: Final = 100
_SECRET_BYTES: Final = 32
#: Longest token or cookie that is looked at (characters).
_LONGEST: Final = 200
_BEARER: Final = "bearer "
#: Header in which a proxy names the reader: a user of this machine, or operator:NAME.
REMOTE_USER: Final = "x-remote-user"
#: Headers that proxies add.
_FORWARDED: Final = ("forwarded", "via", "x-forwarded-for", "x-real-ip", REMOTE_USER)


class PageAccess(Protocol):
    """Says who sends a request."""

    has_login: bool
    """True if a reader who is not known can log in."""

    def reader(self, request: HTTPConnection) -> Reader | None:
        """Return who sends a request; None if nobody may see the answer."""


def is_foreign(request: HTTPConnection) -> bool:
    """Return True if a page of another server has made a browser send a request."""
    return request.headers.get("sec-fetch-site") in ("cross-site", "same-site")


def is_same_origin(request: HTTPConnection) -> bool:
    """Return True if a request to write comes from a page of this server."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    # Browsers of before 2023 send the origin only.
    origin = request.headers.get("origin", "")
    host = request.headers.get("host", "")
    return bool(host) and origin.partition("://")[2] == host


class WriteGuard:
    """Tells requests of pages of this server from those of foreign pages."""

    HEADER: Final = "x-penstock-page"
    """Header with the text that only pages of this server can read."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(_SECRET_BYTES)

    def page_text(self, request: HTTPConnection, reader: Reader) -> str:
        """Return the text for the pages of a reader in one browser."""
        who = f"{reader.user}:{request.cookies.get(COOKIE, '')[:_LONGEST]}"
        data = who.encode(errors="replace")
        return hmac.new(self._secret, data, sha256).hexdigest()

    def may_write(
        self, request: HTTPConnection, reader: Reader, *, by_token: bool
    ) -> bool:
        """Return True if a program, or a page of this server, sends a request.

        Parameters
        ----------
        by_token
            Whether readers are known by tokens: only then a token is looked at.
        """
        authorization = request.headers.get("authorization", "")
        if by_token and authorization[: len(_BEARER)].lower() == _BEARER:
            # No browser sends this by itself: it is a program, with a valid token.
            return True
        sent = request.headers.get(self.HEADER, "").encode(errors="replace")
        expected = self.page_text(request, reader).encode()
        return is_same_origin(request) and hmac.compare_digest(sent, expected)


class KernelAccess:
    """Knows readers on this machine by the users of their connections.

    Parameters
    ----------
    all_users
        Whether others than operators may look.
    proxy
        User id of a web server that names its readers; None: there is none.
    """

    has_login = False

    def __init__(
        self,
        user_of: Callable[[TcpAddress, TcpAddress], int | None] = user_of_connection,
        *,
        all_users: bool = True,
        proxy: int | None = None,
    ) -> None:
        self._user_of = user_of
        self._all_users = all_users
        self._proxy = proxy

    def reader(self, request: HTTPConnection) -> Reader | None:
        """Return who has opened the connection of a request."""
        client, server = request.client, request.scope.get("server")
        if client is None or server is None:
            return None
        # The search takes long on a machine with many connections.
        known = request.scope.get(CONNECTION, {})
        user = known.get("user")
        if user is None:
            user = self._user_of((client.host, client.port), (server[0], server[1]))
            known["user"] = user
        if user is None:
            return None
        if user == self._proxy:
            return _named_by_proxy(request)
        # The user of a proxy is not the user of the browser.
        if any(name in request.headers for name in _FORWARDED):
            return None
        # Browsers do not reach a Unix socket.
        host = request.headers.get("host", "")
        if client.host != UNIX_HOST and not names_loopback(host):
            return None
        reader = reader_of_user(user)
        return reader if self._all_users or reader.user is None else None


def _named_by_proxy(request: HTTPConnection) -> Reader | None:
    """Return the reader whom a proxy names; None if it names none, or several."""
    names = request.headers.getlist(REMOTE_USER)
    # Names that people can have elsewhere, where the proxy asks for their password.
    if len(names) != 1 or names[0] == OPERATOR_NAME or names[0].isdecimal():
        return None
    try:
        return reader_named(names[0])
    except InputError:
        return None


@dataclass(frozen=True, slots=True)
class _Login:
    """A login."""

    token_digest: str
    end_s: float
    """On the monotonic clock."""


class TokenAccess:
    """Knows readers by tokens, and by the cookies that they got for them."""

    has_login = True

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._tokens = TokenFile(path)
        self._clock = clock
        #: SHA-256 of a cookie -> login, oldest first.
        self._sessions: dict[str, _Login] = {}

    def reader(self, request: HTTPConnection) -> Reader | None:
        """Return who has the token or the cookie of a request."""
        authorization = request.headers.get("authorization", "")
        if authorization[: len(_BEARER)].lower() == _BEARER:
            return self._with_token(authorization[len(_BEARER) :].strip())
        session = self._sessions.get(_hashed(request.cookies.get(COOKIE, "")))
        if session is None or session.end_s < self._clock():
            return None
        # A token that was removed from the file ends the logins with it.
        return self._tokens.reader(session.token_digest)

    def log_in(self, token: str) -> str | None:
        """Return a cookie for a token; None if the token is not valid."""
        if self._with_token(token) is None:
            return None
        cookie = secrets.token_urlsafe(_SECRET_BYTES)
        digest, now_s = token_digest(token), self._clock()
        self._forget_old(digest, now_s)
        self._sessions[_hashed(cookie)] = _Login(digest, now_s + SESSION_S)
        return cookie

    def _forget_old(self, digest: str, now_s: float) -> None:
        """Make room for a login with a token; other tokens keep their logins."""
        ended = [key for key, each in self._sessions.items() if each.end_s < now_s]
        mine = [
            key for key, each in self._sessions.items() if each.token_digest == digest
        ]
        for key in {*ended, *mine[: max(len(mine) + 1 - _MOST_SESSIONS, 0)]}:
            del self._sessions[key]

    def log_out(self, cookie: str) -> None:
        """End the login with this cookie."""
        self._sessions.pop(_hashed(cookie), None)

    def _with_token(self, token: str) -> Reader | None:
        if not 0 < len(token) <= _LONGEST:
            return None
        return self._tokens.reader(token_digest(token))


def _hashed(cookie: str) -> str:
    """Return the key of a cookie: a search by it takes no longer for a near miss."""
    return sha256(cookie[:_LONGEST].encode(errors="replace")).hexdigest()
