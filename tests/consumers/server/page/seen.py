"""A page in a browser, with all that it asked for and said."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.patience import LIMIT_S

if TYPE_CHECKING:
    from playwright.sync_api import Page, Request

# A refused question is written to the console by the browser itself.
REFUSED = "Failed to load resource"


@dataclass
class Seen:
    """One page."""

    page: Page
    host: str
    requests: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    pending: list[Request] = field(default_factory=list)  # without the stream of events

    @staticmethod
    def opened(
        stack: ExitStack, page: Page, url: str, width: int = 1280, height: int = 900
    ) -> Seen:
        """The page at an address, until the stack ends: then the tab is as it was before."""
        visit = Seen(page, urlsplit(url).netloc)
        page.set_default_timeout(LIMIT_S * 1000)
        page.set_viewport_size({"width": width, "height": height})
        for name, noted in (
            ("request", visit._begun),
            ("requestfinished", visit._ended),
            ("requestfailed", visit._ended),
            ("console", lambda message: visit.said.append(message.text)),
            ("pageerror", lambda error: visit.said.append(str(error))),
            ("dialog", lambda dialog: visit.said.append(f"dialog {dialog.message}")),
        ):
            page.on(name, noted)  # type: ignore[call-overload]
            stack.callback(page.remove_listener, name, noted)
        stack.callback(page.emulate_media, color_scheme="null")
        stack.callback(page.unroute_all)
        stack.callback(page.goto, "about:blank")
        page.goto(url)
        return visit

    def go(self, url: str) -> Seen:
        """The page at another address, in the same tab, once this one is checked."""
        self.page.goto("about:blank")  # which ends the requests of this one
        self.check()
        self.requests.clear()
        self.host = urlsplit(url).netloc
        self.page.goto(url)
        return self

    def settled(self, quiet_ms: int = 700) -> Seen:
        """Wait until the page has asked for nothing for a while, and has drawn what came."""
        count = -1
        while count != len(self.requests) or self.pending:
            count = len(self.requests)
            self.page.wait_for_timeout(quiet_ms)
            self._idle()
        return self

    def has_asked(self, path: str) -> bool:
        """Whether the page has asked for something by now."""
        self.page.wait_for_timeout(50)  # only meanwhile are requests heard of
        return any(urlsplit(url).path == path for url in self.requests)

    def drawings(self, before: list[str] | None = None) -> list[str]:
        """The pictures of the charts, once they stay as they are, and are not those of before."""
        pictures, last = before, None
        while pictures == before or pictures != last:
            last = pictures
            self.page.wait_for_timeout(300)
            self._idle()
            pictures = self.page.evaluate(
                "[...document.querySelectorAll('figure canvas')].map((one) => one.toDataURL())"
            )
        assert pictures is not None
        return pictures

    def _begun(self, request: Request) -> None:
        self.requests.append(request.url)
        if urlsplit(request.url).path != "/api/events":
            self.pending.append(request)

    def _ended(self, request: Request) -> None:
        if request in self.pending:
            self.pending.remove(request)

    def _idle(self) -> None:
        """Wait until the page has drawn what it has: it draws a chart whenever it has time."""
        for _ in range(5):
            self.page.evaluate("() => new Promise((done) => requestIdleCallback(() => done()))")

    def check(self) -> None:
        """Nothing was asked of another host, and the console is empty."""
        foreign_urls = [url for url in self.requests if urlsplit(url).netloc not in ("", self.host)]
        assert foreign_urls == [], self.said
        assert [text for text in self.said if not text.startswith(REFUSED)] == [], self.said

    def until(self, state: str) -> Seen:
        """Wait until the page is in a state."""
        self.page.wait_for_selector(f"html[data-state={state}]", state="attached")
        return self

    def chart(self) -> Seen:
        """Look at the first chart: what is not in view is not drawn."""
        self.page.locator(".card").first.scroll_into_view_if_needed()
        self.page.locator("figure").first.scroll_into_view_if_needed()
        self.page.wait_for_selector("figure[aria-busy=false] canvas")
        return self

    def text(self, selector: str) -> str:
        """What a person reads there."""
        return self.page.inner_text(selector)

    def texts(self, selector: str) -> list[str]:
        """What a person reads in each element there.

        In one step of the page: `all_inner_texts` looks for the elements first, and one that is
        replaced before it is read has the text of its source, without what the layout adds."""
        return self._attributes(selector, "innerText")

    def numbers(self, selector: str) -> list[float]:
        """The exact values of the numbers that are shown there."""
        return [float(value) for value in self._attributes(f"{selector} data", "value")]

    def _attributes(self, selector: str, attribute: str) -> list[str]:
        every = "([there, name]) => [...document.querySelectorAll(there)].map((each) => each[name])"
        values: list[str] = self.page.evaluate(every, [selector, attribute])
        return values
