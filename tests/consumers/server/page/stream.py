"""Events, a store that counts them, and a server over it."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from streammetrics_consumers.cli.main import main as streammetrics
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.server.health import WatchedWorkers
from streammetrics_consumers.server.process import serving

from tests.consumers.small_config import head
from tests.patience import LIMIT_S

DAY_MS = 86_400_000
START_MS = 19_000 * DAY_MS
TOML = (
    head(
        "events.jsonl",
        "{variants}",
        'time_unit = "ms"\nlabel = "label"\nscore = "score"',
        86_400,
        '[[], ["variant"], ["variant", "phase"]]',
    )
    + """\
[metrics]
{metrics}
[experiment]
control = {control}
unit = "user"
cluster = "none"
decision = ["ctr"]
horizon = 1000
baseline = 0.3
"""
)
METRICS = {"auc": "HistogramAUC", "calibration": "Calibration", "ctr": "Ratio"}


@dataclass
class Stream:
    """A file of events and the store that they are counted into."""

    folder: Path
    variants: Sequence[str]
    url: str = ""
    written: int = 0

    @staticmethod
    def counted(
        folder: Path,
        variants: Sequence[str] = ("control", "treatment"),
        metrics: dict[str, str] = METRICS,
        *,
        days: int = 3,
        events: int = 200,
        phase: str = "fit",
    ) -> Stream:
        """So many events of each variant on each day, counted."""
        stream = Stream.begun(folder, variants, metrics)
        for day in range(days):
            stream.write(events, day, phase)
        stream.count()
        return stream

    @staticmethod
    def begun(
        folder: Path,
        variants: Sequence[str] = ("control", "treatment"),
        metrics: dict[str, str] = METRICS,
    ) -> Stream:
        """A config, and a file without events."""
        lines = (f'{json.dumps(name)} = {{ type = "{kind}" }}' for name, kind in metrics.items())
        text = TOML.format(
            variants=json.dumps(list(variants)),
            control=json.dumps(variants[0]),
            metrics="\n".join(lines),
        )
        (folder / "config.toml").write_text(text, encoding="utf-8")
        (folder / "events.jsonl").touch()
        return Stream(folder, variants)

    def copied(self, folder: Path) -> Stream:
        """The same in another folder. Nobody writes here meanwhile."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Stream(folder, self.variants, written=self.written)

    @contextmanager
    def serve(self, port: int = 0, token: str = "") -> Iterator[Stream]:
        """As `streammetrics serve` does; port 0: any."""
        watched = WatchedWorkers(dict, time.monotonic, time.time)
        store = str(self.folder / "store.db")
        with serving(store, ServerConfig(port=port, token=token), watched) as self.url:
            yield self

    def write(self, events: int, day: int = 0, phase: str = "fit") -> None:
        """So many events of each variant; users stay with their variant."""
        chance = random.Random(self.written)
        with (self.folder / "events.jsonl").open("a", encoding="utf-8") as file:
            for index in range(events):
                for place, variant in enumerate(self.variants):
                    score = round(chance.random(), 4)
                    event = {
                        "ts": START_MS + day * DAY_MS + index,
                        "variant": variant,
                        "user": f"{place}-{self.written + index}",
                        "label": int(chance.random() < 0.1 + 0.3 * score + 0.02 * place),
                        "score": score,
                        "phase": phase,
                    }
                    file.write(json.dumps(event) + "\n")
        self.written += events

    def count(self) -> None:
        """Count what was written since the last time."""
        config = str(self.folder / "config.toml")
        assert streammetrics(["run", config, "--until-end", "--no-serve"]) == 0

    def get(self, path: str) -> dict[str, list[dict[str, object]]]:
        """An answer of the server."""
        answer: dict[str, list[dict[str, object]]] = httpx.get(
            self.url + path, timeout=LIMIT_S
        ).json()
        return answer
