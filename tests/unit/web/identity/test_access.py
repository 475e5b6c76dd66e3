# SPDX-License-Identifier: MIT
"""Who sends a request: by the kernel, by a cookie, or by a token."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.live.wire.peers import CONNECTION, UNIX_HOST
from penstock.web.identity.access import (
    COOKIE,
    SESSION_S,
    KernelAccess,
    TokenAccess,
    WriteGuard,
    is_same_origin,
)
from penstock.web.identity.readers import OPERATOR, Reader
from penstock.web.identity.tokens import make_token

STRANGER = 54321
_KINDS = ("Bearer", "Basic")


class FakeHeaders(dict[str, str]):
    """Headers of a request; a text of two lines is sent as two headers."""

    def getlist(self, name: str) -> list[str]:
        return self[name].splitlines() if name in self else []


def request_with(cookie: str = "", **headers: str) -> Any:
    """Return a request from port 40000 of this machine, to port 9480."""
    return SimpleNamespace(
        headers=FakeHeaders(
            {name.replace("_", "-"): text for name, text in headers.items()}
        ),
        cookies={COOKIE: cookie} if cookie else {},
        client=SimpleNamespace(host="127.0.0.1", port=40000),
        scope={"server": ("127.0.0.1", 9480)},
    )


# --- The kernel -----------------------------------------------------------------------


def kernel_access(user: int | None) -> KernelAccess:
    """Return an access where every connection belongs to this user."""

    def user_of(client: tuple[str, int], server: tuple[str, int]) -> int | None:
        assert (client, server) == (("127.0.0.1", 40000), ("127.0.0.1", 9480))
        return user

    return KernelAccess(user_of)


def test_the_kernel_names_the_reader() -> None:
    request = request_with(host="localhost:9480")
    assert kernel_access(0).reader(request) == OPERATOR
    assert kernel_access(STRANGER).reader(request) == Reader(STRANGER)
    assert kernel_access(None).reader(request) is None


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("localhost", True),
        ("127.0.0.1:9480", True),
        ("[::1]:9480", True),
        ("evil.example:9480", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("", False),
    ],
)
def test_foreign_names_of_this_machine_are_refused(host: str, is_known: bool) -> None:
    request = request_with(host=host)
    assert (kernel_access(0).reader(request) is not None) is is_known


@pytest.mark.parametrize(
    "name", ["forwarded", "via", "x_forwarded_for", "x_real_ip", "x_remote_user"]
)
def test_what_a_proxy_has_forwarded_is_refused(name: str) -> None:
    request = request_with(host="localhost", **{name: "10.0.0.1"})
    assert kernel_access(0).reader(request) is None


def test_a_request_that_came_by_no_network_is_refused() -> None:
    request = request_with(host="localhost")
    request.client = None
    assert kernel_access(0).reader(request) is None


def test_the_kernel_is_asked_once_for_a_connection() -> None:
    users = iter([STRANGER])
    access = KernelAccess(lambda *_: next(users))
    request = request_with(host="localhost")
    request.scope[CONNECTION] = {}
    assert [access.reader(request) for _ in range(3)] == [Reader(STRANGER)] * 3


def test_a_user_who_was_not_found_is_looked_for_again() -> None:
    users = iter([None, STRANGER])
    access = KernelAccess(lambda *_: next(users))
    request = request_with(host="localhost")
    request.scope[CONNECTION] = {}
    assert access.reader(request) is None
    assert access.reader(request) == Reader(STRANGER)


def test_a_daemon_of_one_user_shows_others_nothing() -> None:
    request = request_with(host="localhost")
    users = (0, os.geteuid(), STRANGER)
    readers = [
        KernelAccess(lambda *_, user=user: user, all_users=False).reader(request)
        for user in users
    ]
    assert readers == [OPERATOR, OPERATOR, None]


def unix_request(user: int, **headers: str) -> Any:
    """Return a request at a Unix socket."""
    request = request_with(**headers)
    request.client = SimpleNamespace(host=UNIX_HOST, port=user)
    request.scope["server"] = ("/run/page.sock", None)
    return request


def test_a_unix_socket_names_the_reader() -> None:
    assert KernelAccess().reader(unix_request(STRANGER)) == Reader(STRANGER)
    assert KernelAccess().reader(unix_request(0, host="any.example")) == OPERATOR


PROXY = 54322


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("nobody", Reader(pwd.getpwnam("nobody").pw_uid)),
        ("root", OPERATOR),
        ("operator:ann", OPERATOR),
        ("no-such-user", None),
        ("operator", None),
        ("operator:", None),
        ("operator:a b", None),
        ("0", None),
        ("", None),
        ("nobody\nroot", None),
        ("x" * 10_000, None),
    ],
)
def test_a_known_proxy_names_the_reader(name: str, reader: Reader | None) -> None:
    access = KernelAccess(proxy=PROXY)
    forwarded = {"host": "site.example", "via": "1.1 x", "x_remote_user": name}
    assert access.reader(unix_request(PROXY, **forwarded)) == reader
    # Nobody else may name a reader.
    assert access.reader(unix_request(STRANGER, **forwarded)) is None


def test_a_proxy_without_a_name_reads_nothing() -> None:
    assert KernelAccess(proxy=PROXY).reader(unix_request(PROXY)) is None


def test_acts_are_logged_with_the_name_that_the_proxy_gives() -> None:
    request = unix_request(PROXY, x_remote_user="operator:ann")
    reader = KernelAccess(proxy=PROXY).reader(request)
    assert reader is not None
    assert reader.name == "operator:ann"


# --- Tokens ---------------------------------------------------------------------------


class TokenRig:
    """An access by tokens, with a clock that a test moves."""

    def __init__(self, path: Path) -> None:
        self.now_s = 0.0
        self.operator = make_token(path, "operator")
        self.stranger = make_token(path, str(STRANGER))
        self.access = TokenAccess(path, lambda: self.now_s)


@pytest.fixture
def rig(tmp_path: Path) -> TokenRig:
    return TokenRig(tmp_path / "tokens")


def test_a_login_gives_a_cookie(rig: TokenRig) -> None:
    cookie = rig.access.log_in(rig.stranger)
    assert cookie is not None
    assert cookie != rig.stranger
    assert rig.access.reader(request_with(cookie)) == Reader(STRANGER)


@pytest.mark.parametrize("token", ["", "wrong", "x" * 100_000, "\udcff", "a\x00b"])
def test_wrong_tokens_give_none(rig: TokenRig, token: str) -> None:
    assert rig.access.log_in(token) is None


@pytest.mark.parametrize("cookie", ["", "wrong", "x" * 100_000, "\udcff"])
def test_wrong_cookies_are_nobody(rig: TokenRig, cookie: str) -> None:
    rig.access.log_in(rig.operator)
    assert rig.access.reader(request_with(cookie)) is None


def test_a_token_is_not_a_cookie(rig: TokenRig) -> None:
    assert rig.access.reader(request_with(rig.operator)) is None


def test_programs_send_the_token_itself(rig: TokenRig) -> None:
    for text, reader in (
        (f"Bearer {rig.operator}", OPERATOR),
        (f"bearer {rig.stranger}", Reader(STRANGER)),
        ("Bearer wrong", None),
        ("Bearer ", None),
        (f"Basic {rig.operator}", None),
    ):
        assert rig.access.reader(request_with(authorization=text)) == reader


def test_a_wrong_token_is_not_helped_by_a_cookie(rig: TokenRig) -> None:
    cookie = rig.access.log_in(rig.operator) or ""
    request = request_with(cookie, authorization="Bearer wrong")
    assert rig.access.reader(request) is None


def test_a_login_ends_with_time(rig: TokenRig) -> None:
    cookie = rig.access.log_in(rig.operator) or ""
    rig.now_s = SESSION_S - 1.0
    assert rig.access.reader(request_with(cookie)) == OPERATOR
    rig.now_s = SESSION_S + 1.0
    assert rig.access.reader(request_with(cookie)) is None


def test_a_login_ends_when_the_reader_says_so(rig: TokenRig) -> None:
    cookie = rig.access.log_in(rig.operator) or ""
    rig.access.log_out(cookie)
    assert rig.access.reader(request_with(cookie)) is None


def test_a_login_ends_with_its_token(rig: TokenRig, tmp_path: Path) -> None:
    cookie = rig.access.log_in(rig.stranger) or ""
    make_token(tmp_path / "tokens", str(STRANGER))
    assert rig.access.reader(request_with(cookie)) is None


def test_the_oldest_logins_are_forgotten_first(
    rig: TokenRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.web.identity.access._MOST_SESSIONS", 2)
    cookies = [rig.access.log_in(rig.operator) or "" for _ in range(3)]
    known = [rig.access.reader(request_with(cookie)) for cookie in cookies]
    assert known == [None, OPERATOR, OPERATOR]


def test_logins_with_one_token_do_not_end_those_with_another(
    rig: TokenRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.web.identity.access._MOST_SESSIONS", 2)
    cookie = rig.access.log_in(rig.operator) or ""
    for _ in range(5):
        rig.access.log_in(rig.stranger)
    assert rig.access.reader(request_with(cookie)) == OPERATOR


def test_logins_that_have_ended_are_forgotten(rig: TokenRig) -> None:
    rig.access.log_in(rig.operator)
    rig.now_s = SESSION_S + 1.0
    rig.access.log_in(rig.stranger)
    assert len(rig.access._sessions) == 1


# --- Foreign pages --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"sec_fetch_site": "same-origin"}, True),
        ({"sec_fetch_site": "same-site"}, False),
        ({"sec_fetch_site": "cross-site"}, False),
        ({"sec_fetch_site": "none"}, False),
        ({"origin": "http://here:9480"}, True),
        ({"origin": "https://here:9480"}, True),
        ({"origin": "http://here:9481"}, False),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "null"}, False),
        ({}, False),
    ],
)
def test_forms_of_foreign_pages(headers: dict[str, str], expected: bool) -> None:
    assert is_same_origin(request_with(host="here:9480", **headers)) is expected


@pytest.fixture
def page() -> tuple[WriteGuard, str]:
    """Return a guard, and what an operator's page may send."""
    guard = WriteGuard()
    return guard, guard.page_text(request_with("cookie"), OPERATOR)


def test_a_page_of_this_server_may_write(page: tuple[WriteGuard, str]) -> None:
    guard, text = page
    own = request_with(
        "cookie", host="here", sec_fetch_site="same-origin", x_penstock_page=text
    )
    assert guard.may_write(own, OPERATOR, by_token=True)
    assert guard.may_write(own, OPERATOR, by_token=False)


@pytest.mark.parametrize(
    "changes",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"x_penstock_page": "wrong"},
        {"x_penstock_page": ""},
        {"x_penstock_page": "é"},
        {"cookie": "another login"},
    ],
)
def test_other_pages_may_not(
    page: tuple[WriteGuard, str], changes: dict[str, str]
) -> None:
    guard, text = page
    facts = {
        "cookie": "cookie",
        "host": "here",
        "sec_fetch_site": "same-origin",
        "x_penstock_page": text,
    }
    sent = request_with(**facts | changes)
    assert not guard.may_write(sent, OPERATOR, by_token=True)


def test_the_text_is_of_one_reader_and_one_run(page: tuple[WriteGuard, str]) -> None:
    guard, text = page
    request = request_with("cookie")
    assert guard.page_text(request, Reader(7)) != text
    assert WriteGuard().page_text(request, OPERATOR) != text


def test_programs_with_a_token_may_write(page: tuple[WriteGuard, str]) -> None:
    guard, _ = page
    bearer, basic = (request_with(authorization=f"{kind} x") for kind in _KINDS)
    assert guard.may_write(bearer, OPERATOR, by_token=True)
    assert not guard.may_write(basic, OPERATOR, by_token=True)
    # Where the kernel or a proxy names readers, nobody has looked at the token.
    assert not guard.may_write(bearer, OPERATOR, by_token=False)


def test_two_empty_hosts_are_not_the_same() -> None:
    assert not is_same_origin(request_with(origin=""))
