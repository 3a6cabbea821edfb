"""Debian's Chromium, headless, driven by Playwright over the DevTools protocol."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Without a sandbox, because it may run as root; and without the browser's own requests to other
# hosts, so that a test sees only the requests of the page.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-software-rasterizer",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium", "chromium-browser", "google-chrome")


class Unavailable(Exception):
    """This machine has no browser, or no Playwright to drive it."""


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A browser until the block ends. Its pages share nothing: each context is a new profile."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise Unavailable(f"none of {', '.join(NAMES)} is on the PATH")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise Unavailable(f"{error}; `make setup` installs it") from None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()
