"""The cost of the JSON interface at the size of a large experiment: 50 metrics, 10 variants and 30
days of windows.

`cold` is the first answer, `warm` the median of the next ones while nothing is counted, and
`changed` the first one after a commit. Wall time over a real socket, at the client.
`python -m benchmarks.bench_http`.
"""

from __future__ import annotations

import json
import logging
import random
import statistics
import tempfile
import time
import urllib.request
from pathlib import Path

from streammetrics_consumers.cli.main import main as streammetrics
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.server.health import WatchedWorkers
from streammetrics_consumers.server.process import serving

EVENTS = 60_000
DAYS = 30
START_S = 1_704_067_200  # 2024-01-01
VARIANTS = [f"v{i}" for i in range(10)]
KINDS = {
    "a": (20, '{ type = "HistogramAUC", resolution = 6 }'),
    "r": (20, '{ type = "Ratio" }'),
    "c": (10, '{ type = "Calibration" }'),
}
CONFIG = """\
[source]
kind = "file"
path = "events.jsonl"
[event]
time = "t"
time_unit = "s"
variant = "v"
variants = {variants}
label = "l"
score = "s"
user = "u"
[slices]
by = [["variant"]]
[store]
url = "store.db"
[experiment]
control = "v0"
decision = ["r0", "r1", "a0"]
cluster = "none"
mde = 0.01
[metrics]
"""
ASKED = (
    "api/store",
    "api/results?views=headline&by=variant",
    "api/results?views=headline&by=variant&window=latest",
    "api/results?by=variant",
    "api/experiment",
    "api/health",
    "api/history?metric=a1",
    "api/history?metric=r0",
    "api/history?metric=a0",
    "api/figure?metric=a0",
    "api/figure?metric=a0&kind=history",
    "api/figure?metric=r0&kind=effect",
    "api/figure?metric=c0&kind=reliability",
)
ROUNDS = 7


def write(folder: Path) -> Path:
    """Write the config, and events of a month."""
    metrics = "".join(
        f"{kind}{i} = {text}\n" for kind, (count, text) in KINDS.items() for i in range(count)
    )
    config = folder / "config.toml"
    config.write_text(CONFIG.format(variants=json.dumps(VARIANTS)) + metrics, encoding="utf-8")
    append(folder, 0, EVENTS)
    return config


def append(folder: Path, first: int, count: int) -> None:
    """Append events; those after the month are in its last second."""
    drawn = random.Random(first)
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        for i in range(first, first + count):
            at_s = START_S + min(i * DAYS * 86_400 // EVENTS, DAYS * 86_400 - 1)
            event = {"t": at_s, "v": drawn.choice(VARIANTS), "l": int(drawn.random() < 0.3),
                     "s": round(drawn.random(), 4), "u": i}  # fmt: skip
            file.write(json.dumps(event) + "\n")


def count(config: Path) -> None:
    """Count all events of the log."""
    assert streammetrics(["run", str(config), "--until-end", "--no-serve"]) == 0


def timed_request(address: str) -> tuple[float, int]:
    """The milliseconds and bytes of one answer."""
    began_s = time.perf_counter()
    with urllib.request.urlopen(address, timeout=120) as answer:
        data: bytes = answer.read()
    return (time.perf_counter() - began_s) * 1000, len(data)


def main() -> None:
    """Print the table."""
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write(folder)
        count(config)
        watched = WatchedWorkers(dict, time.monotonic, time.time)
        with serving(str(folder / "store.db"), ServerConfig(port=0), watched) as url:
            cold = {path: timed_request(url + path) for path in ASKED}
            warm = {
                path: statistics.median(timed_request(url + path)[0] for _ in range(ROUNDS))
                for path in ASKED
            }
            append(folder, EVENTS, 100)
            count(config)
            changed = {path: timed_request(url + path)[0] for path in ASKED}
    print(f"{'ms':52} {'bytes':>10} {'cold':>8} {'warm':>8} {'changed':>8}")
    for path in ASKED:
        first_ms, nbytes = cold[path]
        print(f"{path:52} {nbytes:10,} {first_ms:8.0f} {warm[path]:8.1f} {changed[path]:8.0f}")


if __name__ == "__main__":
    main()
