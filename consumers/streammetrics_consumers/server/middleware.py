"""The checks on every request, and the headers of every response.

Any page in a browser can reach a server on loopback. So a name in `Host` that is not ours (DNS
rebinding) is refused, only GET and HEAD are answered, and only our own files may load or run.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streammetrics_consumers.query.answers import Error, ProblemAnswer
from streammetrics_consumers.query.encoding import dumps

# An optional token: without it, a client sees only whether the service is alive and ready.

OPEN: Final = ("/healthz", "/readyz")
HINT: Final = (
    "open /?token=TOKEN in a browser, or send the header Authorization: Bearer TOKEN; the token "
    "is the value of [server] token or STREAMMETRICS_TOKEN"
)


class Token:
    """ASGI middleware: passes on requests that have the token; "" for no token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self._token = app, token
        secret = hmac.digest(token.encode(), b"streammetrics cookie", "sha256").hex()
        self._cookie = f"streammetrics-{hashlib.sha256(secret.encode()).hexdigest()[:8]}"
        self._secret = secret

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        answer = self._answer(scope) if self._token and scope["type"] == "http" else None
        await (answer or self.app)(scope, receive, send)

    def _answer(self, scope: Scope) -> ASGIApp | None:
        if scope["path"] in OPEN:
            return None
        if scope["path"] == "/":
            parameters = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            tokens = [value for name, value in parameters if name == "token"]
            if tokens:
                other_pairs = [(name, value) for name, value in parameters if name != "token"]
                return self._enter(scope, other_pairs) if self._is(tokens[0]) else _refused(scope)
        return None if self._has(Headers(scope=scope)) else _refused(scope)

    def _has(self, headers: Headers) -> bool:
        kind, _, credential = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is(credential.strip()):
            return True
        # Other servers of this machine may have set cookies that no parser takes.
        for pair in headers.get("cookie", "").split(";"):
            name, _, secret = pair.strip().partition("=")
            if name == self._cookie and self._is_secret(secret):
                return True
        return False

    def _is_secret(self, secret: str) -> bool:
        return hmac.compare_digest(secret.encode("utf-8", "replace"), self._secret.encode())

    def _is(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode())

    def _enter(self, scope: Scope, rest: list[tuple[str, str]]) -> Response:
        answer = RedirectResponse("/" + ("?" + urlencode(rest) if rest else ""), 303)
        answer.set_cookie(
            self._cookie,
            self._secret,
            httponly=True,
            samesite="lax",
            secure=scope.get("scheme") == "https",
        )
        return answer


def _refused(scope: Scope) -> Response:
    headers = {"www-authenticate": "Bearer"}
    if scope["path"].startswith("/api/"):
        problem = ProblemAnswer(
            "no token or a wrong one", expected="the token of this server", hint=HINT
        )
        return Response(dumps(Error(problem)), 401, headers, media_type="application/json")
    return PlainTextResponse(f"this server requires its token: {HINT}\n", 401, headers)


HEADERS: Final[dict[str, str]] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class HostCheck:
    """ASGI middleware: refuses other hosts and methods, and sets the headers above, except those
    that an answer sets itself."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...] = ()) -> None:
        self.app = app
        self.hosts = {"localhost", *(host.lower().strip("[]") for host in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                names = {name for name, _ in headers}
                defaults = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                missing = [(name, value) for name, value in defaults if name not in names]
                message = {**message, "headers": [*headers, *missing]}
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self.app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not self.knows(hosts[0].decode("latin-1")):
            return PlainTextResponse(
                "this host name is not allowed: use localhost, a numeric address, or the name in "
                "[server] host\n",
                400,
            )
        names = {name for name, _ in scope["headers"]}
        if {b"content-length", b"transfer-encoding"} <= names:
            # A proxy that believes the other one sees another end of the request (RFC 9112, 6.1).
            text = "a request has either Content-Length or Transfer-Encoding, not both\n"
            return PlainTextResponse(text, 400, {"connection": "close"})
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("only GET and HEAD are allowed\n", 405, {"allow": "GET, HEAD"})
        return None

    def knows(self, host: str) -> bool:
        """Whether a Host header names us. A numeric address cannot be rebound, a name can.

        >>> guard = HostCheck(PlainTextResponse(""))
        >>> [guard.knows(h) for h in ("localhost:80", "127.0.0.1", "[::1]:80", "evil.example")]
        [True, True, True, False]
        """
        name, colon, port = host.rpartition(":")
        if not colon or not port.isdecimal():
            name = host
        name = name.lower().removeprefix("[").removesuffix("]")
        if name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True
