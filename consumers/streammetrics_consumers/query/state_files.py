"""State files: states exported from a store (export), merged (merge) and displayed (show).

A state file holds one state and its provenance: the offsets of each log that were counted, and the
window, slice and metric that selected them. Two files that may have counted the same rows for one
metric do not merge: their windows share no time, or their slices differ in a name of both, or their
offsets do not overlap.
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from streammetrics import Accumulator, OverlapError, Panel, PerKey, StateError, Windows, load
from streammetrics.engines import Sealed, merge_once
from streammetrics.registry import setting_text, setting_texts
from streammetrics.results import counts_of
from streammetrics_consumers.ledger.former_states import is_of_another_version
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Head, Snapshot
from streammetrics_consumers.model.formatting import iso_utc
from streammetrics_consumers.query.json_kinds import Json
from streammetrics_consumers.query.query import OTHER, Query, QueryError, Slice, Span
from streammetrics_consumers.query.query_plan import MetricPlan
from streammetrics_consumers.query.reader import (
    Progress,
    no_report,
    with_states,
)
from streammetrics_consumers.query.results import value_rows
from streammetrics_consumers.query.rows import Window
from streammetrics_consumers.query.slices import KeyedState

# The start of `expected` in an error of the library about a sound state of another version.
_OTHER_FORMAT: Final = "format version"  # what the error of a state file of another format expected

MAX_RESULTS: Final = 20_000  # of one file, in JSON
_MAX_KNOWN: Final = 1_000  # states whose results are remembered

_RETRIES: Final = "~retries"  # after the name of a log: its offsets are the numbers of retries
# See `_pieces`: the start and the seconds of a window, then the slice and the metric.
_PIECE: Final = re.compile(r"(?:total|(\d{4}-[-\dT:.]+Z)\+(\d+)s)/(\{.*\}/.+)", re.DOTALL)

State: TypeAlias = tuple[Window, Slice, str, Accumulator]  # with the name of its metric


class UnknownState(StateError):
    """A state of a schema or format that this version does not know; nothing is damaged."""


@dataclass(frozen=True, slots=True)
class PlainState:
    """A metric inside a state, with the path of names, keys and windows that leads to it."""

    path: tuple[str, ...]
    state: Accumulator


def export(ledger: Ledger, query: Query, report: Progress = no_report) -> Accumulator:
    """One state of a store, with its provenance; `report` as in `read_results`.

    It is the state of one slice: the one that `where` names completely, or all rows without it. If
    the query names a metric, it is that metric's state, whose digest `results` shows; otherwise it
    is a Panel of all. Raises QueryError if that is not one state, or nothing was counted.
    """
    if query.window == "all":
        raise QueryError(
            expected="one window",
            got="'all'",
            where="--window",
            hint="export total, latest or START/END, each into a separate file",
        )
    names = frozenset(name for name, _ in query.where)
    try:
        snapshot, planned, states = with_states(ledger, replace(query, by=names), _all, report)
    except QueryError as error:
        if error.where != "--by":
            raise
        every = "give all names of one grouping"
        raise QueryError(
            expected=f"a --where NAME=VALUE for each name of {error.expected}",
            got=error.got if names else "none",
            where="--where",
            hint=f"{every}, or leave --where out for all rows"
            if names
            else f"{every}: this store does not have all rows in one state",
        ) from None
    if all(accumulator == accumulator.empty() for *_, accumulator in states):  # or there are none
        raise QueryError(
            expected="a slice with rows",
            got="one without rows, or only with rows of weight 0",
            where="--where" if query.where else "--window",
            hint="`results` shows the slices and windows of the store",
        )
    state = states[0][-1] if query.metric is not None else _panel(states)
    stored_names = {metric_plan.name_of(name): name for name, metric_plan in planned.items()}
    for window, slice_, name, _ in states:
        stored = stored_names[name]
        _add_provenance(state, snapshot, stored, _pieces(planned[stored], window, slice_, stored))
    return state


def _all(
    snapshot: Snapshot, planned: Mapping[str, MetricPlan], states: Iterator[KeyedState]
) -> tuple[Snapshot, Mapping[str, MetricPlan], list[State]]:
    drift = next(
        (metric_plan.drifts[0].name for metric_plan in planned.values() if not metric_plan.plain),
        None,
    )
    if drift is not None:
        raise QueryError(
            expected="a metric, which has a state",
            got=f"the drift {drift}",
            where="--metric",
            hint="export its metric",
        )
    plain = (keyed_state for keyed_state in states if keyed_state.against is None)
    slice_states = [
        (keyed_state.window, slice_, keyed_state.metric, state)
        for keyed_state in plain
        for slice_, state in keyed_state.each()
    ]
    return snapshot, planned, slice_states


def _panel(states: Sequence[State]) -> Panel:
    panel = Panel({name: state.empty() for _, _, name, state in states})
    for _, _, name, state in states:
        panel.states.by_name[name].merge(state)
    return Panel.from_bytes(panel.to_bytes())


def merge_files(
    paths: Sequence[Path],
    report: Callable[[int], None] = lambda n_done: None,
    *,
    skipped: list[Path] | None = None,
) -> Accumulator:
    """The sum of state files. `report` is called with the number of files done.

    skipped: if it is a list, a file whose rows are all counted already, in the same windows and
    slices by its provenance, is skipped and added to the list; another one is still refused.

    Raises StateError for a damaged file, SettingsError for unequal settings, and OverlapError
    if two files may have counted the same rows for one metric.
    """
    total = read_state(paths[0])
    counted = _CountedPieces()
    counted.add(total)
    report(1)
    for n_files, path in enumerate(paths[1:], 2):
        state = read_state(path)
        if merge_once(total, state, "refuse" if skipped is None else "skip"):
            counted.add(state)
        else:
            assert skipped is not None
            skipped.append(path)
        report(n_files)
    return total


@dataclass(frozen=True, slots=True)
class _SelectedRows:
    """Rows of a log that a file counted for a metric: those with offsets [start, end), event times
    [since_s, until_s) and these values. piece: as its provenance has it, the first of several."""

    piece: str
    values: Mapping[str, object]
    since_s: float
    until_s: float
    start: int
    end: int

    def may_share(self, other: _SelectedRows) -> bool:
        """Whether a row may be in both. Values of different names tell no rows apart."""
        return (
            self.start < other.end
            and other.start < self.end
            and self.since_s < other.until_s
            and other.since_s < self.until_s
            and all(
                self.values[name] == other.values[name]
                for name in self.values.keys() & other.values.keys()
            )
        )


class _CountedPieces:
    """What files have counted, by log and metric. A state refuses the pieces that it has; these are
    also other windows and slices that share rows with them."""

    def __init__(self) -> None:
        self._selections: dict[tuple[str, str], list[_SelectedRows]] = defaultdict(list)

    def add(self, state: Accumulator) -> None:
        """Add what a file counted. Raises OverlapError if another one may have counted a part."""
        selections = [*_selections(state)]
        for key, new in selections:
            for earlier in self._selections[key]:
                if new.may_share(earlier):
                    start, end = max(new.start, earlier.start), min(new.end, earlier.end)
                    raise OverlapError(
                        expected="rows that were not counted before",
                        got=f"[{start}, {end}) for {new.piece} and for {earlier.piece}",
                        where=key[0],
                        hint="merge files of windows or slices that share no rows",
                    )
        for key, new in selections:
            self._selections[key].append(new)


def _selections(state: Accumulator) -> Iterator[tuple[tuple[str, str], _SelectedRows]]:
    """What `export` selected, by log and metric; windows that follow each other are one."""
    selections: dict[tuple[str, str, int, int], list[_SelectedRows]] = defaultdict(list)
    for source, piece, start, end in state.provenance:
        match = _PIECE.fullmatch(piece)
        if match is None or source.endswith(_RETRIES):  # those are of the same offsets
            continue
        since, seconds, slice_metric = match.groups()
        since_s, until_s = -math.inf, math.inf
        alike = selections[source, slice_metric, start, end]
        try:
            if since is not None:
                since_s = datetime.fromisoformat(since).timestamp()
                until_s = since_s + int(seconds)
            if alike and alike[-1].until_s == since_s:
                alike[-1] = replace(alike[-1], until_s=until_s)
                continue
            values = _slice_and_metric(slice_metric)[0]
        except ValueError:  # a piece of another program, which looks like one of `export`
            continue
        alike.append(_SelectedRows(piece, values, since_s, until_s, start, end))
    for (source, slice_metric, _, _), alike in selections.items():
        for selection in alike:
            yield (source, _slice_and_metric(slice_metric)[1]), selection


@lru_cache
def _slice_and_metric(text: str) -> tuple[Mapping[str, object], str]:
    """Both of the end of a piece. Raises ValueError where it has no slice."""
    values, end = json.JSONDecoder().raw_decode(text)
    return values, text[end + 1 :]


def read_state(path: Path) -> Accumulator:
    """The state in a file. Raises UnknownState (exit 3) if another version of this program must
    read it, else StateError (exit 1) if it is not a state file or is missing."""
    try:
        if path.is_char_device() or path.is_block_device():  # it may have no end
            raise OSError(0, "Is a device")
        return load(path)
    except StateError as error:
        if not (is_of_another_version(error) or error.expected.startswith(_OTHER_FORMAT)):
            raise
        raise UnknownState(
            expected=error.expected, got=error.got, where=error.where, hint=error.hint
        ) from None
    except OSError as error:
        raise StateError(
            expected="a state file",
            got=str(error.strerror),
            where=str(path),
            hint="check the name and its permissions",
        ) from None


def write_state(state: Accumulator, path: Path) -> None:
    """Write a state file atomically: to a temporary file, which is then renamed."""
    try:
        handle, name = tempfile.mkstemp(dir=path.resolve().parent, prefix=f".{path.name}.")
    except OSError as error:
        # Name the file that was asked for, not the temporary one.
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(state.to_file_bytes())
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def plain_states(state: Accumulator, path: tuple[str, ...] = ()) -> Iterator[PlainState]:
    """Every metric inside a state, in its canonical order."""
    match state:
        case Panel():
            for name in state.metrics:
                yield from plain_states(state.state(name), (*path, name))
        case PerKey():
            for key in state.keys():  # noqa: SIM118 - it is a method of a state, not of a dict
                yield from plain_states(state.state(key), (*path, json.dumps(key)))
            overflow = state.overflow_state()
            if overflow is not None:
                yield from plain_states(overflow, (*path, OTHER))
        case Windows():
            for spans, window_state in state.window_states():
                inside = list(plain_states(window_state))  # windows of the same rows share them
                for start, end in spans:
                    span = str(Span(start, end))
                    yield from (PlainState((*path, span, *i.path), i.state) for i in inside)
            yield from plain_states(state.total_state(), (*path, "total"))
        case Sealed():
            yield from plain_states(state.inner, path)
        case _:
            yield PlainState(path, state)


def n_states(state: Accumulator) -> int:
    """The number of states that `plain_states` yields."""
    match state:
        case Windows():
            windows = (
                len(spans) * n_states(window_state) for spans, window_state in state.window_states()
            )
            return sum(windows) + n_states(state.total_state())
        case Panel():
            return sum(n_states(state.state(name)) for name in state.metrics)
        case PerKey():
            overflow = state.overflow_state()
            n_other = 0 if overflow is None else n_states(overflow)
            return sum(n_states(state.state(key)) for key in state.keys()) + n_other  # noqa: SIM118
        case Sealed():
            return n_states(state.inner)
    return 1


def description(state: Accumulator) -> Json:
    """The content of `show --json` for a state."""
    results = list(_results_json(islice(plain_states(state), MAX_RESULTS)))
    sealed: dict[str, Json] = {}
    if isinstance(state, Sealed):
        buckets, all_buckets = state.buckets
        sealed = {"sealed": {"scope": state.scope, "buckets": buckets, "of": all_buckets}}
    return {
        "format": "streammetrics-state/1",
        "type": type(state).__name__,
        "schema": state.schema,
        "settings": settings_json(state),
        "digest": state.digest(),
        "provenance": [
            {"source": source, "piece": piece, "start": start, "end": end}
            for source, piece, start, end in state.provenance
        ],
        **sealed,
        "results": results,
        "results_left_out": n_states(state) - len(results),
    }


def settings_json(state: Accumulator) -> dict[str, Json]:
    """The settings that the bytes of a state hold, as plain values; metrics as texts."""
    texts_by_name = setting_texts(state)
    return {name: _setting_json(state.settings()[name]) for name in texts_by_name}


def _results_json(states: Iterable[PlainState]) -> Iterator[Json]:
    """Each state with its values, which windows of the same rows share."""
    cache: dict[int, tuple[Accumulator, dict[str, Json]]] = {}  # keeps states, so ids are unique
    for plain in states:
        if id(plain.state) not in cache:
            if len(cache) >= _MAX_KNOWN:
                cache.clear()
            cache[id(plain.state)] = plain.state, _result_json(plain.state)
        yield {"path": list(plain.path), **cache[id(plain.state)][1]}


def _result_json(state: Accumulator) -> dict[str, Json]:
    result = state.compute()
    return {
        "type": type(state).__name__,
        "counts": dict(counts_of(result)),
        "views": views_json(result),
        "digest": state.digest(),
    }


def views_json(result: object) -> dict[str, Json]:
    """Each view of a result: its value with its certain bounds, nan for measures of error."""
    views: dict[str, Json] = {}
    for row in value_rows(result):
        low, high = row.exact_within or (math.nan, math.nan)
        views[row.name] = {"value": float(row.value), "low": low, "high": high}
    return views


def _setting_json(value: object) -> Json:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return [_setting_json(element) for element in value]
        case Mapping():
            return {str(name): _setting_json(element) for name, element in value.items()}
        case Accumulator():
            return setting_text(value)
    return str(value)


def _add_provenance(
    state: Accumulator, snapshot: Snapshot, name: str, pieces: Iterable[str]
) -> None:
    """Add the offsets of every log once for each pane, because a pane counts each row once."""
    metric = next(m for m in snapshot.generation.metrics if m.name == name)
    sources = _sources(snapshot.logs)
    for piece in pieces:
        for head in snapshot.logs:
            start = metric.start_offsets.get(head.id, head.start_offset)
            for missing, goes_on in metric.holes.get(head.id, ()):
                state.provenance.add(sources[head.id], start, max(start, missing), piece)
                start = goes_on
            state.provenance.add(sources[head.id], start, max(start, head.next_offset), piece)
            # Retries add refused events of these offsets: a state from before a retry lacks them.
            state.provenance.add(f"{sources[head.id]}{_RETRIES}", 0, snapshot.retry, piece)


def _pieces(metric_plan: MetricPlan, window: Window, slice_: Slice, name: str) -> Iterator[str]:
    state_name = f"{json.dumps(slice_, sort_keys=True, ensure_ascii=False)}/{name}"
    start_ms, end_ms = window.start_ms, window.end_ms
    if start_ms is None or end_ms is None:
        yield f"total/{state_name}"
        return
    pane_ms = metric_plan.layout.windows.pane_ms
    for pane in range(start_ms, end_ms, pane_ms):
        yield f"{iso_utc(pane)}+{pane_ms // 1000}s/{state_name}"


def _sources(heads: Sequence[Head]) -> dict[int, str]:
    """A unique name for the log of each head, so that its offsets identify its events."""
    names: dict[int, str] = {}
    times: Counter[str] = Counter()
    for head in heads:
        log = head.partition
        name = f"{log.cluster}/{log.topic_id}/{log}"
        # A log that was truncated gives the same offsets to other events.
        names[head.id] = f"{name}~{times[name]}" if times[name] else name
        times[name] += 1
    return names
