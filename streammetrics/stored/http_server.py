"""A server of results, asked over HTTP.

What it answers is from outside: it is bounded before it is read, never decompressed, and no
redirect is followed, so that neither the token nor the question goes to another address.
"""

from __future__ import annotations

import http.client
from contextlib import closing
from typing import Final
from urllib.parse import urlsplit

from streammetrics.core.errors import InputError, StreamMetricsError
from streammetrics.stored.readable import Answer

SCHEMES: Final = ("http", "https")
MAX_BYTES: Final = 256 << 20  # of one answer
REDIRECTS: Final = range(300, 400)


class HttpServer:
    """The server at an address such as http://localhost:8765; a path before the routes is that of a
    proxy."""

    def __init__(
        self, address: str, *, token: str = "", timeout_s: float = 60.0, max_bytes: int = MAX_BYTES
    ) -> None:
        """timeout_s: of each read from the connection. Raises InputError for another address."""
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port
        except ValueError:
            parts, host, port = urlsplit(""), None, None
        is_plain = parts.username is None and not parts.query and not parts.fragment
        if parts.scheme not in SCHEMES or not host or not is_plain:
            raise InputError(
                expected="http://HOST:PORT or https://HOST:PORT",
                got="another address",
                where="open(source)",
                hint="pass the address of the page without its parameters, and the token as token=",
            )
        self.name = f"{parts.scheme}://{parts.netloc}"
        self._scheme, self._host, self._port = parts.scheme, host, port
        self._prefix = parts.path.rstrip("/")
        self._timeout_s, self._max_bytes = timeout_s, max_bytes
        self._headers = {"accept": "application/json", "accept-encoding": "identity"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"

    def get(self, address: str) -> Answer:
        """See `Readable`. Raises StreamMetricsError if there is no answer, or if it is too
        large."""
        kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
        connection = kinds[self._scheme](self._host, self._port, timeout=self._timeout_s)
        with closing(connection):
            try:
                connection.request("GET", self._prefix + address, headers=self._headers)
                with connection.getresponse() as response:
                    return self._answer(response)
            except (OSError, http.client.HTTPException, ValueError) as error:
                if isinstance(error, StreamMetricsError):
                    raise
                raise self._refused(
                    "a server of results",
                    f"{type(error).__name__}: {error}",
                    "check the address, and that `streammetrics serve` or `run` is running there",
                ) from None

    def _answer(self, response: http.client.HTTPResponse) -> Answer:
        if response.status in REDIRECTS:
            raise self._refused(
                "an answer",
                f"a redirect, status {response.status}",
                "pass the address to which it leads, if you trust it",
            )
        if (response.length or 0) > self._max_bytes:
            raise self._too_large(f"{response.length:,}")
        body = response.read(self._max_bytes + 1)
        if len(body) > self._max_bytes:
            raise self._too_large(f"more than {self._max_bytes:,}")
        if response.length:
            raise http.client.IncompleteRead(body, response.length)
        return response.status, response.getheader("content-type", ""), body

    def _too_large(self, got: str) -> StreamMetricsError:
        return self._refused(
            f"at most {self._max_bytes:,} bytes",
            got,
            "ask for less, with window, by, where or metric",
        )

    def _refused(self, expected: str, got: str, hint: str) -> StreamMetricsError:
        return StreamMetricsError(expected=expected, got=got, where=self.name, hint=hint)

    def close(self) -> None:
        """See `Readable`: each answer has its own connection."""
