"""The events of hooks as text (`hooks`, `status`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from streammetrics_consumers.model import formatting
from streammetrics_consumers.model.formatting import iso_utc
from streammetrics_consumers.model.hook_events import STATES, HookState
from streammetrics_consumers.query.hook_answers import SentHook
from streammetrics_consumers.render.style import Style, rendered


def hooks_text(hooks: Sequence[SentHook], style: Style, *, title: str) -> str:
    """The text of `hooks`."""
    parts: list[RenderableType] = [Text(formatting.name(title, 60), "bold"), Text("")]
    if not hooks:
        return rendered([*parts, Text("no event of a hook yet")], style)
    for sent in hooks:
        parts.append(Text(f"{iso_utc(sent.created_ms // 1000 * 1000)}  {_event_line(sent)}"))
        parts.append(Text(f"  {_state_line(sent)}"))
    return rendered(parts, style)


def _event_line(sent: SentHook) -> str:
    """An event, with its experiment, metric and arm."""
    parts = (sent.experiment, sent.metric, sent.arm)
    about = ", ".join(formatting.name(part, 60) for part in parts if part)
    return f"{sent.event}: {about}" if about else sent.event


def _state_line(sent: SentHook) -> str:
    """How far an event was sent, and to whom."""
    host = f" ({formatting.name(sent.host, 80)})" if sent.host else ""
    tries = "1 attempt" if sent.attempts == 1 else f"{formatting.count(sent.attempts)} attempts"
    answer = f", {formatting.name(sent.answer, 80)}" if sent.answer else ""
    return f"{sent.state}: {sent.name}{host}, {tries}{answer}"


def state_lines(counts: Mapping[tuple[str, HookState], int]) -> Iterator[str]:
    """A line for each hook: how many of its events are in each state."""
    for name in sorted({name for name, _ in counts}):
        states = [
            f"{formatting.count(counts[name, state])} {state}"
            for state in STATES
            if (name, state) in counts
        ]
        yield f"hook {name}: {', '.join(states)}"
