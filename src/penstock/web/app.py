# SPDX-License-Identifier: MIT
"""The requests that the dashboard answers.

| path | answer |
|---|---|
| ``/`` | the page |
| ``/login``, ``/logout`` | with a file of tokens: get and give back a cookie |
| ``/static/FILE`` | parts of the page; anybody may read them |
| ``/api/reader`` | who the reader is, and whether there is a login |
| ``/api/status`` | the document of ``penstock ctl status --json -`` |
| ``/api/jobs/NAME`` | status, explanation and report of one job |
| ``/api/history`` | past jobs, as ``penstock history --json -`` |
| ``/api/picture`` | the shares ``from`` an instant ``to`` another, of the archive |
| ``/api/events`` | server-sent events, see `watch` |
| ``/api/what-if`` | the last hour under another ``policy``, simulated; operators only |
| ``/api/acts`` | what operators have changed; POST: change something, see `acts` |
| ``/metrics`` | for Prometheus |

Everything but ``/static`` and ``/login`` needs a reader (`access`), who gets the answer
that the daemon gives to this user. Only the page itself can be opened by a link on a
foreign page. Errors of the API are JSON: ``error`` says what is wrong in one line.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.errors import InputError, PenstockError, UnavailableError
from penstock.live.daemon.metrics import CONTENT_TYPE, render_jobs
from penstock.live.wire.messages import (
    ExplainJob,
    GetJobReport,
    GetStatus,
    JobReport,
    ListPastJobs,
    ListUnderWay,
    RunsUnderWay,
    RunWithOperations,
    StatusDocument,
)
from penstock.live.wire.places import Places
from penstock.policies import POLICIES, installed_policies
from penstock.web.acts import ActLog, decode_act
from penstock.web.headers import SafeHeaders
from penstock.web.identity.access import (
    COOKIE,
    SESSION_S,
    PageAccess,
    TokenAccess,
    WriteGuard,
    is_foreign,
    is_same_origin,
)
from penstock.web.identity.readers import Reader
from penstock.web.link import DaemonLink
from penstock.web.pictures.past_picture import past_picture
from penstock.web.pictures.what_if import ask_what_if
from penstock.web.watch import Poll, Watch

__all__ = ["Dashboard", "build_app"]

_STATIC: Final = Path(__file__).with_name("static")
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
#: Readers of events, of all readers and of one user.
_STREAMS: Final = 64, 8
#: Pictures that are made of the archive at a time, of all readers and of one user.
_PICTURES: Final = 4, 1
#: Time before now that is simulated under another policy (s).
_SIMULATED_S: Final = 3600.0
#: How long an answer of the daemon is given to others with the same rights (s).
_FRESH_S: Final = 1.0
#: Operations of a job that ``/api/jobs`` shows, the last ones.
_MOST_OPERATIONS: Final = 500
#: Past jobs that ``/api/history`` lists.
_MOST_PAST: Final = 200
#: Longest body of a request, a token or an act (bytes).
_LONGEST_BODY: Final = 1024
#: How long a body may take to arrive (s).
_BODY_S: Final = 10.0
_OPERATORS_ONLY: Final = "only operators may do this"
_FOREIGN: Final = "a foreign page sent this request"


@dataclass(slots=True)
class Dashboard:
    """What the answers are made of."""

    watch: Watch
    link: DaemonLink
    access: PageAccess
    acts: ActLog
    archive: Path | None = None
    """Folder of the archive; None: nothing is archived."""
    streams: Places = field(
        default_factory=lambda: Places(*_STREAMS, "too many browsers watch")
    )
    pictures: Places = field(
        default_factory=lambda: Places(*_PICTURES, "the archive is being read")
    )
    simulations: Places = field(
        default_factory=lambda: Places(1, 0, "another simulation runs")
    )
    guard: WriteGuard = field(default_factory=WriteGuard)
    answers: dict[int | None, tuple[float, StatusDocument]] = field(
        default_factory=dict
    )
    """User id -> when the daemon answered, and its status."""

    async def status(self, reader: Reader) -> StatusDocument:
        """Return the status with explanations, at most `_FRESH_S` old."""
        now_s = time.monotonic()
        known = self.answers.get(reader.user)
        if known is not None and now_s - known[0] < _FRESH_S:
            return known[1]
        status: StatusDocument = await self.link.ask(GetStatus(), reader)
        old = [user for user, (at, _) in self.answers.items() if now_s - at > _FRESH_S]
        for user in old:
            del self.answers[user]
        self.answers[reader.user] = now_s, status
        return status


_Handler = Callable[[Dashboard, Reader, Request], Awaitable[Response]]


def build_app(dashboard: Dashboard) -> ASGIApp:
    """Return the application; the caller polls the daemon (`Watch.run`)."""

    async def log_in(request: Request) -> Response:
        return await _log_in(dashboard.access, request)

    async def log_out(request: Request) -> Response:
        return _log_out(dashboard.access, request)

    def of_reader(handler: _Handler, *, is_page: bool = False) -> Any:
        """Return an endpoint that answers only to readers."""

        async def endpoint(request: Request) -> Response:
            if not is_page and is_foreign(request):
                return _error(_FOREIGN, HTTPStatus.FORBIDDEN)
            reader = dashboard.access.reader(request)
            if reader is not None:
                return await handler(dashboard, reader, request)
            if is_page and dashboard.access.has_login:
                return RedirectResponse("login", HTTPStatus.SEE_OTHER)
            return _refusal(dashboard.access)

        return endpoint

    app = Starlette(
        routes=[
            Route("/", of_reader(_page, is_page=True)),
            Route("/login", _login_page, methods=["GET"]),
            Route("/login", log_in, methods=["POST"]),
            Route("/logout", log_out, methods=["POST"]),
            Route("/static/{name}", _static_file),
            Route("/api/reader", of_reader(_reader)),
            Route("/api/status", of_reader(_status)),
            Route("/api/jobs/{name:path}", of_reader(_job)),
            Route("/api/history", of_reader(_history)),
            Route("/api/picture", of_reader(_picture)),
            Route("/api/events", of_reader(_events)),
            Route("/api/what-if", of_reader(_what_if)),
            Route("/api/acts", of_reader(_acts), methods=["GET"]),
            Route("/api/acts", of_reader(_act), methods=["POST"]),
            Route("/metrics", of_reader(_metrics)),
        ],
        exception_handlers={
            PenstockError: _on_error,
            HTTPException: _on_unknown_request,
        },
    )
    # Outside of everything: also the answer to a failure has the headers.
    return SafeHeaders(app)


# --- Pages ----------------------------------------------------------------------------


async def _page(_: Dashboard, __: Reader, ___: Request) -> Response:
    return _file("index.html")


async def _login_page(_: Request) -> Response:
    return _file("login.html")


def _refused_page() -> Response:
    """Return the form again, with the message that the token is not valid."""
    page = _files()["login.html"].replace(b' role="alert" hidden', b' role="alert"')
    headers = {"content-type": _TYPES[".html"]}
    return Response(page, HTTPStatus.FORBIDDEN, headers=headers)


async def _static_file(request: Request) -> Response:
    return _file(request.path_params["name"])


def _file(name: str, status: int = HTTPStatus.OK) -> Response:
    """Return a part of the page."""
    if name not in _files():
        return _error("there is no such page", HTTPStatus.NOT_FOUND)
    kind = _TYPES[Path(name).suffix]
    return Response(_files()[name], status, headers={"content-type": kind})


@cache
def _files() -> dict[str, bytes]:
    """Return the parts of the page by their names."""
    paths = [path for path in _STATIC.iterdir() if path.suffix in _TYPES]
    return {path.name: path.read_bytes() for path in paths}


async def _log_in(access: PageAccess, request: Request) -> Response:
    """Give a cookie for a token; show the form again if the token is not valid."""
    if not isinstance(access, TokenAccess):
        return RedirectResponse("./", HTTPStatus.SEE_OTHER)
    if not is_same_origin(request):
        return _error(_FOREIGN, HTTPStatus.FORBIDDEN)
    fields = parse_qs((await _body(request)).decode(errors="replace"))
    cookie = access.log_in(fields.get("token", [""])[0].strip())
    if cookie is None:
        return _refused_page()
    response = RedirectResponse("./", HTTPStatus.SEE_OTHER)
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=int(SESSION_S),
        httponly=True,
        samesite="strict",
        # A proxy that encrypts says so; a browser on loopback has no encryption.
        secure=request.headers.get("x-forwarded-proto") == "https",
    )
    return response


def _log_out(access: PageAccess, request: Request) -> Response:
    if not is_same_origin(request):
        return _error(_FOREIGN, HTTPStatus.FORBIDDEN)
    if isinstance(access, TokenAccess):
        access.log_out(request.cookies.get(COOKIE, ""))
    response = RedirectResponse("login", HTTPStatus.SEE_OTHER)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


async def _body(request: Request) -> bytes:
    """Return the body of a request; raise `InputError` if it is too long or late."""
    body = b""
    try:
        async with asyncio.timeout(_BODY_S):
            async for part in request.stream():
                body += part
                if len(body) > _LONGEST_BODY:
                    raise InputError(
                        "the request is too long",
                        remedy=f"send {_LONGEST_BODY} bytes at most",
                    )
    except (TimeoutError, ClientDisconnect):
        raise InputError("the request is incomplete") from None
    return body


# --- Answers --------------------------------------------------------------------------


async def _reader(dashboard: Dashboard, reader: Reader, request: Request) -> Response:
    return _json(
        {
            "penstock": 1,
            "user": reader.user,
            "operator": reader.user is None,
            "login": dashboard.access.has_login,
            "page": dashboard.guard.page_text(request, reader),
            "policies": [] if reader.user is not None else _policy_names(),
        }
    )


@cache
def _policy_names() -> list[str]:
    """Return the names of the policies of penstock and of installed packages."""
    return sorted({*POLICIES, *installed_policies()})


async def _status(dashboard: Dashboard, reader: Reader, _: Request) -> Response:
    return _json((await dashboard.status(reader)).document())


async def _job(dashboard: Dashboard, reader: Reader, request: Request) -> Response:
    name = request.path_params["name"]
    joined_s = _instant(request, "joined") if "joined" in request.query_params else 0.0
    try:
        explained = await dashboard.link.ask(ExplainJob(name, joined_s), reader)
    except InputError as error:
        return _error(str(error), HTTPStatus.NOT_FOUND)
    try:
        report: JobReport = await dashboard.link.ask(
            GetJobReport(name, joined_s), reader
        )
    except InputError as error:
        # It had no operation yet, or nothing is archived.
        reported: dict[str, Any] = {"report": None, "report_note": str(error)}
    else:
        reported = {"report": _report(report), "report_note": ""}
    return _json(
        {
            "penstock": 1,
            # A past run is not the one that may run now under its name.
            "job": None if joined_s else _line(dashboard.watch, reader, name),
            "explanation": explained.words(dashboard.watch.job_words),
            **reported,
        }
    )


def _line(watch: Watch, reader: Reader, name: str) -> dict[str, Any] | None:
    """Return the status of a job by its name or key; None if it does not run now."""
    if watch.latest is None:
        return None
    lines = reader.part_of(watch.latest.status).document()["jobs"]
    for line in lines:
        if name in (line["job"], f"{line['user']}:{line['job']}"):
            return dict(line)
    return None


def _report(report: JobReport) -> dict[str, Any]:
    """Return what a job did, without the operations of others."""
    return {
        "job": msgspec.to_builtins(report.job),
        "operations": msgspec.to_builtins(report.operations[-_MOST_OPERATIONS:]),
        "operation_count": report.operation_count,
        "delays": msgspec.to_builtins(report.delays),
    }


async def _history(dashboard: Dashboard, reader: Reader, _: Request) -> Response:
    past = await dashboard.link.ask(ListPastJobs(_MOST_PAST), reader)
    return _json({"penstock": 1, "jobs": past.jobs})


async def _picture(dashboard: Dashboard, reader: Reader, request: Request) -> Response:
    begin_s, end_s = (_instant(request, name) for name in ("from", "to"))
    archive = _archive(dashboard)
    with dashboard.pictures.taken(reader.user):
        under_way = await _under_way(dashboard, reader)
        document = await asyncio.to_thread(
            past_picture, archive, reader, begin_s, end_s, under_way
        )
    return _json({"penstock": 1, **document})


async def _under_way(
    dashboard: Dashboard, reader: Reader
) -> Sequence[RunWithOperations]:
    """Return the jobs that run with their operations; none without an answer."""
    try:
        answer: RunsUnderWay = await dashboard.link.ask(ListUnderWay(), reader)
    except PenstockError:
        return ()
    return answer.runs


def _archive(dashboard: Dashboard) -> Path:
    if dashboard.archive is None:
        raise InputError("nothing is archived: the setting `archive` is none")
    return dashboard.archive


def _instant(request: Request, name: str) -> float:
    """Return a parameter of a request: seconds since 1970."""
    try:
        return float(request.query_params.get(name, ""))
    except ValueError:
        raise InputError(
            "is not a number of seconds", where=name, remedy="e.g. ?from=0&to=3600"
        ) from None


async def _events(dashboard: Dashboard, reader: Reader, request: Request) -> Response:
    access = dashboard.access
    events = dashboard.watch.events(
        reader,
        request.headers.get("last-event-id", ""),
        # A login can end; the user who has opened a connection remains the same.
        lambda: not access.has_login or access.reader(request) == reader,
    )
    return _EventResponse(events, dashboard.streams.taken(reader.user))


class _EventResponse(StreamingResponse):
    """Events for a reader who has a place as long as they are sent."""

    def __init__(
        self, events: AsyncIterator[bytes], place: AbstractContextManager[None]
    ) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        with self._place:
            await super().__call__(scope, receive, send)


async def _what_if(dashboard: Dashboard, reader: Reader, request: Request) -> Response:
    """Simulate the last hour under another policy; one simulation at a time."""
    if reader.user is not None:
        return _error(_OPERATORS_ONLY, HTTPStatus.FORBIDDEN)
    end_s = time.time()
    question = {
        "folder": str(_archive(dashboard)),
        "policy": request.query_params.get("policy", ""),
        "present": _latest(dashboard.watch).status.policy,
        "under_way": msgspec.to_builtins(await _under_way(dashboard, reader)),
        "begin_s": end_s - _SIMULATED_S,
        "end_s": end_s,
    }
    with dashboard.simulations.taken(reader.user):
        answer = await ask_what_if(question)
    return _json({"penstock": 1, **answer})


async def _acts(dashboard: Dashboard, reader: Reader, _: Request) -> Response:
    if reader.user is not None:
        return _error(_OPERATORS_ONLY, HTTPStatus.FORBIDDEN)
    return _json({"penstock": 1, "acts": dashboard.acts.entries()})


async def _act(dashboard: Dashboard, reader: Reader, request: Request) -> Response:
    if reader.user is not None:
        return _error(_OPERATORS_ONLY, HTTPStatus.FORBIDDEN)
    by_token = dashboard.access.has_login
    if not dashboard.guard.may_write(request, reader, by_token=by_token):
        return _error(_FOREIGN, HTTPStatus.FORBIDDEN)
    act = decode_act(await _body(request))
    entry = await dashboard.acts.carry_out(act, reader)
    # The next status must show the change.
    dashboard.answers.clear()
    return _json({"penstock": 1, **msgspec.to_builtins(entry)})


async def _metrics(dashboard: Dashboard, reader: Reader, _: Request) -> Response:
    text = render_jobs(reader.part_of(_latest(dashboard.watch).status))
    return Response(text, headers={"content-type": CONTENT_TYPE})


def _latest(watch: Watch) -> Poll:
    """Return the last poll; raise `UnavailableError` if it had no answer."""
    if watch.latest is None or watch.silence:
        raise UnavailableError(watch.silence)
    return watch.latest


# --- Forms of answers -----------------------------------------------------------------


def _json(document: Any, status: int = HTTPStatus.OK) -> Response:
    data = msgspec.json.encode(document)
    return Response(data, status, media_type="application/json")


def _error(reason: str, status: int) -> Response:
    return _json({"penstock": 1, "error": reason}, status)


def _refusal(access: PageAccess) -> Response:
    if access.has_login:
        return _error("log in first, or send a token", HTTPStatus.UNAUTHORIZED)
    return _error(
        "only users of this machine may look at this page, under the name localhost",
        HTTPStatus.FORBIDDEN,
    )


async def _on_error(_: Request, error: Exception) -> Response:
    """Answer a request that the daemon refused, or did not answer."""
    if isinstance(error, UnavailableError):
        return _error(str(error), HTTPStatus.SERVICE_UNAVAILABLE)
    return _error(str(error), HTTPStatus.BAD_REQUEST)


async def _on_unknown_request(_: Request, error: Exception) -> Response:
    """Answer a request for a path or with a method that is not in the table above."""
    assert isinstance(error, HTTPException)  # noqa: S101 - for mypy
    if error.status_code == HTTPStatus.NOT_FOUND:
        return _error("there is no such page", error.status_code)
    return _error(error.detail, error.status_code)
