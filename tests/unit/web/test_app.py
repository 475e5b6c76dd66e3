# SPDX-License-Identifier: MIT
"""The answers of the dashboard, and who gets them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

pytest.importorskip("starlette", reason="needs the extra `web`")
pytest.importorskip("httpx2", reason="needs starlette's test client")

from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from penstock.errors import InputError, PenstockError, UnavailableError
from penstock.live.wire.messages import (
    ControllerRequest,
    ExplainJob,
    GetJobReport,
    GetStatus,
    JobReport,
    ListPastJobs,
    ListUnderWay,
    PastJob,
    PastJobs,
    ReportedOperation,
    RunsUnderWay,
    RunWithOperations,
    SetMode,
    SetPolicy,
    TextAnswer,
)
from penstock.live.wire.places import Places
from penstock.web.acts import ActLog
from penstock.web.app import Dashboard, build_app
from penstock.web.headers import SAFE_HEADERS
from penstock.web.identity.access import (
    COOKIE,
    KernelAccess,
    PageAccess,
    TokenAccess,
    WriteGuard,
)
from penstock.web.identity.readers import OPERATOR, Reader
from penstock.web.identity.tokens import make_token
from penstock.web.link import DaemonLink
from penstock.web.watch import Watch
from support.archives import WALL_S, operation, record, run
from support.statuses import job_line, status_of

STRANGER = 54321
STATUS = status_of(job_line("a", 7), job_line("b", STRANGER))
PAST = PastJob("a", 7, "", 1, 0.0, 9.0, None, 5.0, 1.0, 0.9, "fcfs")
PRESENT = ReportedOperation(WALL_S, WALL_S + 60.0, 5.0e9, 0.0, 0.0, 1e9, "fcfs", [])
HOME = {"sec-fetch-site": "same-origin"}


class FakeLink(DaemonLink):
    """A daemon with fixed answers, and the questions that it was asked."""

    def __init__(self) -> None:
        super().__init__(Path("unused"), 1)
        self.asked: list[tuple[ControllerRequest, Reader]] = []
        self.error: PenstockError | None = None

    async def ask(self, request: ControllerRequest, reader: Reader = OPERATOR) -> Any:
        self.asked.append((request, reader))
        if self.error is not None:
            raise self.error
        if isinstance(request, GetStatus):
            return reader.part_of(STATUS)
        if isinstance(request, SetPolicy | SetMode):
            return TextAnswer("done")
        if isinstance(request, ListPastJobs):
            return PastJobs([PAST])
        if isinstance(request, ListUnderWay):
            job = replace(PAST, job_name="b", left_s=None)
            seen = [RunWithOperations(job, [PRESENT])] if reader.may_see("7:b") else []
            return RunsUnderWay(seen)
        if isinstance(request, ExplainJob | GetJobReport):
            if request.job_name not in ("7:a", "a", "x/y z"):
                raise InputError(f"there is no job {request.job_name!r}")
            if isinstance(request, ExplainJob):
                return TextAnswer("It moves.")
        return JobReport(PAST, [], [], operation_count=3)


class Site:
    """A dashboard for tests; requests come from `user` or bring a token."""

    def __init__(self, access: PageAccess) -> None:
        self.link = FakeLink()
        self.watch = Watch(self.link)
        self.dashboard = Dashboard(self.watch, self.link, access, ActLog(self.link))
        app = build_app(self.dashboard)
        self.client = TestClient(
            app, base_url="http://localhost:9480", follow_redirects=False
        )

    def poll(self) -> None:
        asyncio.run(self.watch.poll())


@contextmanager
def taken(places: Places, count: int) -> Iterator[None]:
    """Take places, as many operators would."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(places.taken(None))
        yield


@pytest.fixture
def site() -> Site:
    """Return a page on loopback whose reader is an operator."""
    return Site(KernelAccess(lambda *_: 0))


@pytest.fixture
def other_site() -> Site:
    """Return a page on loopback whose reader is a user."""
    return Site(KernelAccess(lambda *_: STRANGER))


@pytest.fixture
def token_path(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


@pytest.fixture
def token(token_path: Path) -> str:
    return make_token(token_path, "operator")


@pytest.fixture
def token_site(token: str, token_path: Path) -> Site:
    """Return a page that needs a token."""
    return Site(TokenAccess(token_path))


# --- The page -------------------------------------------------------------------------


def test_the_page_and_its_parts(site: Site) -> None:
    page = site.client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for part in ("style.css", "main.js", "picture.js", "icon.svg"):
        answer = site.client.get(f"/static/{part}")
        assert answer.status_code == 200, part
    kind = site.client.get("/static/main.js").headers["content-type"]
    assert kind == "text/javascript; charset=utf-8"


@pytest.mark.parametrize("path", ["/", "/api/status", "/static/main.js", "/nowhere"])
def test_every_answer_restricts_the_browser(site: Site, path: str) -> None:
    headers = site.client.get(path).headers
    assert {name: headers[name] for name in SAFE_HEADERS} == SAFE_HEADERS
    assert "unsafe" not in headers["content-security-policy"]


def test_the_page_loads_nothing_from_elsewhere() -> None:
    folder = Path(build_app.__code__.co_filename).with_name("static")
    for path in folder.iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert "//" not in text.replace("// ", "").replace("//\n", ""), path
        assert " style=" not in text, path
        assert "innerHTML" not in text, path


@pytest.mark.parametrize(
    "name",
    [
        *("../app.py", "%2e%2e%2fapp.py", "app.py", "", "x.js", "%00.js"),
        *("%ff.js", f"{'x' * 5000}.js"),
    ],
)
def test_no_other_file_is_given_away(site: Site, name: str) -> None:
    assert site.client.get(f"/static/{name}").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/nosuch", 404),
        ("GET", "/nosuch", 404),
        ("DELETE", "/api/acts", 405),
    ],
)
def test_an_unknown_request_is_answered_with_json(
    site: Site, method: str, path: str, status: int
) -> None:
    answer = site.client.request(method, path)
    assert answer.status_code == status
    assert answer.json()["penstock"] == 1
    assert answer.json()["error"]


# --- The answers ----------------------------------------------------------------------


def test_the_status_is_the_document_of_ctl(site: Site) -> None:
    assert site.client.get("/api/status").json() == STATUS.document()
    assert site.link.asked == [(GetStatus(), OPERATOR)]


def test_the_daemon_is_asked_once_a_second(site: Site) -> None:
    for _ in range(20):
        assert site.client.get("/api/status").status_code == 200
    # A slow machine may need more than a second for twenty requests.
    assert len(site.link.asked) < 20


def test_users_get_the_answers_of_their_own(site: Site, other_site: Site) -> None:
    status = other_site.client.get("/api/status").json()
    assert [line["job"] for line in status["jobs"]] == ["b"]
    other_site.client.get("/api/history")
    other_site.client.get("/api/jobs/a")
    assert {reader for _, reader in other_site.link.asked} == {Reader(STRANGER)}


def test_an_answer_for_one_user_is_not_given_to_another(token_path: Path) -> None:
    both = [make_token(token_path, name) for name in ("operator", str(STRANGER))]
    site = Site(TokenAccess(token_path))
    jobs = [
        [
            line["job"]
            for line in site.client.get(
                "/api/status", headers={"authorization": f"Bearer {token}"}
            ).json()["jobs"]
        ]
        for token in (*both, *both)
    ]
    assert jobs == [["a", "b"], ["b"], ["a", "b"], ["b"]]


def test_a_job(site: Site) -> None:
    site.poll()
    answer = site.client.get("/api/jobs/7:a").json()
    assert answer["job"]["job"] == "a"
    assert answer["explanation"] == "It moves."
    assert answer["report"]["operation_count"] == 3
    assert answer["report"]["job"]["progress_yield"] == 0.9


def test_a_job_with_any_name(site: Site) -> None:
    answer = site.client.get("/api/jobs/x%2Fy%20z")
    assert answer.status_code == 200
    assert answer.json()["job"] is None
    assert site.link.asked[0] == (ExplainJob("x/y z"), OPERATOR)


def test_an_unknown_job(site: Site) -> None:
    answer = site.client.get("/api/jobs/nobody")
    assert answer.status_code == 404
    assert answer.json() == {"penstock": 1, "error": "there is no job 'nobody'"}


def test_a_past_run_is_not_the_one_that_runs_now(site: Site) -> None:
    site.poll()
    answer = site.client.get("/api/jobs/7:a?joined=1000.5").json()
    assert answer["job"] is None
    asked = [request for request, _ in site.link.asked]
    assert asked[-2:] == [ExplainJob("7:a", 1000.5), GetJobReport("7:a", 1000.5)]
    assert site.client.get("/api/jobs/7:a?joined=then").status_code == 400


def test_past_jobs(site: Site) -> None:
    (job,) = site.client.get("/api/history").json()["jobs"]
    assert (job["job"], job["left"], job["progress_yield"]) == ("a", 9.0, 0.9)


def test_a_picture_of_the_past(site: Site, tmp_path: Path) -> None:
    record(tmp_path, (run("7:a"), [operation(0.0, 30.0)]))
    site.dashboard.archive = tmp_path
    path = f"/api/picture?from={WALL_S}&to={WALL_S + 60.0}"
    picture = site.client.get(path).json()
    # b moves since the begin, and goes on.
    rates = {series["job"]: series["rates"] for series in picture["series"]}
    assert rates.keys() == {"7:a", "7:b"}
    assert min(rates["7:b"]) == pytest.approx(5e9 / 60.0)
    site.link.error = UnavailableError("no penstock answers")
    picture = site.client.get(path).json()
    assert [series["job"] for series in picture["series"]] == ["7:a"]


@pytest.mark.parametrize(
    "query", ["", "?from=1", "?from=x&to=2", "?from=2&to=1", "?from=nan&to=inf"]
)
def test_times_that_cannot_be_shown(site: Site, tmp_path: Path, query: str) -> None:
    site.dashboard.archive = tmp_path
    answer = site.client.get(f"/api/picture{query}")
    assert answer.status_code == 400
    assert answer.json()["error"]


def test_a_picture_without_an_archive(site: Site) -> None:
    answer = site.client.get("/api/picture?from=1&to=2")
    assert answer.status_code == 400
    assert "nothing is archived" in answer.json()["error"]


def test_only_a_few_pictures_at_a_time(site: Site, tmp_path: Path) -> None:
    site.dashboard.archive = tmp_path
    with taken(site.dashboard.pictures, 4):
        assert site.client.get("/api/picture?from=1&to=2").status_code == 503
    assert site.client.get("/api/picture?from=1&to=2").status_code == 200


def test_who_reads(site: Site, other_site: Site) -> None:
    reader = site.client.get("/api/reader").json()
    assert len(reader.pop("page")) == 64
    assert {"fair-share", "fcfs"} <= set(reader.pop("policies"))
    assert reader == {"penstock": 1, "user": None, "operator": True, "login": False}
    assert other_site.client.get("/api/reader").json()["user"] == STRANGER


def test_metrics(site: Site, other_site: Site) -> None:
    assert site.client.get("/metrics").status_code == 503
    for each, count in ((site, 2.0), (other_site, 1.0)):
        each.poll()
        answer = each.client.get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        families = text_string_to_metric_families(answer.text)
        values = {family.name: family.samples for family in families}
        assert values["penstock_jobs"][0].value == count


def test_a_daemon_that_does_not_answer(site: Site) -> None:
    site.link.error = UnavailableError("no penstock answers")
    answer = site.client.get("/api/status")
    assert answer.status_code == 503
    assert answer.json()["error"] == "no penstock answers"


def test_too_many_browsers(site: Site) -> None:
    with taken(site.dashboard.streams, 64):
        assert site.client.get("/api/events").status_code == 503


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("path", ["/", "/api/status", "/api/jobs/a", "/metrics"])
def test_nothing_can_be_written(site: Site, method: str, path: str) -> None:
    assert site.client.request(method, path).status_code == 405


# --- Acts -----------------------------------------------------------------------------

FCFS = {"act": "policy", "policy": "fcfs"}


def _own_page(site: Site) -> dict[str, str]:
    """Return the headers of requests of the page itself."""
    return {**HOME, WriteGuard.HEADER: site.client.get("/api/reader").json()["page"]}


def test_an_operator_changes_the_policy_and_undoes_it(site: Site) -> None:
    headers = _own_page(site)
    done = site.client.post("/api/acts", json=FCFS, headers=headers).json()
    assert (done["answer"], done["act"], done["reader"]) == ("done", FCFS, "user 0")
    undone = site.client.post("/api/acts", json=done["undo"], headers=headers)
    assert undone.status_code == 200
    changes = [each for each, _ in site.link.asked if isinstance(each, SetPolicy)]
    assert changes == [SetPolicy("fcfs"), SetPolicy("fair-share")]
    (second, first) = site.client.get("/api/acts").json()["acts"]
    assert (first["act"], second["act"]) == (FCFS, done["undo"])


def test_what_another_policy_would_have_done(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    async def answer(question: dict[str, Any]) -> dict[str, Any]:
        asked.append(question)
        return {"policy": question["policy"], "jobs": []}

    monkeypatch.setattr("penstock.web.app.ask_what_if", answer)
    site.dashboard.archive = tmp_path
    site.poll()
    document = site.client.get("/api/what-if?policy=fcfs").json()
    assert document == {"penstock": 1, "policy": "fcfs", "jobs": []}
    (question,) = asked
    assert (question["present"], question["folder"]) == ("fair-share", str(tmp_path))
    assert question["end_s"] - question["begin_s"] == 3600.0
    (present,) = question["under_way"]
    assert present["job"]["job"] == "b"
    assert present["operations"][0]["moved"] == 5e9
    with taken(site.dashboard.simulations, 1):
        assert site.client.get("/api/what-if?policy=fcfs").status_code == 503


def test_users_do_not_simulate(other_site: Site, tmp_path: Path) -> None:
    other_site.dashboard.archive = tmp_path
    assert other_site.client.get("/api/what-if?policy=fcfs").status_code == 403


def test_users_change_nothing(other_site: Site) -> None:
    headers = _own_page(other_site)
    for answer in (
        other_site.client.post("/api/acts", json=FCFS, headers=headers),
        other_site.client.get("/api/acts"),
    ):
        assert answer.status_code == 403
        assert answer.json()["error"] == "only operators may do this"
    assert other_site.link.asked == []


def test_foreign_pages_change_nothing(site: Site) -> None:
    own = _own_page(site)
    for headers in (
        {},
        HOME,
        {**own, "sec-fetch-site": "cross-site"},
        {**own, WriteGuard.HEADER: "x"},
    ):
        answer = site.client.post("/api/acts", json=FCFS, headers=headers)
        assert answer.status_code == 403
    assert site.link.asked == []


def test_a_program_changes_the_mode(token_site: Site, token: str) -> None:
    answer = token_site.client.post(
        "/api/acts",
        json={"act": "mode", "mode": "off"},
        headers={"authorization": f"Bearer {token}"},
    )
    assert answer.status_code == 200
    assert answer.json()["undo"] == {"act": "mode", "mode": "control"}


@pytest.mark.parametrize("body", [b"", b"{}", b"[" * 1000, b"x" * 100_000])
def test_bodies_that_are_no_acts(site: Site, body: bytes) -> None:
    answer = site.client.post("/api/acts", content=body, headers=_own_page(site))
    assert answer.status_code == 400
    assert answer.json()["error"]


# --- Rights ---------------------------------------------------------------------------

READ = [
    *("/api/status", "/api/jobs/a", "/api/history", "/api/events", "/api/reader"),
    *("/api/picture?from=1&to=2", "/api/what-if?policy=fcfs", "/api/acts"),
]


@pytest.mark.parametrize("path", [*READ, "/metrics", "/"])
def test_a_foreign_name_of_this_machine(site: Site, path: str) -> None:
    answer = site.client.get(path, headers={"host": "evil.example:9480"})
    assert answer.status_code == 403
    assert site.link.asked == []


@pytest.mark.parametrize("path", [*READ, "/metrics"])
def test_without_a_token(token_site: Site, path: str) -> None:
    assert token_site.client.get(path).status_code == 401
    assert token_site.link.asked == []


def test_the_page_without_a_token_is_the_login(token_site: Site) -> None:
    answer = token_site.client.get("/")
    assert (answer.status_code, answer.headers["location"]) == (303, "login")
    assert "Token" in token_site.client.get("/login").text


def test_a_login(token_site: Site, token: str) -> None:
    answer = token_site.client.post("/login", data={"token": token}, headers=HOME)
    assert (answer.status_code, answer.headers["location"]) == (303, "./")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert token not in cookie
    assert token_site.client.get("/api/status").status_code == 200
    out = token_site.client.post("/logout", headers=HOME)
    assert out.headers["location"] == "login"
    assert token_site.client.get("/api/status").status_code == 401


def test_a_wrong_token(token_site: Site) -> None:
    answer = token_site.client.post("/login", data={"token": "x"}, headers=HOME)
    assert answer.status_code == 403
    assert '<p role="alert">This token is not valid.</p>' in answer.text
    assert "set-cookie" not in answer.headers


def test_a_login_that_a_foreign_page_sends(token_site: Site, token: str) -> None:
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"origin": "http://evil.example"},
        {},
    ):
        answer = token_site.client.post(
            "/login", data={"token": token}, headers=headers
        )
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


def test_a_huge_form(token_site: Site) -> None:
    answer = token_site.client.post(
        "/login", content=b"token=" + b"x" * 1_000_000, headers=HOME
    )
    assert answer.status_code == 400
    assert "too long" in answer.json()["error"]


def test_a_token_in_the_address_is_not_looked_at(token_site: Site, token: str) -> None:
    assert token_site.client.get(f"/api/status?token={token}").status_code == 401
