"""An optional token: who does not have it sees nothing but whether the service lives.

Scripts send it as `Authorization: Bearer TOKEN`. A person opens `/?token=TOKEN` once: the answer
leads to the same address without it, and a cookie that no script can read says it from then on.
The cookie holds a hash of the token, and is named after it, since servers on other ports of a
machine see one another's cookies.
"""

from __future__ import annotations

import hashlib
import hmac
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from consumers.results.answers import Error, Problem, dumps

OPEN: Final = ("/healthz", "/readyz")
TODO: Final = (
    "open /?token=TOKEN in a browser, or send the header Authorization: Bearer TOKEN; the token is "
    "what [server] token or STREAMMETRICS_TOKEN says"
)


class Token:
    """ASGI middleware: passes on what comes with the token. "" asks for none."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self._token = app, token
        told = hmac.digest(token.encode(), b"streammetrics cookie", "sha256").hex()
        self._cookie = f"streammetrics-{hashlib.sha256(told.encode()).hexdigest()[:8]}"
        self._told = told

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        answer = self._answer(scope) if self._token and scope["type"] == "http" else None
        await (answer or self.app)(scope, receive, send)

    def _answer(self, scope: Scope) -> ASGIApp | None:
        if scope["path"] in OPEN:
            return None
        if scope["path"] == "/":
            asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            given = [value for name, value in asked if name == "token"]
            if given:
                rest = [(name, value) for name, value in asked if name != "token"]
                return self._enter(scope, rest) if self._is(given[0]) else _refused(scope)
        return None if self._has(Headers(scope=scope)) else _refused(scope)

    def _has(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is(given.strip()):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        told = "" if cookie is None else cookie.value
        return hmac.compare_digest(told.encode("utf-8", "replace"), self._told.encode())

    def _is(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def _enter(self, scope: Scope, rest: list[tuple[str, str]]) -> Response:
        answer = RedirectResponse("/" + ("?" + urlencode(rest) if rest else ""), 303)
        answer.set_cookie(
            self._cookie,
            self._told,
            httponly=True,
            samesite="lax",
            secure=scope.get("scheme") == "https",
        )
        return answer


def _refused(scope: Scope) -> Response:
    headers = {"www-authenticate": "Bearer"}
    if scope["path"].startswith("/api/"):
        problem = Problem("no such token", expected="the token of this server", todo=TODO)
        return Response(dumps(Error(problem)), 401, headers, media_type="application/json")
    return PlainTextResponse(f"this server asks for its token: {TODO}\n", 401, headers)
