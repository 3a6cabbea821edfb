"""A page behind a token: who has none sees what to do, and who said it need not say it again."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest

from tests.consumers.server.page.seen import Seen
from tests.consumers.server.page.stream import Stream

pytestmark = pytest.mark.slow
Open = Callable[..., Seen]
TOKEN = "0123456789abcdef&=%;"
PROFILE = {"locale": "en-GB"}  # a profile without cookies


def test_without_the_token_the_page_says_how_to_come_in(own: Stream, open_page: Open) -> None:
    with own.serve(token=TOKEN) as stream:
        page = open_page(stream.url, **PROFILE)
        assert "this server asks for its token: open /?token=TOKEN" in page.text("body")
        assert page.page.locator("script, table").count() == 0
        page.page.goto(stream.url + "?token=wrong")
        assert "this server asks for its token" in page.text("body")


def test_the_token_is_said_once_and_leaves_the_address(own: Stream, open_page: Open) -> None:
    with own.serve(token=TOKEN) as stream:
        page = open_page(stream.url, **PROFILE)
        query = {"token": TOKEN, "metric": "ctr"}
        page.page.goto(f"{stream.url}?{urlencode(query)}")
        page.until("ready")
        assert page.page.url == f"{stream.url}?metric=ctr"
        assert page.page.evaluate("document.cookie") == ""  # no script can read it
        page.chart()
        stream.write(50, day=2)
        stream.count()
        page.page.wait_for_selector('#health [data-field=read] dd:text-is("1,300")')
        page.page.reload()
        page.until("ready")


def test_a_page_whose_token_is_gone_says_so(own: Stream, open_page: Open) -> None:
    with own.serve(token=TOKEN) as stream:
        page = open_page(f"{stream.url}?{urlencode({'token': TOKEN})}", **PROFILE).until("ready")
        page.page.context.clear_cookies()
        page.page.select_option("[name=metric]", "ctr")
        page.until("broken")
        assert "This page needs its token" in page.text("#notice")
        assert "Open the address that was printed" in page.text("#notice")
