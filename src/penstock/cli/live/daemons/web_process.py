# SPDX-License-Identifier: MIT
"""The process of the dashboard, both ends: its start by ``serve``, and its program.

``penstock serve`` opens the port itself, so that a wrong address is reported at once
and browsers can connect while the process starts. The process gets the open port and
its configuration, and runs ``python -m penstock.cli.live.daemons.web_process``.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from penstock.errors import InputError, MissingExtraError
from penstock.live.setting_values import UNIX
from penstock.live.wire.identity import user_id

if TYPE_CHECKING:
    import asyncio

    from penstock.live.settings import Settings
    from penstock.web.watch import Watch

__all__ = ["WebConfig", "main", "page_address", "web_process"]

_BACKLOG = 512
_OPEN_TO_ALL = 0o666
#: Priority of the process: the daemon and programs come first.
_NICE = 5
#: Questions to the daemon at a time.
_THREADS = 8


class WebConfig(msgspec.Struct, frozen=True):
    """What the process of the dashboard is told."""

    descriptor: int
    """Number of the open port."""
    socket: str
    """Unix socket of the daemon."""
    mounts: str
    """Folder of the sockets of mounts."""
    archive: str
    """Folder of the archive; "": nothing is archived."""
    acts: str
    """File for what operators change on the page."""
    started_s: float
    """When the daemon began (s since 1970)."""
    token_file: str
    """File of tokens; "": the kernel says who connects."""
    all_users: bool
    """Whether other users than the daemon's may look, without tokens."""
    proxy: int | None
    """User id of a web server that names its readers."""
    log_format: str
    log_level: str


def web_process(
    settings: Settings,
) -> Callable[[], AbstractAsyncContextManager[None]]:
    """Open the port of the dashboard; return what keeps its process running.

    Without the setting `web`, there is no port and no process.

    Raises
    ------
    InputError
        If the port cannot be opened, the tokens cannot be read, or a package of the
        extra `web` is missing.
    """
    if not settings.web:
        return nullcontext
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "web", where="web")
    from penstock.live.daemon.companion import companion
    from penstock.web.identity.tokens import TokenFile

    if settings.web_token:
        TokenFile(Path(settings.web_token))
    proxy = _user_id(settings.web_proxy) if settings.web_proxy else None
    listener = _listen(settings.web)
    config = WebConfig(
        listener.fileno(),
        str(settings.socket),
        str(settings.home / "mounts"),
        str(settings.archive_folder or ""),
        str(settings.acts_file),
        time.time(),
        settings.web_token,
        settings.users == "all",
        proxy,
        settings.log_format,
        settings.log_level,
    )
    text = msgspec.json.encode(config).decode()
    # -P: what lies in the working directory is not imported.
    module = "penstock.cli.live.daemons.web_process"
    command = [sys.executable, "-P", "-m", module, text]
    return lambda: companion("the web page", command, [listener.fileno()])


def page_address(address: str) -> str:
    """Return where a browser, or a web server, finds the page."""
    if address.startswith(UNIX):
        return address
    return f"http://{'127.0.0.1' if address.startswith(':') else ''}{address}/"


def _user_id(name: str) -> int:
    """Return the id of a user of this machine."""
    user = user_id(name)
    if user is None:
        raise InputError(
            f"there is no user {name!r}",
            where="web_proxy",
            remedy="name the user of the web server, e.g. www-data",
        )
    return user


def _listen(address: str) -> socket.socket:
    """Return an open port at ``HOST:PORT``, or a Unix socket at ``unix:/PATH``."""
    try:
        if address.startswith(UNIX):
            return _listen_at_path(Path("/", address.removeprefix(UNIX)))
        host, _, port = address.rpartition(":")
        host = host.strip("[]") or "127.0.0.1"
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, int(port)), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise InputError(
            f"cannot listen: {error.strerror or error}",
            where=f"web {address!r}",
            remedy=_listen_remedy(address, error),
        ) from None


def _listen_remedy(address: str, error: OSError) -> str:
    """Return what to do if an address cannot be used."""
    if address.startswith(UNIX):
        return "give another unix:/PATH, or HOST:PORT"
    if error.errno == errno.EACCES:
        return "ports below 1024 need root: give a larger one, e.g. 127.0.0.1:9480"
    if error.errno == errno.EADDRINUSE:
        return "give another port, because another program uses this one"
    return "give another HOST:PORT, e.g. 127.0.0.1:9480, or unix:/PATH"


def _listen_at_path(path: Path) -> socket.socket:
    """Return a Unix socket that all users can connect to: the kernel names them."""
    with suppress(FileNotFoundError):
        _remove_unused(path)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(_OPEN_TO_ALL)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _remove_unused(path: Path) -> None:
    """Remove the socket that a daemon has left behind; not one where somebody listens.

    Raise `OSError` if there is something else.
    """
    with socket.socket(socket.AF_UNIX) as trial:
        try:
            trial.connect(str(path))
        except ConnectionRefusedError:
            if path.is_socket():
                path.unlink()
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


# --- The process ----------------------------------------------------------------------


def main(text: str) -> int:
    """Serve the dashboard until SIGTERM, or until the daemon has ended."""
    import asyncio

    from penstock.cli.live.daemons.logs import start_logging
    from penstock.live.settings import Settings

    config = msgspec.json.decode(text, type=WebConfig)
    log = Settings(log_format=config.log_format, log_level=config.log_level)
    start_logging(log, sys.stderr)
    os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    asyncio.run(_serve(config))
    return 0


async def _serve(config: WebConfig) -> None:
    import asyncio
    from functools import partial

    from penstock.mount.control import all_statuses
    from penstock.web.acts import ActLog
    from penstock.web.app import Dashboard, build_app
    from penstock.web.identity.access import KernelAccess, PageAccess, TokenAccess
    from penstock.web.link import DaemonLink
    from penstock.web.serving import serve_app
    from penstock.web.watch import Watch

    access: PageAccess = KernelAccess(all_users=config.all_users, proxy=config.proxy)
    if config.token_file:
        access = TokenAccess(Path(config.token_file))
    path = Path(config.socket)
    watch = Watch(DaemonLink(path, 1), partial(all_statuses, Path(config.mounts)))
    archive = Path(config.archive) if config.archive else None
    link = DaemonLink(path, _THREADS)
    acts = ActLog(link, path=Path(config.acts), started_s=config.started_s)
    dashboard = Dashboard(watch, link, access, acts, archive)
    ended = asyncio.Event()
    # The daemon holds the other end; nothing is ever written to it.
    reader = await _standard_input()
    listener = socket.socket(fileno=config.descriptor)
    # If one of them fails, the process ends, and the daemon starts it again.
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(watch.run()),
            group.create_task(_end_with(reader, watch, ended)),
        ]
        await serve_app(build_app(dashboard), listener, ended)
        for task in tasks:
            task.cancel()


async def _standard_input() -> asyncio.StreamReader:
    import asyncio

    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    return reader


async def _end_with(
    reader: asyncio.StreamReader, watch: Watch, ended: asyncio.Event
) -> None:
    """End when the daemon has closed its end of the pipe."""
    await reader.read()
    watch.close()
    ended.set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
