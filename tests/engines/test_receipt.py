"""The receipt of a Kafka consumer is that of a backfill.

It is the digest of what was counted in a window. Whoever counts the same rows from a table gets the
same one, and so shows that both counted the same rows.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from streammetrics_consumers.cli.main import main

from streammetrics import Accumulator, load
from streammetrics.engines import merged, partial
from tests.engines.log_rows import log_table
from tests.kafka_broker import Record, create_topic, produce

ROWS = 6000
DAY_MS = 86_400_000
START_MS = 1_793_491_200_000  # 2026-11-01T00:00:00Z
WINDOW = "2026-11-01T00:00:00Z/2026-11-02T00:00:00Z"
VARIANTS = ("a", "b")
# Arguments of the metrics -> columns of the table.
COLUMNS = {"labels": "label", "scores": "score", "numerators": "label", "groups": "user"}

CONFIG = """\
[source]
kind = "kafka"
bootstrap_servers = "{kafka}"
topic = "{topic}"
group = "{topic}-group"
[event]
time = "ts"
variant = "variant"
user = "user"
label = "label"
score = "score"
[windows]
size_s = 86400
[metrics]
auc = {{ type = "HistogramAUC" }}
gauc = {{ type = "GroupedAUC" }}
ctr = {{ type = "Ratio" }}
[store]
url = "store.db"
"""


def logged() -> pa.Table:
    """What the cluster has: three days of impressions with a time, users as texts."""
    rows = log_table(ROWS)
    rows = rows.filter(pc.is_valid(rows["variant"]))
    users = pa.array([f"user-{n}" for n in rows["user"].to_pylist()])
    rows = rows.set_column(rows.column_names.index("user"), "user", users)
    times = pc.add(rows["ms"], START_MS)
    return rows.set_column(rows.column_names.index("ms"), "ms", times)


def of_the_window(rows: pa.Table) -> pa.Table:
    """The rows of the day that the receipt is of."""
    day = pc.and_(pc.greater_equal(rows["ms"], START_MS), pc.less(rows["ms"], START_MS + DAY_MS))
    return rows.filter(day)


def consumed(kafka: str, folder: Path) -> dict[str, Accumulator]:
    """The rows through a broker into a store: the window's state of each variant, from the state
    file that `export` writes. Its `empty()` is the specification of a backfill."""
    topic = create_topic(kafka, 3)
    columns = logged().select(["ms", "variant", "user", "label", "score"]).to_pydict()
    order = np.random.default_rng(3).permutation(len(columns["ms"])).tolist()
    produce(kafka, topic, [_record(columns, i) for i in order])
    config = folder / "clicks.toml"
    config.write_text(CONFIG.format(kafka=kafka, topic=topic), encoding="utf-8")
    assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    states = {}
    for variant in VARIANTS:
        path = folder / f"{variant}.state"
        words = ["--window", WINDOW, "--where", f"variant={variant}", "-o", str(path)]
        assert main(["export", str(folder / "store.db"), *words]) == 0
        states[variant] = load(path)
    return states


def _record(columns: dict[str, list[object]], i: int) -> Record:
    ms = int(str(columns["ms"][i]))
    event = {name: column[i] for name, column in columns.items() if name != "ms"}
    ts = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return Record(json.dumps({"ts": ts, **event}).encode(), i % 3, timestamp_ms=ms)


def counted(part: pa.Table, spec: Accumulator) -> list[tuple[str, bytes]]:
    """The states of one part, by variant."""
    table = pa.Table.from_batches(partial(part.to_batches(), spec, ["variant"], columns=COLUMNS))
    return list(zip(table["variant"].to_pylist(), table["state"].to_pylist(), strict=True))


def test_a_consumer_and_a_backfill_give_the_same_receipt(kafka: str, tmp_path: Path) -> None:
    live = consumed(kafka, tmp_path)
    rows = of_the_window(logged())
    spec = live["a"].empty()
    states = [pair for part in (rows[:700], rows[700:]) for pair in counted(part, spec)]
    for variant in VARIANTS:
        backfill = merged(state for name, state in states if name == variant)
        assert backfill.digest() == live[variant].digest()
