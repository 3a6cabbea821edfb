"""A store of experiments whose arms come from exposures, for pictures and tests of the page.

Users are exposed over twelve days, and buy in the days after it. In `checkout` the new arm earns
more; in `reminder` it only delays what users do, so that its effect so far is not the final one,
and the plan decides by the users whose window is over; `banner` has no mean or rate of users.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from streammetrics_consumers.cli.main import main

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
START_MS: Final = 20_000 * DAY_MS  # 2024-10-04
DAYS: Final = 16  # of the stream
EXPOSED_DAYS: Final = 12
USERS: Final = 120  # exposed on a day
ARMS: Final = {"checkout": "one_page", "reminder": "later", "banner": "wide"}
CONFIG: Final = """\
[source]
kind = "file"
path = "events.jsonl"
[event]
time = "ts"
time_unit = "ms"
user = "user"
[windows]
size_s = 86_400
lateness_s = 600
[slices]
by = [[]]
[exposures]
field = "kind"
equals = "exposure"
experiment = "experiment"
arm = "arm"
window_s = 604_800
[metrics]
revenue = { type = "UnitMean", inputs = { values = "amount" }, better = "higher" }
buyers = { type = "UnitRate", inputs = { values = "amount" }, better = "higher" }
errors = { type = "Ratio", better = "lower", inputs = { numerators = "error" } }
[experiments.checkout]
name = "Checkout on one page"
hypothesis = "Fewer steps raise the revenue of a user within a week."
days = 21
control = "control"
variants = ["control", "one_page"]
decision = ["revenue", "buyers"]
guardrails = [{ metric = "errors", margin = 0.07 }]
mdes = { revenue = 2.0, buyers = 0.1, errors = 0.05 }
[experiments.reminder]
name = "Reminder one day later"
control = "control"
variants = ["control", "later"]
decision = ["buyers"]
units = "closed"
mde = 0.1
[experiments.banner]
control = "control"
variants = ["control", "wide"]
decision = ["errors"]
mde = 0.05
[store]
url = "store.db"
[server]
port = 0
"""


def events() -> Iterator[dict[str, object]]:
    """The events in the order of their time: exposures, visits with an amount, and some of users
    who were never exposed."""
    chance = random.Random(11)
    timeline: list[tuple[int, dict[str, object]]] = []
    for i in range(EXPOSED_DAYS * USERS):
        exposed_ms = START_MS + chance.randrange(EXPOSED_DAYS * DAY_MS)
        user = f"u{i}"
        arms = {name: chance.choice(("control", arm)) for name, arm in ARMS.items()}
        for name, arm in arms.items():
            exposure = {"kind": "exposure", "experiment": name, "arm": arm}
            timeline.append((exposed_ms, {"user": user, **exposure}))
            if i % 97 == 0:  # later in the other arm
                exposure = {"kind": "exposure", "experiment": name, "arm": "control"}
                timeline.append((exposed_ms + HOUR_MS, {"user": user, **exposure}))
        wait_ms = DAY_MS if arms["reminder"] == "later" else 0
        for _ in range(chance.choice((0, 1, 1, 2, 4))):
            ms = exposed_ms + wait_ms + int(chance.expovariate(1 / (2 * DAY_MS)))
            buys = chance.random() < (0.45 if arms["checkout"] == "one_page" else 0.35)
            amount = round(chance.lognormvariate(2.3, 0.6), 2) if buys else 0.0
            visit = {"kind": "visit", "amount": amount, "error": int(chance.random() < 0.03)}
            timeline.append((ms, {"user": user, **visit}))
    for i in range(300):
        visit = {"kind": "visit", "amount": 1.0, "error": 0}
        timeline.append((START_MS + i * HOUR_MS, {"user": f"stranger {i}", **visit}))
    timeline.sort(key=lambda event: event[0])
    for ms, event in timeline:
        if ms < START_MS + DAYS * DAY_MS:
            yield {"ts": ms, **event}


def make_store(folder: Path) -> Path:
    """The store, with a look at the end of each half of the stream."""
    config = folder / "config.toml"
    config.write_text(CONFIG, encoding="utf-8")
    lines = [f"{json.dumps(event)}\n" for event in events()]
    for part in (lines[: len(lines) // 2], lines[len(lines) // 2 :]):
        with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
            file.writelines(part)
        assert main(["run", str(config), "--until-end", "--no-serve"]) == 0
    return folder / "store.db"


EXPOSED_SCENES: Final[Mapping[str, Callable[[Path], Path]]] = {"exposed": make_store}
