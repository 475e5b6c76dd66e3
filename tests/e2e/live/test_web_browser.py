# SPDX-License-Identifier: MIT
"""The page in a real browser, beside two real writers."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs the extra `web`")
pytest.importorskip("uvicorn", reason="needs the extra `web`")
pytest.importorskip("playwright.sync_api", reason="needs playwright")

from playwright.sync_api import Browser, Page, expect

from support.browsers import chromium, faultless_page, why_no_browser
from support.pages import PageDaemon
from support.waiting import until

pytestmark = pytest.mark.skipif(bool(why_no_browser()), reason=why_no_browser())


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageDaemon]:
    """Return a daemon with two writers that share 8 MB/s."""
    made = PageDaemon(tmp_path_factory.mktemp("browser"))
    try:
        made.start()
        made.write("climate")
        made.write("genome")
        until(lambda: sum(line["active"] for line in made.status()["jobs"]) == 2)
        yield made
    finally:
        made.close()


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
    page.get_by_role("button", name="Keep it").click()
    assert daemon.status()["policy"] == "fair-share"
    policy.get_by_role("button", name="Change ...").click()
    page.get_by_role("button", name="Change it").click()
    expect(page.locator("#control")).to_contain_text("policy fcfs")
    page.get_by_role("button", name="back to policy fair-share").click()
    page.get_by_role("button", name="Change it").click()
    expect(page.locator("#control")).to_contain_text("policy fair-share")
    assert "on the web page:" in daemon.log


def test_a_wrong_policy_is_refused_in_words(page: Page) -> None:
    policy = page.locator('form[data-act="policy"]')
    policy.get_by_label("Policy").fill("fcsf")
    policy.get_by_role("button", name="Change ...").click()
    page.get_by_role("button", name="Change it").click()
    expect(page.locator("#act-answer")).to_contain_text("did you mean 'fcfs'?")


def test_a_job_is_explained(page: Page) -> None:
    page.get_by_role("button", name="climate").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("climate may draw 4 MB/s")
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
    page.locator("#jobs thead").get_by_role("button", name="job").click()
    expect(names).to_have_text(["climate", "genome"])
    page.locator("#jobs thead").get_by_role("button", name="job").click()
    expect(names).to_have_text(["genome", "climate"])
    page.get_by_label("Show names with").fill("GEN")
    expect(names).to_have_text(["genome"])


def test_a_narrow_screen_does_not_scroll_sideways(page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 700})
    expect(page.locator("#legend")).to_contain_text("climate")
    width = "document.documentElement.scrollWidth"
    until(lambda: page.evaluate(width) <= 400)


def test_dark_and_light(page: Page) -> None:
    shape = page.locator("#picture path[data-job]").first
    colours = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        background = "getComputedStyle(document.body).backgroundColor"
        colours.append((page.evaluate(background), shape.get_attribute("fill")))
    assert colours[0][0] != colours[1][0]


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


def test_a_login_in_the_browser(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    daemon = PageDaemon(tmp_path, web_token=str(path))
    make = ("serve", f"--web-token={path}", "--make-web-token=operator")
    token = daemon.command(*make).stdout.strip()
    page = browser.new_page()
    try:
        daemon.start()
        page.goto(daemon.address)
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_have_text("This token is not valid.")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Log in").click()
        expect(page.locator("#reader")).to_have_text("You see all jobs.")
        assert token not in page.url
        assert page.evaluate("document.cookie") == ""
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Token")).to_be_visible()
    finally:
        page.close()
        daemon.close()
