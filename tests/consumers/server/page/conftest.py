"""A real browser, and a real server over a store that can grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.browser import Unavailable, running_browser
from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream
from tests.requirements import absent

if TYPE_CHECKING:
    from playwright.sync_api import Browser


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


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """A server over a store with an experiment of two arms, which tests only read."""
    with Stream.served(tmp_path_factory.mktemp("page")) as stream:
        yield stream


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[Stream]:
    """The same, for a test of its own."""
    with Stream.served(tmp_path) as stream:
        yield stream


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Seen]]:
    """Opens an address in a profile of its own. What the page asked for, and what its console
    said, is looked at when the test ends: no request to another host, and no word."""
    with ExitStack() as stack:
        opened: list[Seen] = []

        def open_(url: str, **options: object) -> Seen:
            seen = Seen.opened(stack, browser, url, **options)
            opened.append(seen)
            return seen

        yield open_
        for seen in opened:
            seen.check()
