"""One platform and one browser for the tests in a browser, and evidence when one of them fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Error, Page, expect, sync_playwright

from tests.browser.chromium import ChromiumMissingError, find_chromium
from tests.browser.mlflow_ui import FIRST_VISIT_OVER, Mlflow
from tests.browser.prefect_ui import Prefect
from tests.browser.screenshots import Screenshots
from tests.platforms import platform_of
from trainlib._platform.record import Platform

SIZE = {"width": 1280, "height": 800}
# No page asks anybody but the platform: Prefect's would report to its makers.
ARGUMENTS = ["--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
TIMEOUT_S = 60.0
expect.set_options(timeout=1000 * TIMEOUT_S)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the platform. Modules in it can be trained."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def platform(home: Path) -> Iterator[Platform]:
    """One platform for the whole module."""
    with platform_of(home) as up:
        up.start()
        yield up.wait_until_up()


@pytest.fixture(scope="module")
def browser() -> Iterator[BrowserContext]:
    """One browser for the whole module."""
    path = find_chromium()
    if path is None:
        raise ChromiumMissingError("none was found in PATH")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        context = chromium.new_context(
            viewport=SIZE, locale="en-GB", timezone_id="UTC", color_scheme="light", reduced_motion="reduce"
        )
        context.set_default_timeout(1000 * TIMEOUT_S)
        context.add_init_script(FIRST_VISIT_OVER)
        yield context
        chromium.close()


@pytest.fixture(scope="module")
def page(platform: Platform, browser: BrowserContext) -> Page:
    """The one tab in which everything happens, as it would for a person."""
    return browser.new_page()


@pytest.fixture(scope="module")
def prefect(platform: Platform, page: Page) -> Prefect:
    return Prefect(page, platform.prefect)


@pytest.fixture(scope="module")
def mlflow(platform: Platform, page: Page) -> Mlflow:
    return Mlflow(page, platform.mlflow)


@pytest.fixture(scope="module")
def screenshots(page: Page, tmp_path_factory: pytest.TempPathFactory) -> Screenshots:
    """Takes the pictures that the documentation shows. They go into the folder SCREENSHOTS, if that is set."""
    folder = os.environ.get("SCREENSHOTS")
    return Screenshots(page, Path(folder) if folder else tmp_path_factory.mktemp("screenshots"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Show what the page said, and where a picture of it is, when a test fails."""
    report = yield
    page = getattr(item, "funcargs", {}).get("page")
    if report.failed and page is not None:
        factory: pytest.TempPathFactory = item.session.config._tmp_path_factory  # type: ignore[attr-defined]
        picture = factory.mktemp("failed") / f"{item.name.partition('[')[0]}.png"
        try:
            page.screenshot(path=picture)
            said = page.locator("body").inner_text()
        except Error as error:
            picture, said = None, f"(the page does not answer: {error})"
        report.sections.append((f"the page {page.url}, as in {picture}", said))
    return report
