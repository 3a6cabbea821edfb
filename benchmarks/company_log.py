"""The log of a company for `benchmarks.bench_company`: its config, its events and its fold.

An event has an item, a user, a variant, three labels, two numbers and the scores of some models;
each model has ten metrics. The log repeats a pool of events, so that it is as long as a run and
its fold is that of the pool.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.states import ALL_KEYS, MetricSet
from streammetrics_consumers.counting.counted_events import columns_of, key_column
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.ledger.delta_metadata import state_of
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreView, view
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.partition import Partition

from benchmarks.workloads import click_scores, generator, labels_of
from streammetrics import Accumulator, DictionaryColumn, PerKey

LOG: Final = Partition("company", "events", "pool", 0)
LABELS: Final = ("click", "like", "buy")
MESSAGE: Final = {"arrow": 5_000, "json": 1}  # events of a record

CONFIG: Final = """\
[source]
kind = "kafka"
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
group = "company"
format = "{format}"
library = "confluent-kafka"
[event]
time = "ts"
time_unit = "ms"
variant = "variant"
variants = ["control", "treatment"]
user = "user"
label = "click"
score = "s0"
[windows]
size_s = 3600
[slices]
by = [[], ["variant"], ["item"]]
[store]
url = "{url}"
commit_interval_s = 5
commit_events = 500000
commit_bytes = 268435456
"""
PLAN: Final = """\
control = "control"
decision = ["area_click_0", "spend_0"]
guardrails = [
  { metric = "area_like_0", margin = 0.01 },
  { metric = "calibration_click_0", margin = 0.01 },
  { metric = "mean_0", margin = 0.01 },
  { metric = "error_0", margin = 0.1 },
]
mde = 0.01
"""


def tables_of(metrics: int, experiments: int) -> str:
    """The tables of this many metrics, and of this many experiments with names; of the one without
    a name if 0."""
    tables = [
        f'[experiments.e{i}]\nvariant = "e{i}"\nvariants = ["control", "treatment"]\n{PLAN}'
        for i in range(experiments)
    ] or [f"[experiment]\n{PLAN}"]
    return "".join(tables) + "[metrics]\n" + "\n".join(metrics_of(metrics))


def metrics_of(count: int) -> Iterator[str]:
    """The lines of this many metrics, ten of each model."""
    for i in range(count):
        model, kind = divmod(i, 10)
        label, score = LABELS[kind % 3], f"s{model}"
        inputs = f'inputs = {{ labels = "{label}", scores = "{score}" }}'
        match kind:
            case 0 | 1 | 2:
                yield f'area_{label}_{model} = {{ type = "HistogramAUC", {inputs} }}'
            case 3 | 4:
                yield f'calibration_{label}_{model} = {{ type = "Calibration", {inputs} }}'
            case 5 | 6:
                name = f"confusion_{label}_{model}"
                yield f'{name} = {{ type = "BinaryConfusion", threshold = 0.01, {inputs} }}'
            case 7:
                yield f'mean_{model} = {{ type = "Ratio", inputs = {{ numerators = "{score}" }} }}'
            case 8:
                columns = f'numerators = "spend", denominators = "{LABELS[model % 3]}"'
                yield f'spend_{model} = {{ type = "Ratio", inputs = {{ {columns} }} }}'
            case _:
                columns = f'labels = "watch", scores = "{score}"'
                yield f'error_{model} = {{ type = "Regression", inputs = {{ {columns} }} }}'


@dataclass(frozen=True)
class Plan:
    """A run: its config, the file of its pool, the format and the pace. began_s: of the clock that
    all processes of a machine share; rate: events a second, 0 for a log without a pace."""

    config: str
    pool: str
    form: str
    rate: float
    began_s: float
    kafka: bool = False

    def due(self, now_s: float) -> int:
        """The number of records that the log has by now."""
        if not self.rate:
            return 1 << 60
        return max(int((now_s - self.began_s) * self.rate) // MESSAGE[self.form], 0)

    def due_s(self, record: int) -> float:
        """When the log has its first `record` records."""
        return self.began_s + record * MESSAGE[self.form] / self.rate

    def write(self, path: Path) -> None:
        """Write it for `read`."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Read what `write` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


def events(n: int, models: int, items: int, experiments: int = 0) -> pa.Table:
    """Events of one hour. Items and users are equally frequent, which is the worst case. Each
    experiment with a name has its own halves of the users."""
    drawn = generator(900)
    scores = {f"s{i}": click_scores(n, 910 + i) for i in range(models)}
    users = drawn.integers(0, max(n // 5, 1), n)
    labels = {
        label: labels_of(scores["s0"], 0.05 / (i + 1), 930 + i) for i, label in enumerate(LABELS)
    }
    names = np.array([f"item-{i:05d}" for i in range(items)])
    arms, halves = np.array(["control", "treatment"]), drawn.integers(0, 1 << 62, users.max() + 1)
    return pa.table(
        {
            "ts": 1_704_067_200_000 + np.arange(n) * 60_000 // n,
            "user": users * 7919 + 10**12,
            "variant": arms[users % 2],
            **{f"e{i}": arms[halves[users] >> i & 1] for i in range(experiments)},
            "item": names[drawn.integers(0, items, n)],
            **labels,
            "watch": (drawn.random(n) * 600).round(1),
            "spend": labels["buy"] * drawn.integers(1, 100, n).astype(float),
            **scores,
        }
    )


def write_pool(path: Path, table: pa.Table, form: str) -> int:
    """Write the records of a pool, and return their number: the ends of all, then their bytes."""
    size = MESSAGE[form]
    records = []
    if form == "arrow":
        for offset in range(0, len(table), size):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table.slice(offset, size))
            records.append(sink.getvalue().to_pybytes())
    else:
        records = [json.dumps(row, separators=(",", ":")).encode() for row in _plain(table)]
    ends = np.cumsum([len(record) for record in records], dtype=np.int64)
    with path.open("wb") as file:
        file.write(struct.pack("<q", len(records)) + ends.tobytes())
        file.writelines(records)
    return len(records)


def _plain(table: pa.Table) -> Iterator[dict[str, object]]:
    """The rows with as many digits of a score as a service would log."""
    for batch in table.to_batches(max_chunksize=10_000):
        for row in batch.to_pylist():
            yield {k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in row.items()}


class Pool:
    """The records of a file of `write_pool`; the log is their endless repetition."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            data = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
        (self.size,) = struct.unpack_from("<q", data)
        head = 8 + 8 * self.size
        self._starts = np.concatenate([[0], np.frombuffer(data[8:head], np.int64)])
        self._data = data[head:]

    def records(self, start: int, end: int) -> list[bytes | None]:
        """Records of the log."""
        starts, records = self._starts, list[bytes | None]()
        for i in range(start, end):
            i %= self.size
            records.append(bytes(self._data[starts[i] : starts[i + 1]]))
        return records


def fold(config: Config, pool: Pool, records: int) -> dict[tuple[str, int], bytes]:
    """The state of each metric and grouping after this many records of the log, without a delta, a
    commit or a store: the first records of the pool are counted once more than the others."""
    times, remainder = divmod(records, pool.size)
    states: dict[tuple[str, int], PerKey] = {}
    for start, end, often in ((0, remainder, times + 1), (remainder, pool.size, times)):
        for key, state in counted(config, pool, start, end).items() if often else ():
            part = repeated(state, often)
            states.setdefault(key, part.empty()).merge(part)
    return {key: state.to_bytes() for key, state in states.items()}


def counted(config: Config, pool: Pool, start: int, end: int) -> dict[tuple[str, int], PerKey]:
    """The states of some records of the pool."""
    decoder, states = Decoder(config), dict[tuple[int, int], PerKey]()
    step = 5_000 // MESSAGE[config.source.format]
    for offset in range(start, end, step):
        stop = min(offset + step, end)
        chunk = Chunk(LOG, offset, stop, range(offset, stop), pool.records(offset, stop))
        for decoded in decoder.pieces(chunk):
            columns = columns_of(decoded)
            for number, metrics in enumerate(config.metric_sets):
                inputs = {
                    name: columns[name] for name in metrics.panel.arguments() if name in columns
                }
                for grouping in range(len(metrics.slices.by)):
                    state = states.setdefault(
                        (number, grouping), PerKey(metrics.panel, max_keys=ALL_KEYS)
                    )
                    state.update(keys_of(decoded, metrics, grouping), **inputs)
    return {
        (metric.name, grouping): state.project(metric.name).limited(metrics.slices.max_keys)
        for (number, grouping), state in states.items()
        for metrics in (config.metric_sets[number],)
        for metric in metrics.metrics
    }


def keys_of(decoded: Decoded, metrics: MetricSet, grouping: int) -> DictionaryColumn:
    """The key of each event: the grouping and its values."""
    codes, keys = np.zeros(len(decoded), np.intp), [(grouping,)]
    for name in metrics.slices.by[grouping]:
        column = key_column(metrics, decoded, name)
        codes = codes * len(column.values) + column.codes
        keys = [(*key, value) for key in keys for value in column.values]  # type: ignore[misc]
    present, codes = np.unique(codes, return_inverse=True)
    return DictionaryColumn(codes, tuple(keys[i] for i in present))


def repeated(state: PerKey, times: int) -> PerKey:
    """The state of the same rows, this many times."""
    total = state.empty()
    while times:
        if times % 2:
            total.merge(state)
        state, times = state + state, times // 2
    return total


def records_and_states(ledger: Ledger) -> tuple[int, dict[tuple[str, int], bytes]]:
    """The number of records of all partitions that were counted, and the states of the totals of a
    store."""

    def look(now: StoreView) -> tuple[int, dict[tuple[str, int], bytes]]:
        totals = [size.pane for size in now.snapshot.panes if size.pane.is_total]
        states: dict[tuple[str, int], Accumulator] = {}
        for row, stored in now.states(now.delta_metadata(totals)):
            key, state = row.pane[:2], state_of(row, stored)
            states[key] = states[key] + state if key in states else state
        records = sum(head.next_offset for head in now.version.heads)
        return records, {key: state.to_bytes() for key, state in states.items()}

    return view(ledger, look)
