"""Stores for the pictures of the page: few metrics and many, a loss, a broken guardrail, a
sample-ratio alarm, and no data."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from streammetrics_consumers.cli.main import main

from tests.consumers import verdict_cases
from tests.consumers.small_config import head

DAY_MS: Final = 86_400_000
START_MS: Final = 19_000 * DAY_MS
DAYS: Final = (0, 1, 2, 3, 6, 7)  # with rows; days 4 and 5 have none
COUNTRIES: Final = tuple(f"{a}{b}" for a in "ABCDE" for b in "AEIOUVWXY")  # 45
CONFIG: Final = (
    head(
        "events.jsonl",
        '["new_ranker", "control"]',
        'time_unit = "ms"\nlabel = "label"\nscore = "score"',
        86_400,
        '[[], ["variant"], ["variant", "country"]]',
    )
    + """\
[metrics]
{metrics}
[experiment]
name = "New ranker on the home page"
hypothesis = "Fresh items first raise the click rate and keep the ranking quality."
days = 14
control = "control"
unit = "user"
cluster = "none"
decision = ["click_rate"]
guardrails = [{guardrails}]
horizon = 20000
baseline = 0.25
"""
)
THREE: Final = {
    "click_rate": 'type = "Ratio", better = "higher"',
    "log_loss": 'type = "Calibration"',
    "auc": 'type = "HistogramAUC"',
}
KINDS: Final = tuple(THREE.values())
MANY: Final = {**THREE, **{f"metric_{i:02d}": KINDS[i % 3] for i in range(47, 0, -1)}}
RAILS: Final = {"auc": 0.02, "log_loss": 0.005}
MANY_RAILS: Final = {**RAILS, **{f"metric_{i:02d}": 0.01 for i in range(1, 7)}}


def events(a_day: int) -> Iterator[dict[str, object]]:
    """Events of users, who stay with their variant; the first day has a handful."""
    chance = random.Random(7)
    for day in DAYS:
        for index in range(a_day if day else 6):
            new = index % 2
            score = round(0.02 + 0.6 * chance.random() ** 2, 4)
            yield {
                "ts": START_MS + day * DAY_MS + 1000 * index,
                "variant": ("control", "new_ranker")[new],
                "user": f"{day}-{index}",
                "label": int(chance.random() < score + 0.06 * new),
                "score": score,
                "country": COUNTRIES[index // 2 % len(COUNTRIES)],
            }
        if day:  # two events of the first day that come late, and two that are refused
            for bad in ({"label": 7}, {"score": "high"}):
                base = {"variant": "control", "user": "late", "label": 0, "score": 0.1}
                yield {"ts": START_MS, **base, "country": "AA"}
                yield {"ts": START_MS + day * DAY_MS, **base, "country": "AA", **bad}


def make_store(
    metrics: Mapping[str, str], rails: Mapping[str, float], a_day: int, folder: Path
) -> Path:
    """A store of some metrics and guardrails; without events a day it is empty."""
    lines = (json.dumps(event) for event in (events(a_day) if a_day else ()))
    (folder / "events.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = CONFIG.format(
        metrics="\n".join(f"{name} = {{ {kind} }}" for name, kind in metrics.items()),
        guardrails=", ".join(f'{{ metric = "{m}", margin = {x} }}' for m, x in rails.items()),
    )
    (folder / "config.toml").write_text(text, encoding="utf-8")
    config = str(folder / "config.toml")
    assert main(["run", config, "--until-end", "--no-serve"]) == 0
    return folder / "store.db"


def judged(name: str, folder: Path) -> Path:
    """The store of a verdict."""
    return verdict_cases.store(folder, verdict_cases.CASES[name])


SCENES: Final[Mapping[str, Callable[[Path], Path]]] = {
    "three": partial(make_store, THREE, RAILS, 2400),
    "fifty": partial(make_store, MANY, MANY_RAILS, 1200),
    "empty": partial(make_store, THREE, RAILS, 0),
    **{name: partial(judged, name) for name in ("loss", "broken", "ratio")},
}
