"""A real browser, and a real server over a store that can grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.browser import Unavailable, running_browser
from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream
from tests.requirements import absent

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


# Of a module, not of the run: Playwright keeps an event loop in this thread while it is open, and
# other tests have loops of their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium."""
    try:
        running = running_browser()
        found = running.__enter__()
    except Unavailable as error:
        absent("browser", str(error))
    try:
        yield found
    finally:
        running.__exit__(None, None, None)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """A store with an experiment of two arms, which tests only read."""
    return Stream.counted(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def served(written: Stream) -> Iterator[Stream]:
    """A server over that store."""
    with written.serve() as stream:
        yield stream


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Stream]:
    """The same, for a test of its own."""
    with Stream.counted(tmp_path).serve() as stream:
        yield stream


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    """A tab for one page after the other: a new one costs six times as much as the page in it."""
    with closing(browser.new_context()) as profile:
        yield profile.new_page()


@pytest.fixture
def open_page(browser: Browser, tab: Page) -> Iterator[Callable[..., Seen]]:
    """Opens an address in a tab that has seen others, which leave nothing; with options, as of
    Browser.new_context, in a profile of its own. What the page asked for, and what its console
    said, is looked at when the test ends: no request to another host, and no word."""
    with ExitStack() as stack:
        opened: list[Seen] = []

        def open_(url: str, width: int = 1280, height: int = 900, **options: Any) -> Seen:
            page = tab
            if options or opened:
                own = stack.enter_context(closing(browser.new_context(**options)))
                page = own.new_page()
            seen = Seen.opened(stack, page, url, width, height)
            opened.append(seen)
            return seen

        yield open_
        for seen in opened:
            seen.check()
