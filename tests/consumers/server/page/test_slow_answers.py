"""An answer that takes longer than a window is shown all the same, and nothing breaks meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing

from playwright.sync_api import Route

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream

Open = Callable[..., Seen]
EVENTS = """(() => {
  globalThis.EventSource = class extends EventTarget {
    constructor() {
      super();
      globalThis.said = (moment, outline) => this.dispatchEvent(
        new MessageEvent("moved", { data: JSON.stringify({ moment, outline }) }));
    }
    close() {}
  };
})()"""


def test_an_answer_that_is_slower_than_a_window_is_shown(served: Stream, open_page: Open) -> None:
    visit = open_page("about:blank")
    routes: list[Route] = []
    errors: list[str] = []
    with closing(visit.page.context.new_page()) as page:
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.add_init_script(EVENTS)
        page.goto(served.url)
        page.wait_for_function("() => globalThis.said")
        page.evaluate("said(0, 'one window')")
        page.wait_for_selector("html[data-state=ready]", state="attached")
        page.route("**/api/results*", lambda route: routes.append(route))
        page.evaluate("said(1, 'one window')")
        for number in (1, 2, 3):
            while not routes:
                page.wait_for_timeout(20)
            page.evaluate(
                f"said({number + 1}, '{number + 1} windows')"
            )  # a new one while it is awaited
            route = routes.pop()
            answer = route.fetch()
            body = {**answer.json(), "notes": [f"answer {number}"]}
            with page.expect_request("**/api/store*"):  # the new window is asked for after
                route.fulfill(response=answer, body=json.dumps(body))
            page.wait_for_function(
                "(text) => document.getElementById('notes').textContent.includes(text)",
                arg=f"answer {number}",
            )
        page.unroute_all()
    assert errors == []
