"""A client that calls an ASGI application in this process, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import httpx
from starlette.types import ASGIApp


class Client:
    """Sends requests one after the other, as a browser on this machine would name us."""

    def __init__(self, app: ASGIApp) -> None:
        self.transport = httpx.ASGITransport(app, raise_app_exceptions=False)

    def get(
        self,
        path: str,
        *,
        params: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """GET."""
        path += ("?" if params else "") + str(httpx.QueryParams(list(params)))
        return self.request("GET", path, headers)

    def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Any method."""

        async def ask() -> httpx.Response:
            async with httpx.AsyncClient(
                transport=self.transport, base_url="http://localhost"
            ) as client:
                return await client.request(method, path, headers=headers)

        return asyncio.run(ask())
