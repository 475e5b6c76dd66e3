# SPDX-License-Identifier: MIT
"""The page in a real browser, beside two real writers."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs the extra `web`")
pytest.importorskip("uvicorn", reason="needs the extra `web`")
pytest.importorskip("playwright.sync_api", reason="needs playwright")

from playwright.sync_api import Browser, FloatRect, Locator, Page, expect

from support.browsers import chromium, faultless_page, why_no_browser
from support.daemons import PHASES
from support.mounts import Mounted, why_no_mounts
from support.pages import PageDaemon
from support.users import NEEDS_ROOT, NOBODY, open_for_all
from support.waiting import LIMIT_S, until

pytestmark = pytest.mark.skipif(bool(why_no_browser()), reason=why_no_browser())

SLO = """
scheduler = "two-level"
default = "bulk"
[applications.bulk]
throughput = "15 MB/s"
latency = "5 s"
[applications.viewer]
throughput = "1 MB/s"
latency = "100 ms"
[[rules]]
application = "viewer"
path = "frames"
"""
#: A simulation may have to be compiled first (ms).
SIMULATION_MS = 120_000.0


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageDaemon]:
    """Return a daemon with two writers that share 8 MB/s.

    They write to a mount with a limit, where mounts are possible. Before them, a job
    has written twice and ended.
    """
    folder = tmp_path_factory.mktemp("browser")
    mounted = None if why_no_mounts() else Mounted(folder)
    made = PageDaemon(folder)
    try:
        if mounted is not None:
            (folder / "slo.toml").write_text(SLO)
            mounted.start("--limit=20MB/s", f"--slo={folder / 'slo.toml'}")
            made.data = mounted.point
            made.settings["prefixes"] = str(mounted.point)
        made.start()
        _write_twice(made)
        made.write("climate")
        made.write("genome")
        until(lambda: sum(line["active"] for line in made.status()["jobs"]) == 2)
        yield made
    finally:
        made.close()
        if mounted is not None:
            mounted.end()


def _write_twice(daemon: PageDaemon) -> None:
    """Run a job with two operations, or more if the machine is slow, to its end."""
    ended = daemon.run(sys.executable, "-c", PHASES, "ended", job="ended")
    assert ended.stdin is not None
    assert ended.stdout is not None
    for operation in (1, 2):
        ended.stdin.write("write\n")
        ended.stdin.flush()
        ended.stdout.readline()
        until(partial(_has_ended, daemon, operation))
    ended.stdin.close()
    ended.wait(LIMIT_S)
    until(lambda: not daemon.job("ended"))


def _has_ended(daemon: PageDaemon, count: int) -> bool:
    """Return True if so many operations of the job have ended."""
    return bool(daemon.job("ended")["operations"] >= count)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, daemon: PageDaemon) -> Iterator[Page]:
    with faultless_page(browser) as page:
        page.goto(daemon.address)
        yield page


def test_the_picture_shows_both_writers(page: Page) -> None:
    for job in ("climate", "genome"):
        shape = page.locator(f'#picture path[data-job$=":{job}"]')
        expect(shape).to_have_attribute("d", re.compile(r"^M.*Z$"))
        expect(page.locator("#legend")).to_contain_text(job)
    expect(page.locator("#picture-words")).to_contain_text("of 8 MB/s")


def test_the_table_shows_what_ctl_shows(page: Page, daemon: PageDaemon) -> None:
    expect(page.locator("#control")).to_contain_text(
        "control on, policy fair-share shares 8 MB/s among 2 jobs"
    )
    row = page.locator('#jobs tr[data-job$=":climate"]')
    expect(row.locator("td").nth(2)).to_have_text("4 MB/s")
    assert daemon.job("climate")["granted"] == 4e6


def test_a_change_of_policy_is_seen(page: Page, daemon: PageDaemon) -> None:
    daemon.ctl("policy", "fcfs")
    try:
        expect(page.locator("#control")).to_contain_text("policy fcfs")
        expect(page.locator("#jobs td.bad")).to_have_text("waits")
    finally:
        daemon.ctl("policy", "fair-share")
    expect(page.locator("#control")).to_contain_text("policy fair-share")


def test_an_operator_changes_the_policy_and_undoes_it(
    page: Page, daemon: PageDaemon
) -> None:
    policy = page.locator('form[data-act="policy"]')
    policy.get_by_label("Policy").fill("fcfs")
    policy.get_by_role("button", name="Change ...").click()
    page.get_by_role("button", name="Cancel").click()
    assert daemon.status()["policy"] == "fair-share"
    policy.get_by_role("button", name="Change ...").click()
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("#control")).to_contain_text("policy fcfs")
    page.get_by_role("button", name="back to policy fair-share").click()
    page.get_by_role("button", name="Change", exact=True).click()
    expect(page.locator("#control")).to_contain_text("policy fair-share")
    assert "on the web page:" in daemon.log


def test_a_wrong_policy_is_refused_in_words(page: Page) -> None:
    policy = page.locator('form[data-act="policy"]')
    policy.get_by_label("Policy").fill("fcsf")
    policy.get_by_role("button", name="Change ...").click()
    expect(page.locator("#act-answer")).to_contain_text("There is no policy 'fcsf'.")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_before_a_change_of_policy_the_last_hour_is_simulated(
    page: Page, daemon: PageDaemon
) -> None:
    policy = page.locator('form[data-act="policy"]')
    policy.get_by_label("Policy").fill("fcfs")
    policy.get_by_role("button", name="Change ...").click()
    page.get_by_role("button", name="What would it have done").click()
    answer = page.locator("#what-if-answer")
    expect(answer).to_contain_text(
        re.compile(r"the lowest yield is [\d.]+ under fair-share, [\d.]+ under fcfs"),
        timeout=SIMULATION_MS,
    )
    expect(answer.locator("figcaption")).to_have_text(
        ["What was", "Simulated under fcfs"]
    )
    expect(answer.locator("tbody th")).to_contain_text(["ended"])
    page.get_by_role("button", name="Cancel").click()
    assert daemon.status()["policy"] == "fair-share"


def test_a_past_job_is_listed_and_reported(page: Page) -> None:
    page.get_by_role("button", name="List them").click()
    # The run of this row, which need not be the last one of its name.
    with page.expect_request(re.compile(r"/api/jobs/.*ended\?joined=\d")):
        page.get_by_role("button", name="ended").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("caption")).to_contain_text(
        [re.compile(r"The last \d of \d operations")]
    )
    expect(dialog.get_by_role("img")).to_have_attribute(
        "aria-label", re.compile(r"^\d operations from")
    )


@pytest.mark.skipif(bool(why_no_mounts()), reason=why_no_mounts())
def test_a_mount_shows_its_promises(page: Page, daemon: PageDaemon) -> None:
    mounts = page.locator("#mounts")
    expect(mounts).to_contain_text(f"{daemon.data}: 20 MB/s")
    row = mounts.locator("tr", has_text="bulk")
    # The columns: promised, got, latency, 95 % within, kept, missed.
    expect(row.locator("td").nth(0)).to_have_text("15 MB/s")
    expect(row.locator("td").nth(4)).to_have_text(re.compile("^[1-9]"))


def test_storages_and_nodes(page: Page) -> None:
    expect(page.locator("#storages tbody tr")).to_contain_text(
        [re.compile(r"one for all jobs8 MB/ssetting2.*MB/s, \d+ %")]
    )
    page.locator("#nodes summary").click()
    row = page.locator("#nodes tbody tr")
    expect(row).to_have_text("hereconnected22")


def test_the_picture_is_a_table_and_a_slider_too(page: Page) -> None:
    expect(page.locator("#legend")).to_contain_text("climate")
    page.get_by_text("The picture as a table").click()
    heads = page.locator("#picture-data thead th")
    expect(heads.first).to_have_text("time")
    expect(heads.last).to_have_text("all")
    slider = page.get_by_role("slider")
    expect(slider).to_have_attribute("aria-valuetext", "up to now")
    page.get_by_role("button", name="1 min", exact=True).click()
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(slider).to_have_attribute("aria-valuetext", re.compile(r"^\d\d:\d\d:\d\d: "))


def test_the_page_is_painted_at_once(page: Page) -> None:
    paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    # 1 s on an idle machine; tests share it with others.
    assert page.evaluate(paint) < 5000.0


def test_a_job_is_explained(page: Page) -> None:
    page.get_by_role("button", name="climate").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("climate may draw 4 MB/s")
    # Its first operation is under way.
    expect(dialog).to_contain_text("What it did")
    # The dialog follows its job.
    moved = dialog.locator("dd").nth(1)
    before = moved.inner_text()
    expect(moved).not_to_have_text(before)
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_the_past_is_reached_by_keys_and_by_dragging(page: Page) -> None:
    expect(page.locator("#legend")).to_contain_text("climate")
    page.get_by_role("button", name="1 min", exact=True).click()
    back = page.get_by_role("button", name="Back to now")
    picture = page.locator("#picture")
    picture.focus()
    page.keyboard.press("ArrowLeft")
    expect(back).to_be_visible()
    page.keyboard.press("End")
    expect(back).to_be_hidden()
    box = picture.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 50)
    expect(page.locator("#picture .cursor")).to_have_count(1)
    page.mouse.down()
    page.mouse.move(box["x"] + 600, box["y"] + 50)
    page.mouse.up()
    expect(back).to_be_visible()
    back.click()
    expect(back).to_be_hidden()


def test_rows_keep_the_focus(page: Page) -> None:
    button = page.get_by_role("button", name="genome")
    button.focus()
    before = page.locator("#picture svg").element_handle()
    # The picture is drawn anew with the next status.
    until(lambda: not page.evaluate("svg => svg.isConnected", before))
    expect(button).to_be_focused()


def test_sorting_and_looking_for_names(page: Page) -> None:
    names = page.locator("#jobs tbody th")
    expect(names).to_have_text(["climate", "genome"])
    page.locator("#jobs thead").get_by_role("button", name="job").click()
    expect(names).to_have_text(["genome", "climate"])
    page.get_by_label("Show names with").fill("GEN")
    expect(names).to_have_text(["genome"])


def box_of(element: Locator) -> FloatRect:
    """Return where an element is; a table may just be replaced by its next state."""
    boxes: list[FloatRect] = []

    def has_box() -> bool:
        box = element.bounding_box()
        boxes.extend([box] if box else [])
        return bool(boxes)

    until(has_box)
    return boxes[0]


def test_a_narrow_screen_does_not_scroll_sideways(page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 700})
    expect(page.locator("#legend")).to_contain_text("climate")
    width = "document.documentElement.scrollWidth"
    until(lambda: page.evaluate(width) <= 400)
    load = page.locator("#storages tbody td:last-child")
    for cell in (page.locator("#jobs tbody tr:first-child td:nth-child(8)"), load):
        box = box_of(cell)
        assert box["x"] + box["width"] <= 400
    assert box_of(page.locator('form[data-act="policy"]'))["height"] < 80


def test_dark_and_light(page: Page) -> None:
    shape = page.locator("#picture path[data-job]").first
    colours = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        background = "getComputedStyle(document.body).backgroundColor"
        colours.append((page.evaluate(background), shape.get_attribute("fill")))
    assert colours[0][0] != colours[1][0]


def test_a_dry_run_says_how_long_jobs_would_wait(
    page: Page, daemon: PageDaemon
) -> None:
    heads = page.locator("#jobs thead")
    expect(heads).to_contain_text("held up")
    daemon.ctl("dry-run")
    try:
        expect(heads).to_contain_text("would wait")
    finally:
        daemon.ctl("on")
    expect(heads).to_contain_text("held up")


def test_the_page_says_since_when_it_has_no_news(
    page: Page, daemon: PageDaemon
) -> None:
    assert daemon.process is not None
    news = page.locator("#news")
    expect(page.locator("#legend")).to_contain_text("climate")
    expect(news).to_be_empty()
    os.kill(daemon.process.pid, signal.SIGSTOP)
    try:
        expect(news).to_contain_text("No news since")
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)
    expect(news).to_be_empty()


@NEEDS_ROOT
def test_two_users_log_in_and_see_different_things(
    browser: Browser, tmp_path: Path
) -> None:
    open_for_all(tmp_path)
    path = tmp_path / "tokens"
    daemon = PageDaemon(tmp_path, web_token=str(path), users="all")
    make = ("serve", f"--web-token={path}", "--make-web-token")
    users = {
        "operator": ("You see all jobs.", 1),
        str(NOBODY): (f"You see the jobs of user {NOBODY}.", 0),
    }
    tokens = {user: daemon.command(*make, user).stdout.strip() for user in users}
    page = browser.new_page()
    try:
        daemon.start()
        daemon.write("climate")
        until(lambda: daemon.job("climate"))
        page.goto(daemon.address)
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_have_text("This token is not valid.")
        for user, (words, jobs) in users.items():
            page.get_by_label("Token").fill(tokens[user])
            page.get_by_role("button", name="Log in").click()
            expect(page.locator("#reader")).to_have_text(words)
            expect(page.locator("#jobs tbody tr")).to_have_count(jobs)
            expect(page.locator("#operate")).to_be_visible(visible=bool(jobs))
            assert tokens[user] not in page.url
            assert page.evaluate("document.cookie") == ""
            page.get_by_role("button", name="Log out").click()
            expect(page.get_by_label("Token")).to_be_visible()
    finally:
        page.close()
        daemon.close()
