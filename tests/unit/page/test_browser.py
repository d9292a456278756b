"""The report in a real browser: quiet, alone, as wide as the screen, in both colour schemes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.browser import Browser, missing, open_browser
from helpers.page_archives import HOSTILE, NAMES, restore_report, rich_archive

from foundry import archive
from foundry.page import render

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

TOO_WIDE = """
const wide = (one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scroll, .drawing, nav");
return [...document.querySelectorAll("body *")].filter(wide).map((one) => one.outerHTML.slice(0, 90));
"""
SQUEEZED = """
return [...document.querySelectorAll("h1, h2, h3, h4, p, dt, dd, li")].filter((one) =>
  one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== "inline" && one.clientWidth
  && !one.closest(".scroll")).map((one) => one.outerHTML.slice(0, 90))
"""

HIDDEN = """
const empty = (box) => !box.width || !box.height;
const drawn = [...document.querySelectorAll(".lane i, .cells i, svg.growth path")];
const hidden = drawn.filter((one) => !one.closest("details:not([open])") && empty(one.getBoundingClientRect()));
return hidden.map((one) => one.outerHTML);
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module", params=["plain", "hostile"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    names, label = ((HOSTILE, *NAMES), HOSTILE) if request.param == "hostile" else (NAMES, "decode")
    target = folder / "report.html"
    with archive.open_archive(rich_archive(folder, names, label)) as opened:
        target.write_text(render(opened, restore_report(opened.capture_id, reason=label)), encoding="utf-8")
    return target


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1440])
def test_a_page_is_quiet_alone_and_fits(browser: Browser, page: Path, width: int, scheme: str) -> None:
    browser.device(width, scheme=scheme, mobile=width < 500)
    browser.console()
    browser.requests()
    browser.open(page)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run(TOO_WIDE) == []
    assert browser.run(SQUEEZED) == []
    dark = browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(20, 19, 17)"
    assert dark == (scheme == "dark")
    assert browser.console() == []
    assert [url for url in browser.requests() if not url.startswith("data:")] == [page.resolve().as_uri()]


def test_pictures_are_drawn(browser: Browser, page: Path) -> None:
    browser.device(1200)
    browser.open(page)
    sizes = browser.run("return [...document.images].map((one) => [one.complete, one.naturalWidth, one.width])")
    assert sizes
    assert all(complete and natural and shown for complete, natural, shown in sizes)
    assert browser.run(HIDDEN) == []


def test_kernels_can_be_sorted(browser: Browser, page: Path) -> None:
    browser.device(1200)
    browser.open(page)
    column = "return [...document.querySelectorAll('.kernels tbody tr')].map((row) => Number(row.cells[3].textContent))"
    before = browser.run(column)
    browser.run("document.querySelectorAll('.kernels thead th button')[2].click()")
    assert browser.run(column) == sorted(before, reverse=True)
    browser.run("document.querySelectorAll('.kernels thead th button')[2].click()")
    assert browser.run(column) == sorted(before)
    assert browser.run("return document.querySelectorAll('th[aria-sort=ascending]').length") == 1


def test_without_script_everything_is_there(browser: Browser, page: Path) -> None:
    browser.device(1200)
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
        plain = browser.command("Runtime.evaluate", expression="document.body.innerText", returnByValue=True)
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)
    browser.open(page)
    assert json.dumps(plain["result"]["value"]) == json.dumps(browser.run("return document.body.innerText"))
