"""The drift between the states of two files (drift)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from streammetrics import Accumulator, InputError, StateError, drift
from streammetrics.results import Drift, counts_of, texts_of, views_of
from streammetrics_consumers.query.answers import Json
from streammetrics_consumers.query.results import bounds
from streammetrics_consumers.query.state_files import PlainState, plain_states

Found: TypeAlias = Sequence[tuple[tuple[str, ...], Drift]]  # by path

MAX_DRIFTS = 10_000


def drifts_of(
    reference: Accumulator, current: Accumulator, *, label: int | None = None, bins: int = 10
) -> Found:
    """The drift of each metric of values or scores that both states have, by its path: names, keys
    and windows. Two states of one metric each are compared whatever their paths.

    StateError if they have none in common, and the error of the library for different grids.
    """
    known = {one.path: one.state for one in plain_states(current)}
    pairs = [
        (one.path, one.state, known[one.path])
        for one in plain_states(reference)
        if one.path in known
    ]
    if not pairs:
        one, other = (_only(list(plain_states(state))) for state in (reference, current))
        pairs = [] if one is None or other is None else [(other.path, one.state, other.state)]
    if len(pairs) > MAX_DRIFTS:
        raise StateError(
            expected=f"at most {MAX_DRIFTS:,} metrics, keys and windows",
            got=f"{len(pairs):,}",
            where="the state files",
            hint="export one slice with --where, and one window",
        )
    found: list[tuple[tuple[str, ...], Drift]] = []
    refused: InputError | None = None
    for path, before, now in pairs:
        try:
            found.append((path, drift(before, now, label=label, bins=bins)))
        except InputError as error:  # it is of another kind, such as a ratio
            refused = refused or error
    if not found and refused is not None:
        raise refused
    if not found:
        raise StateError(
            expected="a metric, key and window that both files have",
            got="none",
            where="the state files",
            hint="`show` lists the contents of each",
        )
    return found


def drifts_json(reference: Accumulator, current: Accumulator, found: Found) -> Json:
    """The content of `drift --json`."""
    return {
        "format": "streammetrics-drift/1",
        "reference": reference.digest(),
        "current": current.digest(),
        "results": [{"path": list(path), **_json(one)} for path, one in found],
    }


def _only(states: Sequence[PlainState]) -> PlainState | None:
    return states[0] if len(states) == 1 else None


def _json(found: Drift) -> dict[str, Json]:
    views: dict[str, Json] = {}
    for view, figure in views_of(found).items():
        value, low, high = bounds(found, view, figure)
        views[view] = {"value": value, "low": low, "high": high}
    return {
        "counts": dict(counts_of(found)),
        "texts": dict(texts_of(found)),
        "views": views,
        "certain": found.certain(),
    }
