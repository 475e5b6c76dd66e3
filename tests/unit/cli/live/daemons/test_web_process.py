# SPDX-License-Identifier: MIT
"""The start of the dashboard's process, as far as `penstock serve` does it."""

from __future__ import annotations

import errno
import socket
from contextlib import nullcontext
from pathlib import Path

import pytest

from penstock.cli import main
from penstock.cli.live.daemons import web_process as module
from penstock.cli.live.daemons.web_process import page_address, web_process
from penstock.errors import InputError, MissingExtraError
from penstock.live.settings import Settings
from penstock.web.identity.tokens import TokenFile, token_digest


@pytest.fixture
def extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the packages of the extra are there."""
    monkeypatch.setattr(module, "find_spec", lambda _: object())


def test_without_an_address_there_is_no_process() -> None:
    assert web_process(Settings()) is nullcontext


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(
        MissingExtraError, match=r"web: .*pip install 'penstock\[web\]'"
    ):
        web_process(Settings(web="127.0.0.1:0"))


@pytest.mark.usefixtures("extra")
def test_a_port_that_is_taken_is_reported_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(
            InputError, match=r"web '.*': cannot listen: Address already.*another port"
        ):
            web_process(Settings(web=address))


def test_a_small_port_needs_root() -> None:
    error = PermissionError(errno.EACCES, "Permission denied")
    remedy = module._listen_remedy("127.0.0.1:80", error)
    assert remedy.startswith("ports below 1024 need root")
    assert "unix:/PATH" in module._listen_remedy("unix:/run/a.sock", error)


@pytest.mark.usefixtures("extra")
def test_wrong_tokens_are_reported_at_once(tmp_path: Path) -> None:
    settings = Settings(web="0.0.0.0:0", web_token=str(tmp_path / "none"))
    with pytest.raises(InputError, match="none: cannot be read: No such file"):
        web_process(settings)


@pytest.mark.usefixtures("extra")
def test_a_proxy_that_is_no_user_is_reported_at_once() -> None:
    with pytest.raises(InputError, match="web_proxy: there is no user 'no-such-user'"):
        web_process(Settings(web="127.0.0.1:0", web_proxy="no-such-user"))


@pytest.mark.usefixtures("extra")
def test_a_unix_socket_that_was_left_behind_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "page.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with module._listen(f"unix:{path}"):
        assert path.stat().st_mode & 0o777 == 0o666
        with pytest.raises(InputError, match="cannot listen: Address already in use"):
            web_process(Settings(web=f"unix:{path}"))


@pytest.mark.usefixtures("extra")
def test_a_file_is_not_replaced_by_a_socket(tmp_path: Path) -> None:
    path = tmp_path / "page.sock"
    path.write_text("important")
    with pytest.raises(InputError, match="cannot listen: Address already in use"):
        web_process(Settings(web=f"unix:{path}"))
    assert path.read_text() == "important"


def test_where_the_page_is() -> None:
    addresses = [":80", "[::1]:80", "unix:/run/x"]
    pages = ["http://127.0.0.1:80/", "http://[::1]:80/", "unix:/run/x"]
    assert list(map(page_address, addresses)) == pages


def test_a_token_is_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tokens"
    make = ["serve", f"--web-token={path}", "--make-web-token=operator"]
    assert main(make) == 0
    token = capsys.readouterr().out.strip()
    assert TokenFile(path).reader(token_digest(token)) is not None


def test_a_token_needs_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--make-web-token=operator"]) == 2
    assert "name one with --web-token FILE" in capsys.readouterr().err


def test_a_page_for_the_whole_world_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["serve", "--web=0.0.0.0:9480"]) == 2
    assert "can be reached from other machines" in capsys.readouterr().err
