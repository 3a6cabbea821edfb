"""A real browser, and a real server over a store that can grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.server.health import WatchedWorkers
from streammetrics_consumers.server.process import serving

from benchmarks.browser import Unavailable, running_browser
from tests import experiment_scenes
from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream
from tests.requirements import absent

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


FOLDER = Path(__file__).parent
_OPEN = ExitStack()
_BROWSERS: list[Browser] = []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of pages share a browser, whose start costs a second; those of experiments, which
    take half of the time, another one."""
    for item in items:
        if item.path.parent == FOLDER:
            is_of_experiments = item.path.stem.startswith("test_exp")
            item.add_marker(
                pytest.mark.xdist_group("experiment pages" if is_of_experiments else "page")
            )


# Not of the run: Playwright keeps an event loop in this thread while it is open, and other tests
# have loops of their own.
@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """The browser ends after the last test of this folder."""
    yield
    if nextitem is None or nextitem.path.parent != FOLDER:
        _BROWSERS.clear()
        _OPEN.close()


@pytest.fixture(scope="module")
def browser() -> Browser:
    """Chromium."""
    if not _BROWSERS:
        try:
            _BROWSERS.append(_OPEN.enter_context(running_browser()))
        except Unavailable as error:
            absent("browser", str(error))
    return _BROWSERS[0]


@pytest.fixture(scope="session")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """A store with an experiment of two arms, which nobody opens: it is copied."""
    return Stream.counted(tmp_path_factory.mktemp("counted"))


@pytest.fixture(scope="session")
def written(counted: Stream, tmp_path_factory: pytest.TempPathFactory) -> Stream:
    """The same, which tests only read."""
    return counted.copied(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def served(written: Stream) -> Iterator[Stream]:
    """A server over that store."""
    with written.serve() as stream:
        yield stream


@pytest.fixture
def stream_copy(counted: Stream, tmp_path: Path) -> Stream:
    """The same, for a test of its own."""
    return counted.copied(tmp_path)


@pytest.fixture
def growing(stream_copy: Stream) -> Iterator[Stream]:
    """A server over that."""
    with stream_copy.serve() as stream:
        yield stream


@pytest.fixture(scope="session")
def twenty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store of twenty experiments, with three looks at each."""
    folder = tmp_path_factory.mktemp("twenty")
    experiment_scenes.make_store(experiment_scenes.TWENTY, experiment_scenes.THREE, 3, folder)
    return folder


@pytest.fixture(scope="module")
def url(twenty: Path) -> Iterator[str]:
    """A server over the store of twenty experiments."""
    watched = WatchedWorkers(dict, time.monotonic, time.time)
    with serving(str(twenty / "store.db"), ServerConfig(port=0), watched) as address:
        yield address


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
                profile = stack.enter_context(closing(browser.new_context(**options)))
                page = profile.new_page()
            new_visit = Seen.opened(stack, page, url, width, height)
            opened.append(new_visit)
            return new_visit

        yield open_
        for visit in opened:
            visit.check()
