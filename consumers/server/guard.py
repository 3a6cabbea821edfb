"""What every request must pass, and every response carries.

A server on loopback is reached by any page that a browser shows, so a name that is not ours in
`Host` (DNS rebinding) is refused, only GET and HEAD are answered, and no content may load or
run but our own files.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


class Guard:
    """ASGI middleware: refuses other hosts and methods, and sets the headers above, but one that an
    answer sets itself."""

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
                theirs = list(message.get("headers", ()))
                known = {name for name, _ in theirs}
                ours = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                more = [(name, value) for name, value in ours if name not in known]
                message = {**message, "headers": [*theirs, *more]}
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self.app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        named = [value for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1 or not self.knows(named[0].decode("latin-1")):
            return PlainTextResponse(
                "this name is not served here: use localhost, a numeric address, or the name in "
                "[server] host\n",
                400,
            )
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("only GET and HEAD\n", 405, {"allow": "GET, HEAD"})
        return None

    def knows(self, host: str) -> bool:
        """Whether a Host header names us. A numeric address cannot be rebound, a name can.

        >>> guard = Guard(PlainTextResponse(""))
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
