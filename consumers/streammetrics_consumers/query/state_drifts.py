"""The drift between the states of two files (drift)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from streammetrics import Accumulator, InputError, StateError, drift
from streammetrics.results import Drift, counts_of, texts_of
from streammetrics_consumers.query.json_kinds import Json
from streammetrics_consumers.query.state_files import PlainState, plain_states, views_json

Found: TypeAlias = Sequence[tuple[tuple[str, ...], Drift]]  # by path

MAX_DRIFTS = 10_000


def drifts_of(
    reference: Accumulator, current: Accumulator, *, label: int | None = None, bins: int = 10
) -> Found:
    """The drift of each metric of values or scores that both states have, by its path: names, keys
    and windows. Two states of one metric each are compared whatever their paths.

    StateError if they have none in common, and the error of the library for different grids.
    """
    current_by_path = {plain.path: plain.state for plain in plain_states(current)}
    pairs = [
        (plain.path, plain.state, current_by_path[plain.path])
        for plain in plain_states(reference)
        if plain.path in current_by_path
    ]
    if not pairs:
        reference_state, current_state = (
            _only(list(plain_states(state))) for state in (reference, current)
        )
        pairs = (
            []
            if reference_state is None or current_state is None
            else [(current_state.path, reference_state.state, current_state.state)]
        )
    if len(pairs) > MAX_DRIFTS:
        raise StateError(
            expected=f"at most {MAX_DRIFTS:,} metrics, keys and windows",
            got=f"{len(pairs):,}",
            where="the state files",
            hint="export one slice with --where, and one window",
        )
    drifts: list[tuple[tuple[str, ...], Drift]] = []
    refused: InputError | None = None
    for path, before, now in pairs:
        try:
            drifts.append((path, drift(before, now, label=label, bins=bins)))
        except InputError as error:  # it is of another kind, such as a ratio
            refused = refused or error
    if not drifts and refused is not None:
        raise refused
    if not drifts:
        raise StateError(
            expected="a metric, key and window that both files have",
            got="none",
            where="the state files",
            hint="`show` lists the contents of each",
        )
    return drifts


def drifts_json(reference: Accumulator, current: Accumulator, drifts: Found) -> Json:
    """The content of `drift --json`."""
    return {
        "format": "streammetrics-drift/1",
        "reference": reference.digest(),
        "current": current.digest(),
        "results": [{"path": list(path), **_json(result)} for path, result in drifts],
    }


def _only(states: Sequence[PlainState]) -> PlainState | None:
    return states[0] if len(states) == 1 else None


def _json(result: Drift) -> dict[str, Json]:
    return {
        "counts": dict(counts_of(result)),
        "texts": dict(texts_of(result)),
        "views": views_json(result),
        "certain": result.certain(),
    }
