# SPDX-License-Identifier: MIT
"""The file of tokens: who has which, and who may read it."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import InputError
from penstock.web.identity.readers import OPERATOR, Reader
from penstock.web.identity.tokens import TokenFile, make_token, token_digest
from support.users import NEEDS_ROOT, NOBODY, as_user, open_for_all

STRANGER = 54321


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


def test_a_token_is_that_of_its_user(path: Path) -> None:
    operator = make_token(path, "operator")
    stranger = make_token(path, str(STRANGER))
    tokens = TokenFile(path)
    assert tokens.reader(token_digest(operator)) == OPERATOR
    assert tokens.reader(token_digest(stranger)) == Reader(STRANGER)
    assert tokens.reader(token_digest(f"{stranger} ")) is None
    assert tokens.reader("") is None


def test_the_user_who_runs_the_daemon_is_an_operator(path: Path) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    token = make_token(path, me)
    assert TokenFile(path).reader(token_digest(token)) == OPERATOR


def test_the_file_is_private_and_has_no_token(path: Path) -> None:
    token = make_token(path, "operator")
    assert path.stat().st_mode & 0o777 == 0o600
    assert token not in path.read_text()
    assert len(token) >= 40


def test_a_new_token_replaces_the_one_before(path: Path) -> None:
    other = make_token(path, "operator")
    old = make_token(path, str(STRANGER))
    new = make_token(path, str(STRANGER))
    tokens = TokenFile(path)
    assert tokens.reader(token_digest(old)) is None
    assert tokens.reader(token_digest(new)) == Reader(STRANGER)
    assert tokens.reader(token_digest(other)) == OPERATOR


def test_a_removed_line_ends_the_access_at_once(path: Path) -> None:
    digest = token_digest(make_token(path, str(STRANGER)))
    make_token(path, "operator")
    tokens = TokenFile(path)
    assert tokens.reader(digest) == Reader(STRANGER)
    kept = [line for line in path.read_text().splitlines(True) if "operator" in line]
    path.write_text("".join(kept))
    assert tokens.reader(digest) is None


def test_a_file_that_becomes_unusable_has_no_tokens(path: Path) -> None:
    digest = token_digest(make_token(path, "operator"))
    tokens = TokenFile(path)
    path.write_text("nonsense\n")
    assert tokens.reader(digest) is None
    path.unlink()
    assert tokens.reader(digest) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no tokens .make one with penstock serve"),
        ("operator\n", "line 1: is not a user and a SHA-256"),
        ("operator secret\n", "line 1: is not a user and a SHA-256"),
        (f"operator {'A' * 64}\n", "line 1: is not a user and a SHA-256"),
        (f"no-such-user {'0' * 64}\n", "line 1: there is no user 'no-such-user'"),
    ],
)
def test_mistakes_in_the_file(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(InputError, match=message):
        TokenFile(path)


def test_a_file_that_others_can_read_is_refused(path: Path) -> None:
    make_token(path, "operator")
    path.chmod(0o640)
    with pytest.raises(InputError, match=r"can be read by others .chmod 600"):
        TokenFile(path)


def test_a_missing_file_is_refused(path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        TokenFile(path)


def test_a_token_for_nobody_is_not_made(path: Path) -> None:
    with pytest.raises(InputError, match="there is no user 'no-such-user'"):
        make_token(path, "no-such-user")
    assert not path.exists()


def _refusal(act: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        act()
    return str(caught.value)


@NEEDS_ROOT
def test_a_file_that_may_not_be_read_is_named_as_such(path: Path) -> None:
    make_token(path, "operator")
    open_for_all(path.parent)
    told = as_user(NOBODY, lambda: _refusal(lambda: TokenFile(path)))
    assert "cannot be read: Permission denied (start penstock as the user who" in told
    path.parent.chmod(0o700)
    told = as_user(NOBODY, lambda: _refusal(lambda: make_token(path, "operator")))
    assert "Permission denied" in told
