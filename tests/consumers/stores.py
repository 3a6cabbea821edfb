"""A small store, made as a user makes one: a config, a file of events, and `run`. And a stand-in
for it: the same test over SQLite and over PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import pytest
from sqlalchemy import Engine
from sqlalchemy.engine import make_url
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger import store as store_module
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata, state_bytes, state_of
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store import connect
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.model.commit import Snapshot

from streammetrics import Accumulator, load

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

    from tests.postgres_server import Postgres

K = TypeVar("K")
CONFIG = """\
[source]
kind = "file"
path = "clicks.jsonl"
[event]
time = "ts"
variant = "variant"
{variants}
label = "label"
score = "score"
[windows]
size_s = 3600
lateness_s = 60
{windows}
[slices]
by = [[], ["variant"], ["variant", "phase"]]
{slices}
[metrics]
auc = {{ type = "HistogramAUC" }}
ctr = {{ type = "Ratio" }}
[store]
url = "store.db"
[server]
port = 0
"""
HOSTILE = "<script>alert(1)</script>\x1b[31m[bold]"


def event(
    minute: int, variant: str, label: int, score: float, phase: str | None = "fit"
) -> dict[str, object]:
    """An event of 1970-01-01, so many minutes after midnight."""
    time = f"1970-01-01T{minute // 60:02d}:{minute % 60:02d}:00Z"
    return {"ts": time, "variant": variant, "label": label, "score": score, "phase": phase}


EVENTS: Sequence[object] = (
    event(0, "a", 0, 0.1),
    event(1, "b", 1, 0.2),
    event(2, "a", 1, 0.3, "eval"),
    event(3, "b", 0, 0.4, "eval"),
    b"not json \x1b[2J\xff",
    event(70, "a", 0, 0.5),
    event(71, "b", 0, 0.1),
    event(72, "b", 1, 0.9),
    event(30, "a", 1, 0.7),
    event(125, "a", 2, 0.7),
)


def write_config(
    folder: Path,
    *,
    variants: str = 'variants = ["a", "b"]',
    windows: str = "",
    slices: str = "",
    rest: str = "",
) -> Path:
    """The config file, in a folder."""
    path = folder / "clicks.toml"
    text = CONFIG.format(variants=variants, windows=windows, slices=slices) + rest
    path.write_text(text, encoding="utf-8")
    return path


def write_events(folder: Path, events: Sequence[object] = EVENTS) -> Path:
    """The file of events; bytes are written as they are."""
    path = folder / "clicks.jsonl"
    lines = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in events]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def make_store(folder: Path, events: Sequence[object] = EVENTS, **config: str) -> Path:
    """A store that has counted the events."""
    write_events(folder, events)
    path = write_config(folder, **config)
    code = main(["run", str(path), "--until-end", "--no-serve"])
    assert code == 0
    return folder / "store.db"


def over_stores(*cases: tuple[object, ...], postgres: int) -> list[ParameterSet]:
    """Cases of a test over `databases`: all over SQLite, and the first so many over PostgreSQL
    too, where the others ask nothing else of it."""
    params = []
    for name, subset in (("sqlite", cases), ("postgres", cases[:postgres])):
        for case in subset:
            marks = [] if name == "sqlite" else [pytest.mark.postgres]
            labels = [getattr(value, "__name__", str(value)) for value in case]
            params.append(pytest.param(name, *case, marks=marks, id="-".join([name, *labels])))
    return params


class Stored(NamedTuple):
    """What a ledger holds of one generation, at one moment: each delta row with its state."""

    seen: Snapshot
    rows: Sequence[tuple[DeltaMetadata, bytes]]

    def sums(self, key: Callable[[DeltaMetadata], K]) -> dict[K, Accumulator]:
        """The sum of the states of the rows that have the same key."""
        totals: dict[K, Accumulator] = {}
        for row, state in self.rows:
            group = key(row)
            totals[group] = totals[group] + load(state) if group in totals else load(state)
        return totals


def stored(ledger: Ledger, generation: int | None = None) -> Stored:
    """All that a ledger holds of a generation, or of the current one."""

    def look(now: StoreView) -> Stored:
        rows = now.delta_metadata([size.pane for size in now.snapshot.panes])
        states = (
            (
                row,
                (state_bytes(row, data) if row.sum_of is None else state_of(row, data).to_bytes()),
            )
            for row, data in now.states(rows)
        )
        return Stored(now.snapshot, sorted(states, key=lambda pair: (pair[0].id, pair[0].pane)))

    return view(ledger, look, generation=generation)


class Databases:
    """Stands in for `connect`: a file that a writer names is a schema of PostgreSQL."""

    def __init__(self, server: Postgres) -> None:
        self.server = server
        self.urls: dict[Path, str] = {}
        self.filled: dict[tuple[object, ...], str] = {}  # what `filled_once` copies

    def connect(self, url: str, *, create: bool, busy_s: float) -> tuple[Engine, str]:
        path = Path(url).absolute()
        new = create and path not in self.urls and not path.exists() and path.parent.is_dir()
        if new and "://" not in url:
            self.urls[path] = self.server.new_store()
        engine, name = connect(self.urls.get(path, url), create=create, busy_s=busy_s)
        return engine, url if path in self.urls else name

    def copied(self, url: str) -> str:
        """The URL of a new store that holds what another does, under the same numbers."""
        copy = self.server.new_store()
        Ledger.open(copy, create=True).close()
        old, new = (
            str(make_url(store_url).query["options"]).removeprefix("-csearch_path=")
            for store_url in (url, copy)
        )
        steps = [f"DELETE FROM {new}.{schema.meta.name}"]
        for table in schema._tables.sorted_tables:
            steps.append(f"INSERT INTO {new}.{table.name} SELECT * FROM {old}.{table.name}")
            if "id" in table.c:
                numbers = f"pg_get_serial_sequence('{new}.{table.name}', 'id')"
                steps.append(f"SELECT setval({numbers}, max(id)) FROM {new}.{table.name}")
        self.server.execute(";".join(steps))
        return copy

    def drop(self, *survivors: Path) -> None:
        """Drop them, but these."""
        for path in self.urls.keys() - set(survivors):
            self.server.drop(self.urls.pop(path))

    def end(self) -> None:
        """Drop all."""
        self.drop()
        for url in self.filled.values():
            self.server.drop(url)


_FILLED: dict[tuple[object, ...], bytes] = {}


def filled_once(path: Path, recipe: tuple[object, ...], fill: Callable[[], None]) -> None:
    """Have a store at a path as `fill` makes it there: it runs once for each `recipe`, and the
    store is copied from then on, which takes a tenth of the time."""
    databases = getattr(vars(store_module)["connect"], "__self__", None)
    if not isinstance(databases, Databases):
        if recipe in _FILLED:
            path.write_bytes(_FILLED[recipe])
        else:
            fill()
            _FILLED[recipe] = path.read_bytes()
    elif recipe in databases.filled:
        databases.urls[path.absolute()] = databases.copied(databases.filled[recipe])
    else:
        fill()
        databases.filled[recipe] = databases.copied(databases.urls[path.absolute()])
