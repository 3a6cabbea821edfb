"""The work of a page's main thread, from Chromium's own trace."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

CATEGORIES: Final = ("toplevel", "devtools.timeline", "v8")
# The kind of work by the beginning of an event's name; all other work is "else".
KINDS: Final = {
    "collecting garbage": ("MajorGC", "MinorGC", "V8.GC"),
    "scripts": ("FunctionCall", "EvaluateScript", "RunMicrotasks", "v8.", "V8."),
    "layout and style": ("Layout", "UpdateLayoutTree", "InvalidateLayout"),
    "paint": ("Paint", "PrePaint", "Layerize", "Commit", "UpdateLayer"),
    "reading answers": ("ResourceReceivedData", "ParseHTML", "ResourceFinish"),
}


class Ms(NamedTuple):
    """Milliseconds of CPU time and of wall time."""

    cpu: float
    wall: float

    def less(self, baseline: Ms) -> Ms:
        """The difference to the baseline, at least 0."""
        return Ms(max(self.cpu - baseline.cpu, 0.0), max(self.wall - baseline.wall, 0.0))


NOTHING: Final = Ms(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Busy:
    """The tasks of one thread: in total, the longest, and the time by kind."""

    total: Ms
    longest: Ms
    kinds: Mapping[str, Ms] = field(default_factory=dict)


@dataclass(slots=True)
class _Span:
    """A trace event, with the time of the events directly inside it."""

    name: str
    start: float
    wall: float
    cpu: float
    inside: Ms = NOTHING

    @property
    def end(self) -> float:
        return self.start + self.wall


def busy(trace: bytes) -> Busy:
    """The work of the busiest main thread of the pages in a trace of CATEGORIES.

    >>> main = {"pid": 1, "tid": 2}
    >>> thread = {**main, "ph": "M", "name": "thread_name", "args": {"name": "CrRendererMain"}}
    >>> task = {**main, "ph": "X", "name": "RunTask", "ts": 0, "dur": 5000, "tdur": 4000}
    >>> call = {**task, "name": "FunctionCall", "ts": 1000, "dur": 3000, "tdur": 2000}
    >>> events = [thread, task, call]
    >>> busy(json.dumps({"traceEvents": events}).encode()).kinds
    {'else': Ms(cpu=2.0, wall=2.0), 'scripts': Ms(cpu=2.0, wall=3.0)}
    """
    events = json.loads(trace)["traceEvents"]
    mains = {
        (entry["pid"], entry["tid"])
        for entry in events
        if entry["name"] == "thread_name" and entry["args"]["name"] == "CrRendererMain"
    }
    spans: dict[tuple[int, int], list[_Span]] = {main: [] for main in mains}
    for event in events:
        thread_spans = spans.get((event["pid"], event["tid"]))
        if thread_spans is not None and event["ph"] == "X":
            wall, cpu = event.get("dur", 0) / 1000, event.get("tdur", 0) / 1000
            thread_spans.append(_Span(event["name"], event["ts"] / 1000, wall, cpu))
    return max(map(_of_one_thread, spans.values()), key=lambda thread: thread.total.wall)


def _of_one_thread(spans: Iterable[_Span]) -> Busy:
    outermost: list[_Span] = []
    open_: list[_Span] = []
    ordered = sorted(spans, key=lambda piece: (piece.start, -piece.wall))
    for span in ordered:
        while open_ and open_[-1].end <= span.start:
            open_.pop()
        if open_:
            above = open_[-1]
            above.inside = Ms(above.inside.cpu + span.cpu, above.inside.wall + span.wall)
        else:
            outermost.append(span)
        open_.append(span)
    cpu, wall = Counter[str](), Counter[str]()
    for span in ordered:
        cpu[_kind(span.name)] += span.cpu - span.inside.cpu  # type: ignore[assignment]
        wall[_kind(span.name)] += span.wall - span.inside.wall  # type: ignore[assignment]
    return Busy(
        Ms(sum(root.cpu for root in outermost), sum(root.wall for root in outermost)),
        Ms(max((root.cpu for root in outermost), default=0.0),
           max((root.wall for root in outermost), default=0.0)),
        {kind: Ms(cpu[kind], wall[kind]) for kind in sorted(wall)},
    )  # fmt: skip


def _kind(name: str) -> str:
    return next((kind for kind, starts in KINDS.items() if name.startswith(starts)), "else")
