"""What the results of a store are read from: whatever answers the routes of docs/http.md.

A server answers them, and so does this process over a store, so both are read in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeAlias, cast
from urllib.parse import urlencode

from streammetrics.core.errors import InputError, StreamMetricsError

Answer: TypeAlias = tuple[int, str, bytes]  # status, content type, bytes
Parameters: TypeAlias = Sequence[tuple[str, str]]

JSON: Final = "application/json"
REFUSED: Final = range(400, 500)  # the statuses of a question that has no answer


class Readable(Protocol):
    """A store or a server."""

    name: str

    def get(self, address: str) -> Answer:
        """The answer of a route; address: its path, with the parameters. Raises StreamMetricsError
        if there is none."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


def document(source: Readable, path: str, parameters: Parameters = ()) -> Mapping[str, object]:
    """The JSON object that a route answers with. Raises InputError for a question that it refuses,
    and StreamMetricsError if there is no such answer."""
    status, content_type, body = source.get(f"{path}?{urlencode(parameters)}".removesuffix("?"))
    where = f"{source.name}, {path}"
    if content_type.partition(";")[0].strip().lower() != JSON:
        raise StreamMetricsError(
            expected=f"an answer in {JSON}",
            got=f"{content_type[:80] or 'no content type'!r}, status {status}",
            where=where,
            hint="check that the address is that of `streammetrics serve` or `run`",
        )
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise StreamMetricsError(
            expected="JSON",
            got=f"{type(error).__name__}: {error}",
            where=where,
            hint="check that the address is that of `streammetrics serve` or `run`",
        ) from None
    if status == 200 and isinstance(answer, dict):
        return answer
    problem = answer.get("error") if isinstance(answer, dict) else None
    parts = cast("Mapping[str, object]", problem if isinstance(problem, dict) else {})
    kind = InputError if status in REFUSED else StreamMetricsError
    raise kind(
        expected=str(parts.get("expected", "an answer")),
        got=str(parts.get("got", f"status {status}")),
        where=f"{where}, {parts['where']}" if "where" in parts else where,
        hint=str(parts.get("hint", "try again later, or see the log of the server")),
    )
