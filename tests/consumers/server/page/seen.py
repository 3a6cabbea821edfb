"""A page in a browser, with all that it asked for and said."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# A refused question is written to the console by the browser itself.
REFUSED = "Failed to load resource"


@dataclass
class Seen:
    """One page."""

    page: Page
    host: str
    requests: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @staticmethod
    def opened(stack: ExitStack, browser: Browser, url: str, **options: Any) -> Seen:
        """The page at an address, in a new profile; options as of Browser.new_context."""
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        stack.callback(context.close)
        seen = Seen(context.new_page(), urlsplit(url).netloc)
        seen.page.set_default_timeout(20_000)
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.on("console", lambda message: seen.said.append(message.text))
        seen.page.on("pageerror", lambda error: seen.said.append(str(error)))
        seen.page.on("dialog", lambda dialog: seen.said.append(f"dialog {dialog.message}"))
        seen.page.goto(url)
        return seen

    def check(self) -> None:
        """Nothing was asked of another host, and the console is empty."""
        others = [url for url in self.requests if urlsplit(url).netloc not in ("", self.host)]
        assert others == [], self.said
        assert [text for text in self.said if not text.startswith(REFUSED)] == [], self.said

    def until(self, state: str) -> Seen:
        """Wait until the page is in a state."""
        self.page.wait_for_selector(f"html[data-state={state}]", state="attached")
        return self

    def chart(self) -> Seen:
        """Look at the first chart: what is not in view is not drawn."""
        self.page.locator("figure").first.scroll_into_view_if_needed()
        self.page.wait_for_selector("figure[aria-busy=false] canvas")
        return self

    def text(self, selector: str) -> str:
        """What a person reads there."""
        return self.page.inner_text(selector)

    def numbers(self, selector: str) -> list[float]:
        """The exact values of the numbers that are shown there."""
        found = self.page.eval_on_selector_all(
            f"{selector} data", "all => all.map((one) => Number(one.value))"
        )
        return [float(one) for one in found]
