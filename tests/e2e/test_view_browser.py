# SPDX-License-Identifier: MIT
"""The page of a simulation in a real browser, from a file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="needs playwright")

from playwright.sync_api import Browser, Page, expect

from penstock.policies import POLICIES
from support.browsers import LIMIT_MS, chromium, faultless_page, why_no_browser
from support.sessions import ROOT
from support.waiting import LIMIT_S

DESKTOP = {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"}

pytestmark = pytest.mark.skipif(bool(why_no_browser()), reason=why_no_browser())


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of the page of three policies."""
    names = ("greedy-yield", "fcfs", "fair-share")
    return _made(tmp_path_factory.mktemp("view"), names)


def _made(folder: Path, names: Sequence[str]) -> str:
    """Return the address of a page of these policies; none: of all policies."""
    path = folder / "page.html"
    words = [word for name in names for word in ("--policy", name)]
    subprocess.run(
        [
            *(sys.executable, "-m", "penstock", "compare", "examples/three.json"),
            *(*words, "--view", str(path)),
        ],
        check=True,
        cwd=ROOT,
        capture_output=True,
        timeout=LIMIT_S,
        # No browser of a desktop opens the page.
        env={name: os.environ[name] for name in os.environ if name not in DESKTOP},
    )
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with faultless_page(browser) as page:
        page.goto(address)
        yield page


def test_frontier_timelines_and_yields_are_drawn(page: Page) -> None:
    expect(page.locator("#facts")).to_contain_text("3 policies on 1 instance")
    expect(page.locator("#frontier path.dot")).to_have_count(3)
    expect(page.locator("#timeline0 h3")).to_have_text("greedy-yield")
    expect(page.locator("#timeline1 h3")).to_have_text("fair-share")
    for name in ("climate", "fusion", "genome"):
        shape = page.locator(f'#timeline0 path[data-job=":{name}"]')
        expect(shape).to_have_attribute("d", re.compile(r"^M.*Z$"))
    expect(page.locator("#yields line.mark")).to_have_count(6)
    row = page.locator("#policies tbody tr").first
    expect(row).to_contain_text("greedy-yield")
    expect(row).to_contain_text("0.8897")


@pytest.mark.parametrize("width", [1280, 400])
def test_every_policy_is_named_or_numbered_in_the_frontier(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    """Names that would cover others are replaced by the numbers of the table."""
    with faultless_page(browser) as page:
        page.set_viewport_size({"width": width, "height": 700})
        page.goto(_made(tmp_path, ()))
        rows = page.locator("#policies tbody th").all_inner_texts()
        texts = page.locator("#frontier text.name").all_text_contents()
        found = {word for text in texts for word in text.split(", ")}
        assert len(rows) == len(POLICIES)
        for number, name in (row.split() for row in rows):
            assert name in found or number in found
        boxes = page.locator("#frontier text.name").evaluate_all(
            "all => all.map((each) => each.getBoundingClientRect().toJSON())"
        )
        for one, other in combinations(boxes, 2):
            apart = one["right"] <= other["left"] or other["right"] <= one["left"]
            assert (
                apart or one["bottom"] <= other["top"] or other["bottom"] <= one["top"]
            )


def test_policies_are_switched(page: Page) -> None:
    page.get_by_label("Policy").select_option("fcfs")
    expect(page.locator("#timeline0 h3")).to_have_text("fcfs")
    expect(page.locator("#yield-table th").nth(1)).to_have_text("fcfs")
    page.locator("#frontier path.dot.chosen1").click()
    expect(page.locator("#timeline0 h3")).to_have_text("fair-share")
    expect(page.locator("#timeline1 h3")).to_have_text("fcfs")
    page.get_by_role("button", name="greedy-yield").click()
    expect(page.get_by_label("Policy")).to_have_value("greedy-yield")
    page.get_by_label("beside").select_option("none")
    expect(page.locator("#timeline1")).to_be_hidden()


def test_both_timelines_move_together(page: Page) -> None:
    words = page.locator("#timeline0 .words"), page.locator("#timeline1 .words")
    page.get_by_role("button", name="1/4").click()
    picture = page.locator("#timeline0 .picture")
    picture.focus()
    page.keyboard.press("ArrowLeft")
    # 60 min less a tenth of a quarter of them.
    for each in words:
        expect(each).to_contain_text("58.5 min: ")
    expect(picture).to_have_attribute("aria-valuetext", re.compile("^58.5 min: "))
    page.keyboard.press("End")
    for each in words:
        expect(each).to_contain_text("60 min: ")


def test_the_picture_as_a_table(page: Page) -> None:
    page.locator("#timeline0 summary").click()
    table = page.locator("#timeline0 details table")
    expect(table.locator("tbody tr")).to_have_count(13)
    heads = table.locator("thead th").all_inner_texts()
    assert sorted(heads[1:4]) == ["climate", "fusion", "genome"]
    assert (heads[0], *heads[4:]) == ("time", "others", "all")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_does_not_scroll_sideways(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size({"width": 400, "height": 700})
    expect(page.locator("#timeline0 .picture svg")).to_be_visible()
    page.wait_for_function(
        "document.documentElement.scrollWidth <= 400", timeout=LIMIT_MS
    )
