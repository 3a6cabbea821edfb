"""The routes of the server over a store, answered in this process: what `streammetrics.open` reads.

It is the application itself, so a store and its server give the same bytes.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from sys import maxsize
from typing import Final
from urllib.parse import quote

from starlette.types import Message, Scope

from streammetrics import StreamMetricsError
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import store_name
from streammetrics_consumers.server.application import application

UNLIMITED: Final = ServerConfig(max_slices=maxsize)  # nobody else waits for an answer


class LocalStore:
    """A store, opened for reading."""

    def __init__(self, url: str) -> None:
        """Raises StreamMetricsError if there is no store to read."""
        self.name = store_name(url)
        try:
            self._ledger = Ledger.open(url)
        except LedgerError as error:
            raise StreamMetricsError(
                expected="a store that can be read",
                got=str(error),
                where="open(source)",
                hint="check the name; `streammetrics run` makes a store",
            ) from error
        self._app = application(self._ledger, store=url, settings=UNLIMITED)

    def get(self, address: str) -> tuple[int, str, bytes]:
        """The status, the content type and the bytes of an answer."""
        # In a thread: the caller may be in a loop of its own, as in a notebook.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self._answer(address)).result()

    async def _answer(self, address: str) -> tuple[int, str, bytes]:
        path, _, parameters = address.partition("?")
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": quote(path).encode(),
            "query_string": parameters.encode(),
            "root_path": "",
            "headers": [(b"host", b"localhost")],
            "client": None,
            "server": ("localhost", 80),
        }
        is_whole = asyncio.Event()
        status, content_type, body = 0, "", bytearray()
        requested = False

        async def receive() -> Message:
            nonlocal requested
            if requested:
                await is_whole.wait()  # the client stays until it has the answer
                return {"type": "http.disconnect"}
            requested = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status, content_type
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = dict(message["headers"])
                content_type = headers.get(b"content-type", b"").decode("latin-1")
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body"):
                    is_whole.set()

        await self._app(scope, receive, send)
        return status, content_type, bytes(body)

    def close(self) -> None:
        """Close the connections to the store."""
        self._ledger.close()
