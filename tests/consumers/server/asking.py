"""A client that calls an ASGI application in this process, and what it expects of answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence

import httpx
import jsonschema
from starlette.types import ASGIApp
from streammetrics_consumers.server.openapi import openapi_json

EXPERIMENT = """\
[experiment]
control = "a"
decision = ["ctr"]
guardrails = [{ metric = "auc", margin = 0.1 }]
cluster = "none"
mde = 0.1
"""


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


def fits(path: str, status: int, answer: bytes) -> None:
    """The answer to a path is what the served schema says of it."""
    served = json.loads(openapi_json())
    responses = served["paths"].get(path.partition("?")[0], {}).get("get", {}).get("responses", {})
    schema = {"$ref": "#/components/schemas/Error"}
    if str(status) in responses:
        schema = responses[str(status)]["content"]["application/json"]["schema"]
    whole = {**schema, "components": served["components"]}
    jsonschema.Draft202012Validator(whole).validate(json.loads(answer))
