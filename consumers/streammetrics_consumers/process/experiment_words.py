"""What a config would do to each experiment, in words, for `run --check`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.model.commit import JOIN_START, Head
from streammetrics_consumers.model.formatting import iso_utc
from streammetrics_consumers.model.generation import BETTER, Changes, ExperimentChange

MOST_LOGS: Final = 10  # whose offsets a line names
_KINDS: Final = {BETTER: "better directions", "watch_rates": "watch_rates", "name": "title"}


def first_lines(config: Config) -> list[str]:
    """A line for each experiment with a name, where nothing is counted yet."""
    return [
        f"experiment {name}: a run starts it, from the first {_first_row(config, name)} that it "
        "reads"
        for name in config.experiments
        if name
    ]


def _first_row(config: Config, name: str) -> str:
    return "exposure" if config.experiments[name].is_exposed else "event"


def change_lines(config: Config, changes: Changes, heads: Sequence[Head]) -> list[str]:
    """A line for each experiment with a name, and for that of [experiment] where something changes
    that no metric says. heads: of all logs."""
    return [line for change in changes.experiments for line in _lines(config, change, heads)]


def _lines(config: Config, change: ExperimentChange, heads: Sequence[Head]) -> Iterator[str]:
    title = f"experiment {change.name}" if change.name else "experiment"
    match change.kind:
        case "ended":
            suffix = "; it stays readable" if change.name else ""
            yield f"{title}: a run ends it; it counts no event from then on{suffix}"
        case "added" if change.name:
            yield f"{title}: added; it would count {_rows_from(config, change.name, heads)}"
        case "resumed" if change.name:
            rows = f"{_rows_from(config, change.name, heads)}, with a hole before them"
            yield f"{title}: back in the config; it would count again {rows}"
        case "goes on":
            parts = list(_parts(change, archived=config.experiments[change.name].archived))
            if parts:
                yield f"{title}: goes on; {'; '.join(parts)}"
            elif change.name:
                yield f"{title}: goes on unchanged"


def _parts(change: ExperimentChange, *, archived: bool) -> Iterator[str]:
    """What changes of an experiment that goes on. archived: whether it is now."""
    if change.end is not None:
        before, after = change.end
        now = "it has no end" if after is None else f"it ends at {iso_utc(after)}"
        earlier_end = "had none before" if before is None else f"was {iso_utc(before)}"
        yield f"{now} ({earlier_end})"
    if change.name:  # the lines of metrics and epochs say it of that without a name
        yield from (f"a new epoch starts at {start}" for start in change.epochs)
        yield from (f"{metric} is added from the offsets reached so far" for metric in change.added)
        yield from (f"{metric} ends at the offsets reached so far" for metric in change.ended)
    texts = [_KINDS.get(key, key) for key in change.shown if key != "archived"]
    if "archived" in change.shown:
        yield "archived: lists leave it out" if archived else "archived no longer"
    if texts:
        yield f"what is shown changes: {', '.join(texts)}; its counts and its looks stay"


def _rows_from(config: Config, name: str, heads: Sequence[Head]) -> str:
    """The rows that an experiment would count: from which offsets on, or which are not closed yet
    where events wait for others."""
    is_exposed = config.experiments[name].is_exposed
    joins = [head.next_offset for head in heads if head.is_join]
    if config.closing is None or not joins:
        return f"events from these offsets on: {_offsets(heads)}"
    rows = "exposures, and events after them," if is_exposed else "events"
    if joins[0] == JOIN_START:
        return f"{rows} from the first on, since none is closed yet"
    return f"{rows} from {iso_utc(joins[0])} on, since earlier ones are closed"


def _offsets(heads: Sequence[Head]) -> str:
    logs = [f"{head.partition} {head.next_offset}" for head in heads if not head.is_join]
    n_other_logs = len(logs) - MOST_LOGS
    summary = [f"and {n_other_logs} more logs"] if n_other_logs > 0 else []
    return ", ".join([*logs[:MOST_LOGS], *summary]) or "the first of each log"
