"""One attempt to deliver an event: a signed POST, bounded in time and size.

The signature is of the time of the attempt and of the body, so that a receiver can refuse one that
was recorded long ago. Redirects are not followed: they would send the event where the config does
not say. Nothing of the answer is kept but its status, since the rest may repeat what is secret in
the address.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Timer
from typing import Final
from urllib.parse import urlsplit

from streammetrics import __version__

MAX_ANSWER_BYTES: Final = 64 << 10  # read, so that the receiver is not cut off; then dropped
LATE: Final = "no answer in time"
SIGNATURE: Final = "Streammetrics-Signature"
TIMESTAMP: Final = "Streammetrics-Timestamp"
EVENT_NAME: Final = "Streammetrics-Event"
KEY: Final = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class HookReply:
    """What an attempt came to: whether the receiver has the event, and the status or the error."""

    delivered: bool
    text: str


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """The value of the header that signs a body at a time, in seconds since 1970.

    >>> signature(b"0123456789abcdef", "1767225600", b"{}")
    'sha256=99902517b3069f78750aa0520b0493482454c2d30a579c7acc839f3363ca1b88'
    """
    digest = hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256)
    return f"sha256={digest.hexdigest()}"


def headers_of(
    secret: bytes, timestamp_s: int, key: str, event: str, body: bytes
) -> Mapping[str, str]:
    """The headers of an attempt."""
    timestamp = str(timestamp_s)
    return {
        "Content-Type": "application/json",
        "User-Agent": f"streammetrics/{__version__}",
        EVENT_NAME: event,
        KEY: key,
        TIMESTAMP: timestamp,
        SIGNATURE: signature(secret, timestamp, body),
    }


def post(url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> HookReply:
    """Send a body once. It raises nothing: an error is the reply."""
    parts = urlsplit(url)
    is_tls = parts.scheme == "https"
    kind = http.client.HTTPSConnection if is_tls else http.client.HTTPConnection
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    connection: http.client.HTTPConnection | None = None
    # The timeout of a socket is one of each step; a receiver may take many small ones.
    is_late = Event()

    def cut() -> None:
        is_late.set()
        _cut(connection)

    limit = Timer(timeout_s, cut)
    limit.daemon = True
    try:
        connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
        limit.start()
        connection.request("POST", target, body, dict(headers))
        answer = connection.getresponse()
        left = MAX_ANSWER_BYTES
        while left > 0 and (data := answer.read1(min(left, 8192))):
            left -= len(data)
        if is_late.is_set():  # what was read is cut, and looks whole
            return HookReply(False, LATE)
        delivered = 200 <= answer.status < 300
        return HookReply(delivered, f"HTTP {answer.status}")
    except (OSError, http.client.HTTPException, ValueError) as error:
        return HookReply(False, LATE if is_late.is_set() else _why(error))
    finally:
        limit.cancel()
        if connection is not None:
            connection.close()


def _cut(connection: http.client.HTTPConnection | None) -> None:
    """End whatever a connection waits for."""
    open_socket = None if connection is None else connection.sock
    if open_socket is not None:
        with suppress(OSError):
            open_socket.shutdown(socket.SHUT_RDWR)


def _why(error: Exception) -> str:
    """An error in words that have no part of the address."""
    if isinstance(error, TimeoutError):
        return LATE
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the certificate of the receiver is not valid"
    if isinstance(error, socket.gaierror):
        return "the host is not known"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
